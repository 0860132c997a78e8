// What other objects than the Node report of nodes.
#include <utility>

#include "scheduler/engine/impl.h"
#include "topology/base/check.h"

namespace tranche {

// The node again, with what is said of it by others now.
void Engine::Impl::TellNode(const NodeName& name, Instant now, Engine& engine) {
  const NodeId id = names.Find(name.str());
  if (id == kNoNode || nodes[id] == nullptr || !nodes[id]->state.present()) return;
  NodeFacts facts = nodes[id]->state.facts();
  NodeOverlay::TakeFrom(facts);
  engine.UpsertNode(std::move(facts), now);
  NoteRetold(id, now);
}

void Engine::SetNodeZones(const NodeName& name, std::optional<NodeZones> zones, Instant now) {
  if (zones) {
    impl_->overlay.zones[name] = *std::move(zones);
  } else {
    impl_->overlay.zones.erase(name);
  }
  impl_->TellNode(name, now, *this);
}

void Engine::SetNodeSlices(const NodeName& name, std::vector<SliceDevice> devices, Instant now) {
  if (devices.empty()) {
    impl_->overlay.slices.erase(name);
  } else {
    impl_->overlay.slices[name] = std::move(devices);
  }
  impl_->TellNode(name, now, *this);
}

void Engine::SetNodeAgent(const NodeName& name, std::optional<AgentRegister> agent, Instant now) {
  if (agent) {
    TRANCHE_CHECK(agent->kind == NodeOverlay::kAgentBesideNodes);
    impl_->overlay.agents[name] = *std::move(agent);
  } else {
    impl_->overlay.agents.erase(name);
  }
  impl_->TellNode(name, now, *this);
}

}  // namespace tranche
