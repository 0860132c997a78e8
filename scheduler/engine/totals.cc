// Sums over all nodes and pods for metrics, slice by slice.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/parts.h"

namespace tranche {
namespace {

// By state: good while nothing changes.
using StrandedByState = std::map<StateId, int64_t>;

// A node whose devices are read out of slices and claims takes as long as so many others.
constexpr int kNodesOfSlices = 16;

int64_t StrandedOf(ClusterState& cluster, const NodeEntry& entry, StrandedByState& stranded) {
  auto [at, fresh] = stranded.try_emplace(entry.hard, 0);
  if (fresh) at->second = cluster.scorer.Waste(RoomOf(entry.state, entry.state.hard()));
  return at->second;
}

void AddCards(ClusterState& cluster, const NodeEntry& entry, StrandedByState& stranded,
              ModelTotals& row) {
  const Inventory& inventory = entry.state.inventory();
  const Load& load = entry.state.hard();
  std::vector<CardLoad> used = load.cards;
  for (std::size_t p = 0; p < inventory.pools.size(); ++p) {
    const MigPool& pool = inventory.pools[p];
    for (std::size_t i = 0; i < pool.slots.size(); ++i) {
      CardLoad& card = used[static_cast<std::size_t>(pool.slots[i].card)];
      card.milli += pool.milli * load.slots[p][i];
      card.memory += pool.memory * load.slots[p][i];
    }
  }
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    const Card& card = inventory.cards[i];
    ++row.gpus;
    row.capacity +=
        MilliGpuRoundedUp(GpuEquivalents(ChargeOfPart({kQuantaPerGpu, kQuantaPerGpu}, card.part)));
    row.memory_capacity += card.memory;
    row.memory_allocated += used[i].memory;
    // Pods others placed may over-use a card; it is then simply full.
    const MilliGpu milli = std::min(used[i].milli, kWholeGpu);
    const Charge charge = ChargeOfShare(milli, used[i].memory, card.memory);
    row.allocated += MilliGpuRoundedUp(GpuEquivalents(ChargeOfPart(charge, card.part)));
  }
  row.stranded += MilliGpu::Of(StrandedOf(cluster, entry, stranded));
}

// Cards that only resource slices tell of; what claims hold of them is known exactly.
void AddClaimedCards(EngineParts& parts, NodeId id, TotalsWalk& walk) {
  NodeView view;
  parts.claim_views.ViewGpus(id, view);
  if (view.gpus.empty()) return;
  ModelTotals& row = walk.models[{view.model, parts.cluster.nodes[id]->pool}];
  for (const GpuView& gpu : view.gpus) {
    ++row.gpus;
    row.capacity += kWholeGpu;
    row.memory_capacity += gpu.memory;
    const Mebibytes memory = gpu.memory - gpu.free_memory;
    row.memory_allocated += memory;
    const MilliGpu milli = std::min(kWholeGpu - gpu.free_milli, kWholeGpu);
    row.allocated += MilliGpuRoundedUp(GpuEquivalents(ChargeOfShare(milli, memory, gpu.memory)));
  }
}

// How many nodes of the slice it was worth.
int AddNode(EngineParts& parts, NodeId id, StrandedByState& stranded, TotalsWalk& walk) {
  const NodeEntry* const entry = parts.cluster.nodes[id].get();
  if (entry == nullptr || !entry->state.present()) return 1;
  ++walk.totals.nodes;
  walk.totals.nodes_closed += entry->closed != Reason::kNone;
  for (const Holding& holding : entry->state.holdings()) {
    walk.totals.pods_devices_unknown += holding.kind == HoldingKind::kAllocation &&
                                        !holding.known && !parts.claim_wishes.HasOnlyDraGpus(id);
  }
  const Inventory& inventory = entry->state.inventory();
  if (parts.claim_wishes.HasOnlyDraGpus(id)) {
    AddClaimedCards(parts, id, walk);
    return kNodesOfSlices;
  }
  if (!inventory.cards.empty()) {
    AddCards(parts.cluster, *entry, stranded, walk.models[{inventory.model, entry->pool}]);
  }
  return 1;
}

void AddTo(ModelTotals& sum, const ModelTotals& part) {
  sum.gpus += part.gpus;
  sum.capacity += part.capacity;
  sum.allocated += part.allocated;
  sum.stranded += part.stranded;
  sum.memory_capacity += part.memory_capacity;
  sum.memory_allocated += part.memory_allocated;
}

void AddClaimingPods(const ClaimBooks& books, EngineTotals& totals) {
  for (const auto& [uid, pod] : books.pods) {
    if (pod.wants_gpus) (pod.node.empty() ? totals.pods_pending : totals.pods_bound) += 1;
  }
}

void AddPods(const ClusterState& cluster, TotalsWalk& walk) {
  auto at = cluster.pods_by_name.upper_bound(walk.pod);
  for (int i = 0; i < TotalsWalk::kPodsAtOnce && at != cluster.pods_by_name.end(); ++i, ++at) {
    walk.pod = *at;
    const auto found = cluster.pods.find(at->second);
    if (found == cluster.pods.end() || found->second.terminal) continue;
    (found->second.node.empty() ? walk.totals.pods_pending : walk.totals.pods_bound) += 1;
  }
  if (at == cluster.pods_by_name.end()) walk.stage = TotalsWalk::Stage::kDone;
}

// What is counted as it happens.
void AddCounted(const EngineParts& parts, EngineTotals& totals) {
  const ClusterState& cluster = parts.cluster;
  totals.tentative_placements = cluster.tentative_placements;
  totals.reservations = static_cast<int64_t>(cluster.reservations.size());
  if (!cluster.reservations.empty())
    totals.oldest_reservation = cluster.reservations.begin()->first;
  totals.agent_waiting =
      cluster.agents.waiting() + static_cast<int64_t>(cluster.placeholders.waiting());
  totals.agent_serving = cluster.agents.serving();
  totals.agent_passed_over = cluster.agents.passed_over();
  totals.book_faults = cluster.outbox.faults();
  totals.early = parts.early_nominations.totals();
}

}  // namespace

void Engine::TotalsSlice(TotalsWalk& walk) const {
  EngineParts& parts = *parts_;
  if (walk.stage == TotalsWalk::Stage::kPods) AddPods(parts.cluster, walk);
  if (walk.stage == TotalsWalk::Stage::kNodes) {
    StrandedByState stranded;
    for (int i = 0; i < TotalsWalk::kNodesAtOnce && walk.node < parts.cluster.nodes.size();
         ++walk.node) {
      i += AddNode(parts, walk.node, stranded, walk);
    }
    if (walk.node >= parts.cluster.nodes.size()) walk.stage = TotalsWalk::Stage::kPods;
  }
  if (!walk.done()) return;
  AddCounted(parts, walk.totals);
  AddClaimingPods(parts.claim_books, walk.totals);
  for (const auto& [key, row] : walk.models) {
    const auto& [model, pool] = key;
    std::vector<ModelTotals>& models = walk.totals.models;
    if (models.empty() || models.back().model != model) models.emplace_back().model = model;
    AddTo(models.back(), row);
    if (!pool.empty()) walk.totals.pools.push_back({model, pool, row.gpus, row.allocated});
  }
}

void Engine::FleetSlice(FleetWalk& walk) const {
  ClusterState& cluster = parts_->cluster;
  StrandedByState stranded;
  walk.set = cluster.set;
  for (int i = 0; i < FleetWalk::kNodesAtOnce && walk.node < cluster.nodes.size();
       ++walk.node, ++i) {
    const NodeEntry* const entry = cluster.nodes[walk.node].get();
    if (entry == nullptr || !entry->state.present()) continue;
    NodeView view;
    if (parts_->claim_wishes.HasOnlyDraGpus(walk.node)) {
      parts_->claim_views.ViewGpus(walk.node, view);
    }
    const Inventory& inventory = entry->state.inventory();
    const bool claimed = !view.gpus.empty();
    const std::size_t gpus = claimed ? view.gpus.size() : inventory.cards.size();
    if (gpus == 0) continue;
    walk.nodes.push_back({cluster.names.name(walk.node), claimed ? view.model : inventory.model,
                          static_cast<int64_t>(gpus),
                          TraitsOf(*cluster.set, entry->state.facts().labels.Finder())});
    // What claims leave of cards that only slices tell of is in no room.
    if (walk.with_stranded && !inventory.cards.empty() &&
        !parts_->claim_wishes.HasOnlyDraGpus(walk.node)) {
      walk.nodes.back().stranded = StrandedOf(cluster, *entry, stranded);
    }
  }
  walk.through = walk.node >= cluster.nodes.size();
}

EngineTotals Engine::Totals() const {
  TotalsWalk walk;
  while (!walk.done()) TotalsSlice(walk);
  return std::move(walk.totals);
}

}  // namespace tranche
