// What other objects than the Node say of nodes, of those that are not known yet too.
//
// One thread at a time (the engine's).
#pragma once

#include <map>
#include <vector>

#include "scheduler/facts/node_facts.h"

namespace tranche {

struct NodeWords {
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
