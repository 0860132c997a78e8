#include "scheduler/engine/state/node_overlay.h"

#include <utility>

namespace tranche {
void NodeOverlay::AddTo(NodeFacts& node) const {
  if (const auto said = zones.find(node.name); said != zones.end()) node.zones = said->second;
  if (const auto said = slices.find(node.name); said != slices.end()) node.slices = said->second;
  if (node.agent) return;
  if (const auto said = agents.find(node.name); said != agents.end()) node.agent = said->second;
}

void NodeOverlay::TakeFrom(NodeFacts& node) {
  node.zones.reset();
  node.slices.clear();
  if (node.agent && node.agent->kind == kAgentBesideNodes) node.agent.reset();
}

}  // namespace tranche
