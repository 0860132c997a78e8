// The cluster as values, for advice.
#include <algorithm>
#include <utility>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/parts.h"

namespace tranche {
namespace {

constexpr std::string_view kMigConfig = "nvidia.com/mig.config";
constexpr std::string_view kMigConfigState = "nvidia.com/mig.config.state";
constexpr std::string_view kMigCapable = "nvidia.com/mig.capable";

AdviceNode AdviceNodeOf(const NodeEntry& entry, const NodeName& name) {
  const NodeState& state = entry.state;
  AdviceNode node;
  node.name = name;
  node.inventory = state.inventory();
  node.load = state.hard();
  node.cpu_capacity = state.cpu_capacity();
  node.cpu_free = node.cpu_capacity - node.load.cpu;
  node.open = entry.closed == Reason::kNone;
  node.mig_strategy = state.facts().mig_strategy;
  node.taints = state.facts().taints;
  node.labels = state.facts().labels;
  const LabelText& labels = node.labels;
  node.mig_config = labels.Find(kMigConfig);
  node.mig_config_state = labels.Find(kMigConfigState);
  node.has_mig_manager = !node.mig_config.empty() || labels.Find(kMigCapable) == "true";
  return node;
}

AdviceWaiter WaiterOf(EngineParts& parts, const PodUid& uid, const PodRecord& record) {
  AdviceWaiter waiter;
  waiter.name = record.request->name;
  waiter.uid = uid;
  waiter.request = record.request;
  const RequestContext context = parts.rules.ContextOf(*record.request);
  if (context.membership.leaf != kNoQuota) {
    waiter.leaf = parts.cluster.book.tree().name(context.membership.leaf);
  }
  if (context.membership.gpu_class) waiter.workload_class = context.membership.gpu_class->name;
  waiter.since = record.waits_since;
  if (record.filtered) waiter.last_reason = record.last_reason;
  waiter.gated = record.traits.gated;
  waiter.provisioning = record.traits.provisioning;
  waiter.maker = record.traits.maker;
  waiter.quota_allows =
      context.whole == Reason::kNone &&
      (record.last_reason < Reason::kNoLeaf || record.last_reason > Reason::kNamespaceQuota);
  return waiter;
}

void AddNode(EngineParts& parts, NodeId id, CaseWalk& walk) {
  ClusterState& cluster = parts.cluster;
  if (cluster.nodes[id] == nullptr || !cluster.nodes[id]->state.present()) return;
  const NodeEntry& entry = *cluster.nodes[id];
  // A node whose MIG layout is being changed shows no devices for a while.
  const bool managed = !entry.state.facts().labels.Find(kMigConfig).empty();
  if (!entry.state.inventory().has_devices() && !managed) return;
  AdviceCase& fleet = walk.fleet;
  fleet.nodes.push_back(AdviceNodeOf(entry, cluster.names.name(id)));
  for (const Holding& holding : entry.state.holdings()) {
    if (holding.kind == HoldingKind::kTentative || holding.kind == HoldingKind::kEarmark) continue;
    const PodRecord* record = cluster.Find(holding.uid);
    if (record == nullptr) continue;
    AdvicePod pod;
    pod.name = record->request->name;
    pod.uid = holding.uid;
    pod.node = fleet.nodes.size() - 1;
    pod.request = holding.by_record ? holding.by_record : record->request;
    pod.picks = holding.picks;
    pod.use = holding.use;
    pod.known = holding.known;
    const PodTraits& traits = record->traits;
    pod.leaves = traits.leaves_at.has_value();
    // The pods of a gang go together.
    if (traits.of_replica_set && record->gang.empty()) pod.replica_set = traits.maker;
    pod.deletion_cost = traits.deletion_cost;
    if (const HeldWork* work = cluster.book.Find(holding.uid)) {
      pod.leaf = work->leaf;
      pod.workload_class = work->workload_class;
      pod.borrowed = work->quota != kNoQuota && work->marks.state != QuotaState::kInQuota;
      pod.lost_gpu_ms = parts.guards.LossOf(*record, *work, walk.ages, fleet.now);
      const GuardVerdict verdict = parts.guards.OfTime(holding.uid, *record, *work, fleet.now);
      const bool free = verdict.touchable && verdict.guard == Guard::kNone;
      pod.moves_to_consolidate =
          free && MayBeMoved(cluster, ReclaimRule::kConsolidate, *record, *work);
      pod.moves_for_layout = free && MayBeMoved(cluster, ReclaimRule::kMigLayout, *record, *work);
    }
    // Advice, not reclaim: quotas have no say in who might be restarted.
    const GpuClass* gpu_class = cluster.set->ClassOf(record->request->priority_class);
    const bool never = gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever;
    pod.evictable = !never && traits.evictable && traits.made_anew && !traits.left_alone;
    fleet.pods.push_back(std::move(pod));
  }
}

void AddAges(ClusterState& cluster, CaseWalk& walk) {
  const auto& holdings = cluster.book.holdings();
  auto at = walk.after ? holdings.upper_bound(*walk.after) : holdings.begin();
  for (int i = 0; i < CaseWalk::kPodsAtOnce && at != holdings.end(); ++i, ++at) {
    const PodRecord* record = cluster.Find(at->first);
    walk.after = at->first;
    if (record == nullptr || !record->traits.checkpoint) continue;
    if (*record->traits.checkpoint > walk.fleet.now) continue;
    walk.ages.Add(at->second.workload_class, walk.fleet.now - *record->traits.checkpoint);
  }
  if (at != holdings.end()) return;
  walk.after.reset();
  walk.stage = CaseWalk::Stage::kNodes;
}

void AddNodes(EngineParts& parts, CaseWalk& walk) {
  ClusterState& cluster = parts.cluster;
  const std::vector<NodeId>& order = cluster.names.ascending();
  const auto name_of = [&cluster](NodeId id) { return cluster.names.name(id); };
  auto at = walk.node ? std::ranges::upper_bound(order, *walk.node, {}, name_of) : order.begin();
  for (int i = 0; i < CaseWalk::kNodesAtOnce && at != order.end(); ++i, ++at) {
    AddNode(parts, *at, walk);
    walk.node = name_of(*at);
  }
  if (at == order.end()) walk.stage = CaseWalk::Stage::kWaiters;
}

void AddWaiters(EngineParts& parts, CaseWalk& walk) {
  const std::set<PodUid>& pending = parts.cluster.pending;
  auto at = walk.after ? pending.upper_bound(*walk.after) : pending.begin();
  for (int i = 0; i < CaseWalk::kPodsAtOnce && at != pending.end(); ++i, ++at) {
    walk.fleet.waiting.push_back(WaiterOf(parts, *at, *parts.cluster.Find(*at)));
    walk.after = *at;
  }
  if (at == pending.end()) walk.stage = CaseWalk::Stage::kDone;
}

}  // namespace

void Engine::CaseSlice(CaseWalk& walk, Instant now) {
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  parts.Advance(now);
  AdviceCase& fleet = walk.fleet;
  if (!walk.begun) {
    walk.begun = true;
    fleet.now = now;
    fleet.policy = cluster.default_policy();
    fleet.classes = cluster.set->classes;
    fleet.layout_values = cluster.scorer.layout_values();
    fleet.demand = parts.demand_notes.log.Rows(now);
    fleet.demand_since = parts.demand_notes.log.since();
    // Growing later would move all of them at once.
    fleet.nodes.reserve(cluster.nodes.size());
    fleet.pods.reserve(cluster.book.holdings().size());
    fleet.waiting.reserve(cluster.pending.size());
    return;
  }
  switch (walk.stage) {
    case CaseWalk::Stage::kMarks: {
      const auto next = cluster.book.RefreshMarks(walk.leaf, CaseWalk::kWorkAtOnce);
      walk.leaf = next.value_or("");
      if (!next) walk.stage = CaseWalk::Stage::kAges;
      return;
    }
    case CaseWalk::Stage::kAges:
      return AddAges(cluster, walk);
    case CaseWalk::Stage::kNodes:
      return AddNodes(parts, walk);
    case CaseWalk::Stage::kWaiters:
      return AddWaiters(parts, walk);
    case CaseWalk::Stage::kDone:
      return;
  }
}

AdviceCase CaseWalk::Take() {
  std::ranges::sort(fleet.waiting, {},
                    [](const AdviceWaiter& waiter) { return std::pair(waiter.since, waiter.uid); });
  return std::move(fleet);
}

AdviceCase Engine::Case(Instant now) {
  CaseWalk walk;
  while (!walk.done()) CaseSlice(walk, now);
  return walk.Take();
}

}  // namespace tranche
