#include "scheduler/engine/state/cluster_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "topology/base/mark.h"
#include "topology/base/plant.h"
#include "topology/gpu_model.h"

namespace tranche {
namespace {

// Hazard 13: a kubelet that refuses three GPU pods in five minutes gets none for five minutes,
// doubling up to an hour.
constexpr std::size_t kRefusals = 3;
constexpr Millis kRefusalWindow{300'000};
constexpr Millis kRefusalPause{300'000};
constexpr int kMaxDoublings = 4;
constexpr Millis kRefusalPauseMost{3'600'000};

}  // namespace

NodeId ClusterState::InternNode(const NodeName& name) {
  const NodeId id = names.Intern(name);
  if (id >= nodes.size()) {
    nodes.resize(id + 1);
    hot.resize(id + 1);
    pays.resize(id + 1);
  }
  if (nodes[id] == nullptr) {
    nodes[id] = std::make_unique<NodeEntry>();
    nodes[id]->state.SetEpoch(epoch);
    nodes[id]->state.AllowPlaceholders(options.placeholders);
    hot[id] = NodeHot{};
  }
  return id;
}

Reason ClusterState::ClosedReason(const NodeEntry& entry, Instant now) const {
  if (!entry.unreadable.empty()) return Reason::kNodeUnreadable;
  if (!entry.state.present()) return Reason::kUnknownNode;
  const NodeFacts& facts = entry.state.facts();
  if (!facts.ready) return Reason::kNodeNotReady;
  // It says more than the cordon that mostly comes with it.
  if (entry.interruption) return Reason::kInterrupted;
  if (facts.cordoned) return Reason::kNodeCordoned;
  if (!facts.agent_unreadable.empty()) return Reason::kAgentUnreadable;
  if (!facts.operator_busy.empty() || !entry.held.empty()) return Reason::kOperatorBusy;
  if (entry.window && entry.window->from <= now) return Reason::kMaintenance;
  if (!entry.unkept.empty()) return Reason::kDevicesUnknown;
  if (entry.stable_at && now < *entry.stable_at) return Reason::kNodeUnstable;
  if (entry.refusing_until && now < *entry.refusing_until) return Reason::kNodeRefusing;
  // Where DRA alone serves, claims name the devices.
  const bool by_dra =
      !entry.state.inventory().has_devices() && catalog.MayHaveDevices(facts.name.str());
  if (entry.state.hard().devices_unknown && !by_dra) return Reason::kDevicesUnknown;
  return Reason::kNone;
}

NodePay ClusterState::PayOf(const NodeState& state, Instant now) const {
  NodePay pay{Instant(), static_cast<int64_t>(state.inventory().cards.size()) * kWholeGpu.count()};
  for (const Holding& holding : state.holdings()) {
    if (holding.kind == HoldingKind::kTentative) continue;
    const std::optional<Millis>& runtime = holding.request->expected_runtime;
    if (!runtime) return {Instant(), pay.milli};
    const HeldWork* work = book.Find(holding.uid);
    const Instant since = work == nullptr ? now : work->running.value_or(work->since);
    // One that has outlived its word ends nobody knows when.
    if (since + *runtime <= now) return {Instant(), pay.milli};
    pay.until = std::max(pay.until, since + *runtime);
  }
  return pay;
}

void ClusterState::Refresh(NodeId id, Instant now) {
  if (id >= refreshed_.size()) refreshed_.resize(id + 1);
  if (!refreshed_[id]) refreshed_ids_.push_back(id);
  refreshed_[id] = true;
  NodeEntry& entry = *nodes[id];
  if (!entry.exists() && entry.state.holdings().empty()) {
    windows -= entry.window ? 1 : 0;
    interrupted_nodes -= entry.interruption ? 1 : 0;
    scorer.SetNode(id.number(), {});
    states.Release(entry.hard);
    states.Release(entry.soft);
    nodes[id] = nullptr;
    hot[id] = NodeHot{};
    names.Forget(id);
    return;
  }
  if (placeholders.Concerns(names.name(id), entry.state)) TendPlaceholders(id, now);
  if (!entry.state.inventory().zones.empty()) FollowZones(id, now);
  entry.state.Signature(entry.state.hard(), text_);
  const StateId hard = states.Acquire(text_);
  if (entry.state.has_tentative()) entry.state.Signature(entry.state.soft(), text_);
  const StateId soft = states.Acquire(text_);
  states.Release(entry.hard);
  states.Release(entry.soft);
  entry.hard = hard;
  entry.soft = soft;
  entry.closed = ClosedReason(entry, now);
  const bool changed = hot[id].hard != hard || hot[id].closed != entry.closed;
  version_ += changed;
  if (changed) {
    const bool counts = entry.closed == Reason::kNone && entry.state.inventory().has_devices();
    scorer.SetNode(id.number(), counts ? RoomOf(entry.state, entry.state.hard()) : NodeRoom{});
  }
  if (prices.any()) pays[id] = PayOf(entry.state, now);
  hot[id] = {hard, soft, entry.closed, entry.counts_as(), entry.price_group, entry.kind};
}

void ClusterState::NotePlainCpu(const NodeName& node, Instant now) {
  const NodeId id = names.Find(node.str());
  if (id == kNoNode || nodes[id] == nullptr) return;
  NodeState& state = nodes[id]->state;
  state.SetPlainCpu(plain_seen.On(node));
  if (state.present() && state.inventory().has_devices()) Refresh(id, now);
}

PodRecord* ClusterState::Find(const PodUid& uid) {
  const auto found = pods.find(uid);
  return found == pods.end() ? nullptr : &found->second;
}

PodRecord& ClusterState::Touch(const PodRequest& request) {
  auto [at, fresh] = pods.try_emplace(request.uid);
  PodRecord& record = at->second;
  if (fresh) {
    record.request = std::make_shared<const PodRequest>(request);
    pods_by_name.emplace(request.name, request.uid);
    // It may have been seen before somebody wrote down what it wishes.
    const bool was_plain = plain.Has(request.uid) || plain_seen.Has(request.uid);
    if (was_plain && !TRANCHE_PLANTED(refusal_of_a_pod_annotated_later_is_lost)) {
      plain.Forget(request.uid);
      const NodeName node = plain_seen.Remove(request.uid);
      if (!node.empty()) NotePlainCpu(node, latest);
    }
  }
  return record;
}

void ClusterState::DropTentative(const PodUid& uid, PodRecord& record, Instant now) {
  if (record.tentative == kNoNode) return;
  const NodeId id = std::exchange(record.tentative, kNoNode);
  record.ranked.clear();
  --tentative_placements;
  if (nodes[id] == nullptr) return;
  const Holding* holding = nodes[id]->state.Find(uid);
  if (holding == nullptr || holding->kind != HoldingKind::kTentative) return;
  nodes[id]->state.Release(uid);
  Refresh(id, now);
}

void ClusterState::NoteRefusal(const NodeName& node, Instant now) {
  const NodeId id = names.Find(node.str());
  if (id == kNoNode) return;
  NodeEntry& entry = *nodes[id];
  // A quiet hour after the last pause wipes the slate.
  if (entry.refusing_until && now - *entry.refusing_until > kRefusalPauseMost) {
    entry.refusal_rounds = 0;
  }
  entry.refusals.push_back(now);
  while (now - entry.refusals.front() > kRefusalWindow) entry.refusals.pop_front();
  if (entry.refusals.size() < kRefusals) return;
  TRANCHE_MARK(kubelet_refusals_rest_the_node);
  entry.refusals.clear();
  const int doublings = std::min(entry.refusal_rounds++, kMaxDoublings);
  const Millis pause = std::min(kRefusalPause * (1 << doublings), kRefusalPauseMost);
  entry.refusing_until = now + pause;
  reopenings.emplace(now + pause, id);
  Refresh(id, now);
}

ChargeKind ClusterState::KindOf(const Inventory& inventory) {
  std::string kind =
      fmt::format("{}|{}|{}|{}|{}", inventory.product, inventory.model, inventory.metered_pool,
                  static_cast<int>(inventory.sharing), inventory.replicas);
  const Card* last = nullptr;
  for (const Card& card : inventory.cards) {
    const bool same = last != nullptr && last->mode == card.mode && last->memory == card.memory &&
                      last->product == card.product;
    last = &card;
    if (same) continue;
    kind +=
        fmt::format("|{},{},{}", static_cast<int>(card.mode), card.memory.count(), card.product);
  }
  for (const MigPool& pool : inventory.pools) {
    kind += fmt::format("|{},{},{}", pool.key, pool.profile, pool.replicas);
  }
  return kinds.try_emplace(std::move(kind), ChargeKind{kinds.size()}).first->second;
}

void ClusterState::CountCards(const NodeEntry& entry, int sign) {
  ++inventories;
  if (!entry.state.present()) return;
  const Inventory& inventory = entry.state.inventory();
  for (const Card& card : inventory.cards) {
    const std::string model = ModelOf(inventory, card);
    const int64_t quanta =
        sign * GpuEquivalents(ChargeOfPart({kQuantaPerGpu, kQuantaPerGpu}, card.part));
    capacity[model] += quanta;
    if (inventory.metered_pool.empty()) continue;
    pool_capacity[LineName(model, inventory.metered_pool)] += quanta;
    pool_capacity[LineName(kAnyModel, inventory.metered_pool)] += quanta;
  }
}

void ClusterState::FollowZones(NodeId id, Instant now) {
  NodeEntry& entry = *nodes[id];
  const Inventory& inventory = entry.state.inventory();
  std::map<PodUid, int64_t> held;
  for (const Holding& holding : entry.state.holdings()) {
    if (holding.kind != HoldingKind::kAllocation && holding.kind != HoldingKind::kReservation) {
      continue;
    }
    for (const PoolNeed& need : holding.request->pool_needs) {
      if (need.key == kGpuKey) held[holding.uid] = need.count;
    }
  }
  int64_t shown = 0;
  for (const ZoneCounts& zone : inventory.zones) shown += zone.gpus_capacity - zone.gpus_available;
  const std::optional<Instant> before = entry.zone_lag.due();
  entry.state.SetUnshown(entry.zone_lag.Update(held, shown, now));
  const std::optional<Instant> due = entry.zone_lag.due();
  if (due && due != before) reopenings.emplace(*due, id);
}

HeldWork ClusterState::WorkOf(const PodRequest& request, const QuotaMembership& membership,
                              Instant since) const {
  HeldWork work;
  work.pod = request.name;
  work.gang = request.gang;
  work.runtime = request.expected_runtime;
  if (membership.leaf != kNoQuota) work.leaf = book.tree().name(membership.leaf);
  if (membership.gpu_class != nullptr) work.workload_class = membership.gpu_class->name;
  work.since = since;
  return work;
}

void ClusterState::TendPlaceholders(NodeId id, Instant now) {
  NodeEntry& entry = *nodes[id];
  PlaceholderTending tending = placeholders.Tend(names.name(id), entry.state, now);
  entry.unkept = std::move(tending.unkept);
  for (PlaceholderOrder& order : tending.orders) {
    outbox.agents().placeholders.push_back(std::move(order));
    reopenings.emplace(now + options.placeholder_times.patience, id);
  }
  for (auto& [uid, allocation] : tending.ended) {
    const bool granted = allocation.has_value();
    outbox.agents().placeholder_turns.push_back({uid, granted, std::move(allocation)});
  }
  if (tending.due && tending.due != entry.placeholders_due) reopenings.emplace(*tending.due, id);
  entry.placeholders_due = tending.due;
}

void ClusterState::ErasePod(const PodUid& uid) {
  const auto found = pods.find(uid);
  pods_by_name.erase({found->second.request->name, uid});
  pending.erase(uid);
  terminating.erase(uid);
  checkpointing.erase(uid);
  pods.erase(found);
}

std::vector<NodeId> ClusterState::TakeRefreshed() {
  for (const NodeId id : refreshed_ids_) refreshed_[id] = false;
  return std::exchange(refreshed_ids_, {});
}

void GoOnFromEpochs(ClusterState& cluster, Instant now) {
  const int64_t most = cluster.options.epoch + kMostEpochsAhead;
  int64_t highest = cluster.epoch;
  for (const auto& entry : cluster.nodes) {
    if (entry == nullptr) continue;
    for (const Holding& holding : entry->state.holdings()) {
      if (!holding.allocation || holding.allocation->epoch > most) continue;
      highest = std::max(highest, holding.allocation->epoch);
    }
  }
  if (highest == cluster.epoch || TRANCHE_PLANTED(later_epochs_close_nodes)) return;
  TRANCHE_MARK(goes_on_from_a_higher_epoch);
  cluster.epoch = highest;
  for (NodeId id{0}; id < cluster.nodes.size(); ++id) {
    if (cluster.nodes[id] == nullptr) continue;
    cluster.nodes[id]->state.SetEpoch(highest);
    cluster.Refresh(id, now);
  }
}

std::optional<Allocation> AllocationOn(const ClusterState& cluster, const NodeName& node,
                                       const PodUid& uid) {
  const NodeId id = cluster.names.Find(node.str());
  const Holding* holding =
      id == kNoNode || cluster.nodes[id] == nullptr ? nullptr : cluster.nodes[id]->state.Find(uid);
  return holding == nullptr ? std::nullopt : holding->allocation;
}

bool KnowsModelOf(const ClusterState& cluster, const PodRequest& request) {
  const auto known = [&cluster](const std::string& pattern) {
    return IsCatalogueModel(pattern) ||
           std::ranges::any_of(cluster.capacity, [&](const auto& model) {
             return model.second > 0 && MatchesModel(pattern, model.first);
           });
  };
  return request.models_any.empty() || std::ranges::any_of(request.models_any, known);
}

}  // namespace tranche
