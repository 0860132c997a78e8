// What other objects than the Node say of nodes, also of nodes that are not known yet.
//
// One thread at a time (the engine's).
#pragma once

#include <map>
#include <vector>

#include "scheduler/facts/node_facts.h"

namespace tranche {

struct NodeOverlay {
  // The only agent that Node objects do not show.
  static constexpr AgentKind kAgentBesideNodes = AgentKind::kKoordinator;
  std::map<NodeName, NodeZones> zones;
  std::map<NodeName, std::vector<SliceDevice>> slices;
  // Of an agent that Node objects do not show: Koordinator's.
  std::map<NodeName, AgentRegister> agents;

  // Adds what is said of the node; an agent that the Node itself shows stays.
  void AddTo(NodeFacts& node) const;
  // Takes it off again.
  static void TakeFrom(NodeFacts& node);
};

}  // namespace tranche
