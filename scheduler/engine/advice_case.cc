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

std::vector<AdviceWaiter> Waiters(EngineParts& parts) {
  ClusterState& cluster = parts.cluster;
  std::vector<AdviceWaiter> waiting;
  for (const PodUid& uid : cluster.pending) {
    const PodRecord& record = *cluster.Find(uid);
    AdviceWaiter waiter;
    waiter.name = record.request->name;
    waiter.uid = uid;
    waiter.request = record.request;
    const RequestContext context = parts.rules.ContextOf(*record.request);
    if (context.membership.leaf != kNoQuota) {
      waiter.leaf = cluster.book.tree().name(context.membership.leaf);
    }
    if (context.membership.gpu_class) waiter.workload_class = context.membership.gpu_class->name;
    waiter.since = record.waits_since;
    waiter.quota_allows =
        context.whole == Reason::kNone &&
        (record.last_reason < Reason::kNoLeaf || record.last_reason > Reason::kNamespaceQuota);
    waiting.push_back(std::move(waiter));
  }
  std::ranges::sort(waiting, {},
                    [](const AdviceWaiter& waiter) { return std::pair(waiter.since, waiter.uid); });
  return waiting;
}

}  // namespace

AdviceCase Engine::Case(Instant now) {
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  parts.Advance(now);
  AdviceCase fleet;
  fleet.now = now;
  fleet.policy = cluster.default_policy();
  fleet.classes = cluster.set->classes;
  fleet.layout_values = cluster.scorer.layout_values();
  fleet.demand = parts.demand_notes.log.Rows(now);
  fleet.demand_since = parts.demand_notes.log.since();
  CheckpointAges ages;
  for (const auto& [uid, work] : cluster.book.holdings()) {
    const PodRecord* record = cluster.Find(uid);
    if (record != nullptr && record->traits.checkpoint && *record->traits.checkpoint <= now) {
      ages.Add(work.workload_class, now - *record->traits.checkpoint);
    }
  }
  for (const NodeId id : cluster.names.ascending()) {
    if (cluster.nodes[id] == nullptr || !cluster.nodes[id]->state.present()) continue;
    const NodeEntry& entry = *cluster.nodes[id];
    // A node whose MIG layout is being changed shows no devices for a while.
    const bool managed = !entry.state.facts().labels.Find(kMigConfig).empty();
    if (!entry.state.inventory().has_devices() && !managed) continue;
    fleet.nodes.push_back(AdviceNodeOf(entry, cluster.names.name(id)));
    for (const Holding& holding : entry.state.holdings()) {
      if (holding.kind == HoldingKind::kTentative || holding.kind == HoldingKind::kEarmark)
        continue;
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
      if (const HeldWork* work = cluster.book.Find(holding.uid)) {
        pod.leaf = work->leaf;
        pod.workload_class = work->workload_class;
        pod.lost_gpu_ms = parts.guards.LossOf(*record, *work, ages, now);
      }
      // Advice, not reclaim: quotas have no say in who might be restarted.
      const GpuClass* gpu_class = cluster.set->ClassOf(record->request->priority_class);
      const bool never = gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever;
      pod.evictable = !never && record->traits.evictable && !record->traits.owner.empty();
      fleet.pods.push_back(std::move(pod));
    }
  }
  fleet.waiting = Waiters(parts);
  return fleet;
}

}  // namespace tranche
