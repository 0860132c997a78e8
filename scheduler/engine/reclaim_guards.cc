// Who may be taken from: what the cluster shows of pods, and the guards over running work
// (quota-model section 4, "Against thrash").
#include <algorithm>
#include <utility>

#include "scheduler/engine/reclaim_case.h"

namespace tranche {
namespace {

// A terminating pod that outlives its grace by this much is no longer expected to leave.
constexpr Millis kLeaveSlack{60'000};

std::string OwnerOf(const PodFacts& pod) {
  const PodRequest& request = pod.request;
  if (!request.gang.empty()) return request.name.ns + "/gang/" + request.gang;
  if (!pod.owner.empty()) return pod.owner;
  return request.name.str();
}

}  // namespace

void Engine::Impl::NoteTraits(const PodUid& uid, PodRecord& record, const PodFacts& pod,
                              Instant now) {
  PodTraits& traits = record.traits;
  traits.owner = OwnerOf(pod);
  traits.labels = pod.labels;
  traits.checkpoint = pod.checkpointed_at;
  traits.evictable = pod.evictable;
  traits.gated = pod.gated;
  traits.gates = pod.our_gates;
  traits.foreign_gates = pod.foreign_gates;
  traits.unschedulable = pod.unschedulable;
  if (pod.terminating && !traits.leaves_at) {
    traits.leaves_at = pod.deletion_at.value_or(now);
    ++reclaims.version;
    NoteVictimLeaving(uid, now);
    if (!record.node.empty()) KeepNominated(record.node, now);
  }
  if (record.node.empty() && pod.node.empty() && !pod.terminating) {
    if (reclaims.returning.contains(traits.owner)) reclaims.returned.insert(uid);
    NoteHungry(uid, record);
    NoteNominated(uid, record, pod.nominated, now);
  }
}

bool Engine::Impl::IsLeaving(const PodRecord& record, Instant now) const {
  return record.traits.leaves_at && now <= *record.traits.leaves_at + kLeaveSlack;
}

const GpuQuota* Engine::Impl::SpecOf(const std::string& quota) const {
  const auto at = std::ranges::lower_bound(set->quotas, quota, {}, &GpuQuota::name);
  return at != set->quotas.end() && at->name == quota ? &*at : nullptr;
}

const GpuClass* Engine::Impl::ClassNamed(const std::string& name) const {
  const auto at = std::ranges::lower_bound(set->classes, name, {}, &GpuClass::name);
  return at != set->classes.end() && at->name == name ? &*at : nullptr;
}

bool Engine::Impl::EvictedItself(const std::string& owner) const {
  return own_reclaim != nullptr &&
         std::ranges::any_of(own_reclaim->victims, [&owner](const ReclaimVictim& victim) {
           return victim.owner == owner && victim.evicted_at;
         });
}

bool Engine::Impl::IsProtected(const PodRecord& record) const {
  const PodName& name = record.request->name;
  static const Labels kNone;
  const Labels& labels = record.traits.labels == nullptr ? kNone : *record.traits.labels;
  for (auto at = reclaims.disruption_budgets.lower_bound({name.ns, ""});
       at != reclaims.disruption_budgets.end() && at->first.first == name.ns; ++at) {
    if (at->second.allowed <= 0 && at->second.Covers(name.ns, name.name, labels)) return true;
  }
  return false;
}

GuardVerdict Engine::Impl::GuardOf(const PodUid& uid, const PodRecord& record, const HeldWork& work,
                                   Instant now) const {
  const GpuClass* gpu_class = ClassNamed(work.workload_class);
  const GpuQuota* leaf = SpecOf(work.leaf);
  const bool never = gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever;
  // Quotas that only observe, or are off, have nobody evicted.
  const bool enforced = leaf != nullptr && leaf->mode == QuotaMode::kEnforce;
  // One that was told to leave and has not is not told again: nobody knows when it will.
  const bool stuck = record.traits.leaves_at.has_value();
  if (never || !enforced || stuck || !record.traits.evictable || record.node.empty()) {
    return {false, {}, {}};
  }

  static const GpuClass kWithoutClass;
  const GpuClass& rules = gpu_class == nullptr ? kWithoutClass : *gpu_class;
  GuardVerdict verdict;
  const auto guard = [&](Guard which, std::optional<Instant> until) {
    if (!until || *until <= now || (verdict.until && *verdict.until >= *until)) return;
    verdict.guard = which;
    verdict.until = until;
  };
  const Millis least =
      std::min(std::max(rules.min_runtime, leaf->min_runtime.value_or(Millis{0})), kGuardCap);
  guard(Guard::kMinRuntime, work.running.value_or(work.since) + least);
  if (!EvictedItself(record.traits.owner)) {
    guard(Guard::kImmunity, reclaims.history.ImmuneUntil(record.traits.owner, rules.cooldown, now));
  }
  guard(Guard::kDailyLimit,
        reclaims.history.DayFullUntil(record.traits.owner, rules.max_evictions_per_day, now));
  guard(Guard::kSettled, record.traits.settled_until);
  if (const auto refused = reclaims.refused_until.find(uid);
      refused != reclaims.refused_until.end()) {
    guard(Guard::kDisruptionBudget, refused->second);
  }
  // A budget has no time of its own: whoever asks again is told again.
  if (IsProtected(record)) {
    verdict.guard = Guard::kDisruptionBudget;
    verdict.until.reset();
  }
  return verdict;
}

int64_t Engine::Impl::LossOf(const PodRecord& record, const HeldWork& work,
                             const CheckpointAges& ages, Instant now) const {
  static const GpuClass kWithoutClass;
  const GpuClass* gpu_class = ClassNamed(work.workload_class);
  const GpuClass& rules = gpu_class == nullptr ? kWithoutClass : *gpu_class;
  WorkAtRisk risk;
  for (const ModelCharge& part : work.parts) risk.charge = AddSaturating(risk.charge, part.charge);
  risk.running = work.running;
  risk.checkpoint = record.traits.checkpoint;
  risk.cap = rules.lost_work_cap;
  risk.restart_overhead = rules.restart_overhead;
  risk.earlier_evictions = reclaims.history.Evictions(record.traits.owner, now);
  return LostGpuMillis(risk, ages.Percentile(work.workload_class, rules.assumed_loss_percentile),
                       now);
}

void Engine::SetDisruptionBudget(DisruptionBudget budget, Instant now) {
  impl_->Advance(now);
  const std::pair key(budget.ns, budget.name);
  const auto found = impl_->reclaims.disruption_budgets.find(key);
  if (found != impl_->reclaims.disruption_budgets.end() && found->second == budget) return;
  impl_->reclaims.disruption_budgets.insert_or_assign(key, std::move(budget));
  ++impl_->reclaims.version;
}

void Engine::RemoveDisruptionBudget(const std::string& ns, const std::string& name) {
  impl_->reclaims.disruption_budgets.erase({ns, name});
  ++impl_->reclaims.version;
}

}  // namespace tranche
