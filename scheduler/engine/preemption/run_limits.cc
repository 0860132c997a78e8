#include "scheduler/engine/preemption/run_limits.h"

#include <algorithm>

#include "scheduler/engine/preemption/idle_work.h"
#include "scheduler/engine/selection/pool_windows.h"
#include "scheduler/index/agent_cards.h"

namespace tranche {
namespace {

// How long before its end a pod is warned: a tenth of what it may run, at most this.
constexpr Millis kWarningMost{600'000};

const GpuPolicy& PolicyOf(const ClusterState& cluster, const HeldWork& work) {
  const GpuPolicy* const governs = cluster.set->PolicyFor(work.pod.ns);
  return governs == nullptr ? cluster.default_policy() : *governs;
}

bool AnyNodeToLeave(const ClusterState& cluster) {
  return cluster.windows > 0 || cluster.ill_nodes > 0 || cluster.emptied_nodes > 0 ||
         cluster.interrupted_nodes > 0;
}

std::optional<RunEnd> EndByClass(const GpuClass* gpu_class, const HeldWork& work) {
  if (gpu_class == nullptr || !gpu_class->max_runtime) return std::nullopt;
  const Millis most = *gpu_class->max_runtime;
  return RunEnd{work.running.value_or(work.since) + most, std::min(most / 10, kWarningMost),
                ReclaimRule::kMaxRuntime, work.workload_class};
}

std::optional<RunEnd> EndByIdleness(const ClusterState& cluster, const GpuClass* gpu_class,
                                    const PodRecord& record, const HeldWork& work) {
  const std::optional<Instant> at = IdleEnd(gpu_class, record, work, cluster.latest);
  if (!at) return std::nullopt;
  if (PolicyOf(cluster, work).on_idle == OnIdle::kKeep) return std::nullopt;
  return RunEnd{*at, IdleNotice(*gpu_class->idle_after), ReclaimRule::kIdle, work.workload_class};
}

std::optional<RunEnd> EndByWindow(const NodeEntry* node, const GpuClass* gpu_class) {
  const std::optional<Instant> at = node == nullptr ? std::nullopt : DrainedAt(*node, gpu_class);
  if (!at) return std::nullopt;
  return RunEnd{*at, kDrainNotice, ReclaimRule::kMaintenance, node->window->pool};
}

// A GPU that its agent calls unhealthy may be well again in a while, and the kubelet keeps GPUs of
// an agent that has gone for five minutes.
constexpr Millis kIllPatience{600'000};
constexpr Millis kIllNotice{60'000};

// There are two minutes, or half of one: whoever may be asked is asked at once.
std::optional<RunEnd> EndByInterruption(const ClusterState& cluster, const NodeEntry* node,
                                        const GpuClass* gpu_class, const PodRecord& record,
                                        const HeldWork& work) {
  if (node == nullptr || !node->interruption || !node->state.present()) return std::nullopt;
  if (!node->interruption->notice->drains) return std::nullopt;
  if (gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever) return std::nullopt;
  const std::optional<OnInterruption>& own = node->state.inventory().rules.on_interruption;
  const OnInterruption what = own.value_or(PolicyOf(cluster, work).on_interruption);
  if (what != OnInterruption::kDrain) return std::nullopt;
  return RunEnd{node->interruption->since, Millis::zero(), ReclaimRule::kInterruption,
                record.node.str()};
}

std::optional<RunEnd> EndByHealth(const ClusterState& cluster, const NodeEntry* node,
                                  const GpuClass* gpu_class, const PodRecord& record,
                                  const HeldWork& work) {
  if (node == nullptr || node->ill.empty()) return std::nullopt;
  if (gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever) return std::nullopt;
  const std::optional<OnUnhealthy>& own = node->state.inventory().rules.on_unhealthy;
  const OnUnhealthy what = own.value_or(PolicyOf(cluster, work).on_unhealthy);
  if (what != OnUnhealthy::kDrain) return std::nullopt;
  const Holding* const holding = node->state.Find(record.request->uid);
  const bool told = holding != nullptr && holding->allocation &&
                    holding->allocation->knowledge == Knowledge::kExact;
  if (!told) return std::nullopt;
  std::optional<RunEnd> end;
  for (const ContainerDevices& container : holding->allocation->containers) {
    for (const Device& device : container.devices) {
      const auto ill = node->ill.find(device.uuid);
      if (ill == node->ill.end() || (end && end->at <= ill->second + kIllPatience)) continue;
      end = RunEnd{ill->second + kIllPatience, kIllNotice, ReclaimRule::kUnhealthy,
                   record.node.str()};
    }
  }
  return end;
}

std::optional<RunEnd> EndByEmptying(const ClusterState& cluster, const NodeEntry* node,
                                    const PodRecord& record, const HeldWork& work) {
  if (node == nullptr || !node->emptying) return std::nullopt;
  // Where else a pod could go that uses claims nobody has looked.
  if (cluster.book.Find(record.request->uid) == nullptr) return std::nullopt;
  const auto& [rule, since] = *node->emptying;
  if (!MayBeMoved(cluster, rule, record, work)) return std::nullopt;
  return RunEnd{since + kEmptyingNotice, kEmptyingNotice, rule, record.node.str()};
}

std::optional<RunEnd> Earlier(std::optional<RunEnd> one, std::optional<RunEnd> other) {
  return other && (!one || other->at < one->at) ? other : one;
}

}  // namespace

bool NoteHealth(ClusterState& cluster, NodeId id, Instant now) {
  NodeEntry& entry = *cluster.nodes[id];
  std::map<GpuUuid, Instant> ill;
  for (const GpuUuid& gpu : IllDevices(entry.state.facts())) {
    const auto known = entry.ill.find(gpu);
    ill.emplace(gpu, known == entry.ill.end() ? now : known->second);
  }
  if (ill == entry.ill) return false;
  cluster.ill_nodes += static_cast<int>(!ill.empty()) - static_cast<int>(!entry.ill.empty());
  entry.ill = std::move(ill);
  return true;
}

bool NoteInterruption(ClusterState& cluster, NodeId id, Instant now) {
  NodeEntry& entry = *cluster.nodes[id];
  const InterruptionNotice* const notice = FindNotice(entry.state.facts().taints);
  const InterruptionNotice* const before =
      entry.interruption ? entry.interruption->notice : nullptr;
  if (notice == before) return false;
  cluster.interrupted_nodes +=
      static_cast<int>(notice != nullptr) - static_cast<int>(before != nullptr);
  if (notice == nullptr) {
    entry.interruption.reset();
  } else {
    entry.interruption = NodeInterruption{notice, now};
  }
  return true;
}

bool MayBeMoved(const ClusterState& cluster, ReclaimRule rule, const PodRecord& record,
                const HeldWork& work) {
  const GpuClass* gpu_class = cluster.set->ClassNamed(work.workload_class);
  if (gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever) return false;
  const PodTraits& traits = record.traits;
  if (!traits.evictable || !traits.made_anew || traits.left_alone) return false;
  if (!record.gang.empty()) return false;
  if (work.quota == kNoQuota || work.marks.state != QuotaState::kInQuota) return true;
  const std::optional<Instant>& checkpoint = traits.checkpoint;
  return rule == ReclaimRule::kConsolidate && checkpoint &&
         cluster.latest - *checkpoint <= kFreshCheckpoint;
}

std::optional<RunEnd> RunEndOf(const ClusterState& cluster, const PodRecord& record,
                               const HeldWork& work) {
  const GpuClass* gpu_class = cluster.set->ClassNamed(work.workload_class);
  std::optional<RunEnd> end =
      Earlier(EndByClass(gpu_class, work), EndByIdleness(cluster, gpu_class, record, work));
  if (!AnyNodeToLeave(cluster)) return end;
  const NodeId id = cluster.names.Find(record.node.str());
  const NodeEntry* const node = id == kNoNode ? nullptr : cluster.nodes[id].get();
  end = Earlier(std::move(end), EndByWindow(node, gpu_class));
  end = Earlier(std::move(end), EndByEmptying(cluster, node, record, work));
  end = Earlier(std::move(end), EndByInterruption(cluster, node, gpu_class, record, work));
  return Earlier(std::move(end), EndByHealth(cluster, node, gpu_class, record, work));
}

void RunLimits::Put(const PodUid& uid, Limit& limit, Instant due) {
  limit.due = due;
  DuesOf(limit).emplace(due, uid);
}

std::optional<RunEnd> RunLimits::EndOf(const PodUid& uid) const {
  const PodRecord* const record = claims_.Find(uid);
  if (record == nullptr || record->node.empty()) return std::nullopt;
  if (const HeldWork* const work = cluster_.book.Find(uid))
    return RunEndOf(cluster_, *record, *work);
  const std::optional<HeldWork> by_claim = claims_.WorkOf(uid);
  return by_claim ? RunEndOf(cluster_, *record, *by_claim) : std::nullopt;
}

void RunLimits::Note(const PodUid& uid) {
  const std::optional<RunEnd> end = EndOf(uid);
  if (!end) return Forget(uid);
  const auto [at, fresh] = limits_.try_emplace(uid);
  Limit& limit = at->second;
  if (!fresh && limit.end == end->at) return;
  if (!fresh) DuesOf(limit).erase({limit.due, uid});
  limit.end = end->at;
  limit.warned = false;
  Put(uid, limit, end->at - end->notice);
}

void RunLimits::Forget(const PodUid& uid) {
  const auto at = limits_.find(uid);
  if (at == limits_.end()) return;
  DuesOf(at->second).erase({at->second.due, uid});
  limits_.erase(at);
}

void RunLimits::Regroup() {
  const bool any = AnyNodeToLeave(cluster_) ||
                   std::ranges::any_of(cluster_.set->classes, [](const GpuClass& one) {
                     return one.max_runtime || one.idle_after;
                   });
  if (!any) {
    limits_.clear();
    warnings_.clear();
    ends_.clear();
    return;
  }
  for (const auto& [uid, work] : cluster_.book.holdings()) Note(uid);
  for (const auto& [uid, pod] : books_.pods) Note(uid);
}

void RunLimits::NoteNode(NodeId id) {
  for (const Holding& holding : cluster_.nodes[id]->state.holdings()) Note(holding.uid);
  const auto by_claims = books_.on_node.find(cluster_.names.name(id));
  if (by_claims == books_.on_node.end()) return;
  for (const PodUid& uid : by_claims->second) Note(uid);
}

void RunLimits::Tend(Instant now) {
  while (!warnings_.empty() && warnings_.begin()->first <= now) {
    const PodUid uid = warnings_.begin()->second;
    warnings_.erase(warnings_.begin());
    const std::optional<RunEnd> end = EndOf(uid);
    if (!end) {
      limits_.erase(uid);
      continue;
    }
    Limit& limit = limits_.at(uid);
    if (end->at != limit.end) {
      // What was measured is too old by now: it ends by another rule, later.
      limit.end = end->at;
      Put(uid, limit, end->at - end->notice);
      continue;
    }
    limit.warned = true;
    Put(uid, limit, std::max(limit.end, now + end->notice));
    cluster_.outbox.reclaims().warnings.push_back(
        {claims_.Find(uid)->request->name, uid, end->rule, end->source, limit.due});
  }
}

std::optional<PodUid> RunLimits::Next(Instant now) const {
  if (ends_.empty() || ends_.begin()->first > now) return std::nullopt;
  return ends_.begin()->second;
}

void RunLimits::Postpone(const PodUid& uid, Instant until) {
  const auto at = limits_.find(uid);
  if (at == limits_.end()) return;
  DuesOf(at->second).erase({at->second.due, uid});
  Put(uid, at->second, until);
}

std::optional<Instant> RunLimits::Due() const {
  std::optional<Instant> next;
  for (const Dues* dues : {&warnings_, &ends_}) {
    if (dues->empty()) continue;
    const Instant first = dues->begin()->first;
    next = next ? std::min(*next, first) : first;
  }
  return next;
}

}  // namespace tranche
