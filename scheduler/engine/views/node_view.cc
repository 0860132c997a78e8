#include "scheduler/engine/views/node_view.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/views/explain_text.h"
#include "scheduler/index/agent_cards.h"

namespace tranche {
namespace {

std::string ClosedDetail(const NodeEntry& entry) {
  switch (entry.closed) {
    case Reason::kNodeUnreadable:
      return entry.unreadable;
    case Reason::kAgentUnreadable:
      return entry.state.facts().agent_unreadable;
    case Reason::kOperatorBusy:
      return DescribeBusy(entry);
    case Reason::kMaintenance:
      return DescribeMaintenance(entry);
    case Reason::kInterrupted:
      return DescribeInterruption(entry);
    case Reason::kDevicesUnknown:
      if (!entry.unkept.empty()) return entry.unkept;
      for (const Holding& holding : entry.state.holdings()) {
        if (holding.kind == HoldingKind::kTentative || holding.known) continue;
        return holding.request->name.str() + ": " + holding.problem;
      }
      return "";
    default:
      return "";
  }
}

GpuView ViewCard(const Inventory& inventory, std::size_t at) {
  const Card& card = inventory.cards[at];
  GpuView view;
  if (inventory.knowledge != Knowledge::kCounts) view.index = card.index;
  view.uuid = card.uuid;
  view.memory = card.memory;
  view.healthy = card.healthy && !card.cordoned;
  view.enforced_by = EnforcementOf(inventory, card);
  view.numa = card.numa;
  view.is_mig = card.mode == CardMode::kMig || card.cut != nullptr;
  view.replicas = card.mode == CardMode::kReplicated ? static_cast<int>(inventory.replicas) : 1;
  return view;
}

// Adds what one pod holds to the cards' and instances' lists.
void AddPod(const NodeState& state, const Holding& holding, NodeView& view,
            std::map<std::pair<int, int>, MigView*>& instances) {
  const Inventory& inventory = state.inventory();
  const auto add = [&](int card, MilliGpu milli, Mebibytes memory) {
    GpuView& gpu = view.gpus[static_cast<std::size_t>(card)];
    // What is kept for a preemptor lies over its victims' devices until they have gone.
    const bool earmark = holding.kind == HoldingKind::kEarmark;
    if (earmark) milli = std::min(milli, std::max(gpu.free_milli, MilliGpu::Zero()));
    if (earmark) memory = std::min(memory, std::max(gpu.free_memory, Mebibytes::Zero()));
    gpu.free_milli -= milli;
    gpu.free_memory -= memory;
    gpu.pods.push_back({holding.request->name, holding.uid, milli, memory});
  };
  for (const CardUse& use : holding.use.cards) add(use.card, use.milli, use.memory);
  for (const Pick& pick : holding.picks) {
    if (pick.place.space == nullptr) continue;
    const MigPlace& place = pick.place;
    const MigProfile& profile =
        place.space->board().profiles[static_cast<std::size_t>(place.profile)];
    view.gpus[static_cast<std::size_t>(pick.card)].mig.push_back(
        {std::string(profile.name), place.start, profile.size, {holding.request->name.str()}});
  }
  for (const InstanceUse& use : holding.use.instances) {
    const MigPool& pool = inventory.pools[static_cast<std::size_t>(use.pool)];
    const MigSlot& slot = pool.slots[static_cast<std::size_t>(use.slot)];
    add(slot.card, pool.milli * use.users, pool.memory * use.users);
    instances.at({use.pool, use.slot})->pods.push_back(holding.request->name.str());
  }
}

}  // namespace

NodeView ViewNode(const NodeName& name, const NodeEntry& entry) {
  const NodeState& state = entry.state;
  const Inventory& inventory = state.inventory();
  NodeView view;
  view.name = name;
  view.model = inventory.model;
  view.ready = state.present() && state.facts().ready;
  view.closed = entry.closed;
  view.closed_detail = ClosedDetail(entry);
  view.knowledge = inventory.knowledge;
  view.problems = inventory.problems;
  if (inventory.links != MachineSource::kNone && inventory.links != MachineSource::kZones &&
      inventory.links != MachineSource::kSlices) {
    view.machine = inventory.table;
    view.links_verified = inventory.links_verified;
  }
  if (state.present()) {
    view.problems.insert(view.problems.end(), state.facts().problems.begin(),
                         state.facts().problems.end());
  }
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    GpuView gpu = ViewCard(inventory, i);
    gpu.free_milli = inventory.cards[i].capacity;
    gpu.free_memory = inventory.cards[i].memory;
    view.gpus.push_back(std::move(gpu));
  }
  std::vector<std::vector<std::pair<std::pair<int, int>, MigView>>> by_card(view.gpus.size());
  for (std::size_t p = 0; p < inventory.pools.size(); ++p) {
    const MigPool& pool = inventory.pools[p];
    for (std::size_t s = 0; s < pool.slots.size(); ++s) {
      // Of a planned layout only the instances that pods hold exist.
      if (inventory.planned() && state.hard().slots[p][s] == 0) continue;
      MigView mig{pool.profile, pool.slots[s].start, pool.slots[s].size, {}};
      by_card[static_cast<std::size_t>(pool.slots[s].card)].emplace_back(
          std::pair(static_cast<int>(p), static_cast<int>(s)), std::move(mig));
    }
  }
  std::map<std::pair<int, int>, MigView*> instances;
  for (std::size_t i = 0; i < by_card.size(); ++i) {
    std::ranges::sort(by_card[i], {}, [](const auto& item) { return item.second.start; });
    for (auto& item : by_card[i]) view.gpus[i].mig.push_back(std::move(item.second));
    for (std::size_t m = 0; m < by_card[i].size(); ++m) {
      instances[by_card[i][m].first] = &view.gpus[i].mig[m];
    }
  }
  for (const bool earmarks : {false, true}) {
    for (const Holding& holding : state.holdings()) {
      const bool earmark = holding.kind == HoldingKind::kEarmark;
      if (holding.kind == HoldingKind::kTentative || earmark != earmarks) continue;
      if (!holding.told.empty() && holding.known) {
        view.gpus[static_cast<std::size_t>(holding.picks.front().card)].uuid = holding.told;
      }
      AddPod(state, holding, view, instances);
    }
  }
  return view;
}

}  // namespace tranche
