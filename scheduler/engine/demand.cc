// What pods ask for over time, and the cluster as values, for advice.
#include <algorithm>
#include <utility>

#include "scheduler/advice/case.h"
#include "scheduler/engine/impl.h"
#include "scheduler/engine/reclaim_case.h"

namespace tranche {
namespace {

constexpr std::string_view kMigConfig = "nvidia.com/mig.config";
constexpr std::string_view kMigConfigState = "nvidia.com/mig.config.state";
constexpr std::string_view kMigCapable = "nvidia.com/mig.capable";

}  // namespace

void Engine::Impl::NoteDemand(PodRecord& record, Instant now) {
  const bool placed = !record.node.empty();
  if (record.demand == nullptr) {
    const GpuClass* gpu_class = set->ClassOf(record.request->priority_class);
    record.demand = std::make_unique<PodRecord::Demand>();
    record.demand->kinds = KindsOf(*record.request, gpu_class == nullptr ? "" : gpu_class->name);
    for (const DemandKind& kind : record.demand->kinds) demand.Began(kind, now);
  }
  if (!placed || record.demand->placed) return;
  record.demand->placed = true;
  for (const DemandKind& kind : record.demand->kinds) demand.Placed(kind, now);
}

void Engine::Impl::EndDemand(PodRecord& record, Instant now) {
  if (record.demand == nullptr) return;
  for (const DemandKind& kind : record.demand->kinds) {
    demand.Ended(kind, record.demand->placed, now);
  }
  if (record.demand->placed) scorer.Departed(*record.request);
  record.demand = nullptr;
}

AdviceNode Engine::Impl::AdviceNodeOf(const NodeEntry& entry, const NodeName& name) const {
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

AdviceCase Engine::Case(Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  AdviceCase fleet;
  fleet.now = now;
  fleet.policy = impl.default_policy();
  fleet.classes = impl.set->classes;
  fleet.layout_values = impl.scorer.layout_values();
  fleet.demand = impl.demand.Rows(now);
  fleet.demand_since = impl.demand.since();
  CheckpointAges ages;
  for (const auto& [uid, work] : impl.book.holdings()) {
    const PodRecord* record = impl.Find(uid);
    if (record != nullptr && record->traits.checkpoint && *record->traits.checkpoint <= now) {
      ages.Add(work.workload_class, now - *record->traits.checkpoint);
    }
  }
  for (const NodeId id : impl.names.ascending()) {
    if (impl.nodes[id] == nullptr || !impl.nodes[id]->state.present()) continue;
    const NodeEntry& entry = *impl.nodes[id];
    // A node whose MIG layout is being changed shows no devices for a while.
    const bool managed = !entry.state.facts().labels.Find(kMigConfig).empty();
    if (!entry.state.inventory().has_devices() && !managed) continue;
    fleet.nodes.push_back(impl.AdviceNodeOf(entry, impl.names.name(id)));
    for (const Holding& holding : entry.state.holdings()) {
      if (holding.kind == HoldingKind::kClaim || holding.kind == HoldingKind::kEarmark) continue;
      const PodRecord* record = impl.Find(holding.uid);
      if (record == nullptr) continue;
      AdvicePod pod;
      pod.name = record->request->name;
      pod.uid = holding.uid;
      pod.node = fleet.nodes.size() - 1;
      pod.request = record->request;
      pod.picks = holding.picks;
      pod.use = holding.use;
      pod.known = holding.known;
      if (const HeldWork* work = impl.book.Find(holding.uid)) {
        pod.leaf = work->leaf;
        pod.workload_class = work->workload_class;
        pod.lost_gpu_ms = impl.guards.LossOf(*record, *work, ages, now);
      }
      // Advice, not reclaim: quotas have no say in who might be restarted.
      const GpuClass* gpu_class = impl.set->ClassOf(record->request->priority_class);
      const bool never = gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever;
      pod.evictable = !never && record->traits.evictable && !record->traits.owner.empty();
      fleet.pods.push_back(std::move(pod));
    }
  }
  for (const PodUid& uid : impl.pending) {
    const PodRecord& record = *impl.Find(uid);
    AdviceWaiter waiter;
    waiter.name = record.request->name;
    waiter.uid = uid;
    waiter.request = record.request;
    const RequestContext context = impl.ContextOf(*record.request);
    if (context.standing.leaf != kNoQuota) {
      waiter.leaf = impl.book.tree().name(context.standing.leaf);
    }
    if (context.standing.gpu_class) waiter.workload_class = context.standing.gpu_class->name;
    waiter.since = record.waits_since;
    waiter.quota_allows =
        context.whole == Reason::kNone &&
        (record.last_reason < Reason::kNoLeaf || record.last_reason > Reason::kNamespaceQuota);
    fleet.waiting.push_back(std::move(waiter));
  }
  std::ranges::sort(fleet.waiting, {},
                    [](const AdviceWaiter& waiter) { return std::pair(waiter.since, waiter.uid); });
  return fleet;
}

void Engine::SetHeld(const NodeName& node, std::string why, Instant now) {
  impl_->Advance(now);
  const NodeId id = impl_->names.Find(node.str());
  if (id == kNoNode || impl_->nodes[id] == nullptr) return;
  NodeEntry& entry = *impl_->nodes[id];
  const bool opens = why.empty() && !entry.held.empty();
  entry.held = std::move(why);
  impl_->Refresh(id, now);
  if (opens) impl_->NoteReopened(id, now);
}

bool Engine::Learn() { return impl_->scorer.Work(); }

}  // namespace tranche
