#include "scheduler/engine/node_words.h"

#include <utility>

#include "scheduler/engine/impl.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

// The only agent that Node objects do not show.
constexpr AgentKind kAgentBesideNodes = AgentKind::kKoordinator;

}  // namespace

void NodeWords::AddTo(NodeFacts& node) const {
  if (const auto said = zones.find(node.name); said != zones.end()) node.zones = said->second;
  if (const auto said = slices.find(node.name); said != slices.end()) node.slices = said->second;
  if (node.agent) return;
  if (const auto said = agents.find(node.name); said != agents.end()) node.agent = said->second;
}

void NodeWords::TakeFrom(NodeFacts& node) {
  node.zones.reset();
  node.slices.clear();
  if (node.agent && node.agent->kind == kAgentBesideNodes) node.agent.reset();
}

void Engine::Impl::FollowZones(NodeId id, Instant now) {
  NodeEntry& entry = *nodes[id];
  const Inventory& inventory = entry.state.inventory();
  std::map<PodUid, int64_t> held;
  for (const Holding& holding : entry.state.holdings()) {
    if (holding.kind != HoldingKind::kAllocation && holding.kind != HoldingKind::kReservation) {
      continue;
    }
    for (const PoolNeed& need : holding.request->pool_needs) {
      if (need.key == "nvidia.com/gpu") held[holding.uid] = need.count;
    }
  }
  int64_t shown = 0;
  for (const ZoneCounts& zone : inventory.zones) shown += zone.gpus_capacity - zone.gpus_available;
  const std::optional<Instant> before = entry.zone_lag.due();
  entry.state.SetUnshown(entry.zone_lag.Update(held, shown, now));
  const std::optional<Instant> due = entry.zone_lag.due();
  if (due && due != before) reopenings.emplace(*due, id);
}

// The node again, with what is said of it by others now.
void Engine::Impl::TellNode(const NodeName& name, Instant now, Engine& engine) {
  const NodeId id = names.Find(name.str());
  if (id == kNoNode || nodes[id] == nullptr || !nodes[id]->state.present()) return;
  NodeFacts facts = nodes[id]->state.facts();
  NodeWords::TakeFrom(facts);
  engine.UpsertNode(std::move(facts), now);
  NoteRetold(id, now);
}

void Engine::SetNodeZones(const NodeName& name, std::optional<NodeZones> zones, Instant now) {
  if (zones) {
    impl_->words.zones[name] = *std::move(zones);
  } else {
    impl_->words.zones.erase(name);
  }
  impl_->TellNode(name, now, *this);
}

void Engine::SetNodeSlices(const NodeName& name, std::vector<SliceDevice> devices, Instant now) {
  if (devices.empty()) {
    impl_->words.slices.erase(name);
  } else {
    impl_->words.slices[name] = std::move(devices);
  }
  impl_->TellNode(name, now, *this);
}

void Engine::SetNodeAgent(const NodeName& name, std::optional<AgentRegister> agent, Instant now) {
  if (agent) {
    TRANCHE_CHECK(agent->kind == kAgentBesideNodes);
    impl_->words.agents[name] = *std::move(agent);
  } else {
    impl_->words.agents.erase(name);
  }
  impl_->TellNode(name, now, *this);
}

}  // namespace tranche
