#include "scheduler/engine/preemption/eviction_guards.h"

#include <algorithm>
#include <map>

#include "quota/tree/limits.h"
#include "scheduler/engine/preemption/idle_work.h"
#include "topology/base/plant.h"

namespace tranche {

bool EvictionGuards::EvictedItself(const std::string& owner) const {
  return own_ != nullptr &&
         std::ranges::any_of(own_->victims, [&owner](const ReclaimVictim& victim) {
           return victim.owner == owner && victim.evicted_at;
         });
}

template <typename See>
void EvictionGuards::ForBudgetsOf(const PodRecord& record, const See& see) const {
  const PodName& name = record.request->name;
  static const Labels kNone;
  const Labels& labels = record.traits.labels == nullptr ? kNone : *record.traits.labels;
  for (auto at = state_.disruption_budgets.lower_bound({name.ns, ""});
       at != state_.disruption_budgets.end() && at->first.first == name.ns; ++at) {
    if (at->second.Covers(name.ns, name.name, labels)) see(at->second);
  }
}

bool EvictionGuards::IsProtected(const PodRecord& record) const {
  bool found = false;
  ForBudgetsOf(record, [&](const DisruptionBudget& budget) { found |= budget.allowed <= 0; });
  return found;
}

bool EvictionGuards::BudgetsAllow(std::span<const PodRecord* const> pods, Instant now) const {
  std::map<const DisruptionBudget*, int64_t> asked;
  for (const PodRecord* record : pods) {
    const auto refused = state_.refused_until.find(record->request->uid);
    if (refused != state_.refused_until.end() && refused->second > now) return false;
    ForBudgetsOf(*record, [&](const DisruptionBudget& budget) { ++asked[&budget]; });
  }
  return std::ranges::all_of(
      asked, [](const auto& entry) { return entry.second <= entry.first->allowed; });
}

bool EvictionGuards::MayStop(const PodRecord& record, const HeldWork& work) const {
  const GpuQuota* leaf = set_->QuotaNamed(work.leaf);
  const bool enforced = leaf == nullptr || leaf->mode == QuotaMode::kEnforce;
  return enforced && record.traits.evictable && !record.traits.leaves_at && !record.node.empty();
}

bool EvictionGuards::IsNeverEvicted(const HeldWork& work) const {
  const GpuClass* gpu_class = set_->ClassNamed(work.workload_class);
  return gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever;
}

bool EvictionGuards::IsWithinNominal(const HeldWork& work) const {
  const GpuClass* gpu_class = set_->ClassNamed(work.workload_class);
  return work.within_nominal && gpu_class != nullptr &&
         gpu_class->preemptible == Preemptible::kOverNominal;
}

GuardVerdict EvictionGuards::OfTime(const PodUid& uid, const PodRecord& record,
                                    const HeldWork& work, Instant now) const {
  const GpuClass* gpu_class = set_->ClassNamed(work.workload_class);
  const GpuQuota* leaf = set_->QuotaNamed(work.leaf);
  // Quotas that only observe, or are off, have nobody evicted. What never had a team is judged
  // by class alone; what is left of one that is gone is nobody's victim.
  const bool enforced = leaf == nullptr ? work.leaf.empty() : leaf->mode == QuotaMode::kEnforce;
  // One that was told to leave and has not is not told again: nobody knows when it will.
  const bool stuck = record.traits.leaves_at.has_value();
  if (IsNeverEvicted(work) || !enforced || stuck || !record.traits.evictable ||
      record.node.empty()) {
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
  const Millis least_of_team = leaf == nullptr ? Millis{0} : leaf->min_runtime.value_or(Millis{0});
  const Millis least = std::min(std::max(rules.min_runtime, least_of_team), kGuardCap);
  const Instant ran_least = work.running.value_or(work.since) + least;
  if (ran_least > now && !TRANCHE_PLANTED(least_runtime_is_not_guarded)) {
    guard(Guard::kMinRuntime, ran_least);
  }
  guard(Guard::kImmunity,
        state_.history.ImmuneUntil(record.traits.owner, work.since, rules.cooldown, now));
  if (!EvictedItself(record.traits.owner)) {
    guard(Guard::kDailyLimit,
          state_.history.DayFullUntil(record.traits.owner, rules.max_evictions_per_day, now));
  }
  guard(Guard::kSettled, record.traits.settled_until);
  if (const auto refused = state_.refused_until.find(uid); refused != state_.refused_until.end()) {
    guard(Guard::kDisruptionBudget, refused->second);
  }
  return verdict;
}

GuardVerdict EvictionGuards::Of(const PodUid& uid, const PodRecord& record, const HeldWork& work,
                                Instant now) const {
  GuardVerdict verdict = OfTime(uid, record, work, now);
  // A budget has no time of its own: whoever asks again is told again.
  if (verdict.touchable && IsProtected(record)) {
    verdict.guard = Guard::kDisruptionBudget;
    verdict.until.reset();
  }
  return verdict;
}

WorkInTime EvictionGuards::RiskOf(const PodRecord& record, const HeldWork& work,
                                  const CheckpointAges& ages, Instant now) const {
  static const GpuClass kWithoutClass;
  const GpuClass* gpu_class = set_->ClassNamed(work.workload_class);
  const GpuClass& rules = gpu_class == nullptr ? kWithoutClass : *gpu_class;
  WorkInTime risk;
  risk.work.charge = TotalOf(work.parts);
  risk.work.running = work.running;
  risk.work.checkpoint = record.traits.checkpoint;
  risk.work.cap = rules.lost_work_cap;
  risk.work.restart_overhead = rules.restart_overhead;
  risk.work.earlier_evictions = state_.history.Evictions(record.traits.owner, now);
  risk.assumed = ages.Percentile(work.workload_class, rules.assumed_loss_percentile);
  risk.gap = record.traits.checkpoint_gap;
  // What does nothing has nothing to lose but its start.
  risk.work.relocatable = IsIdleWork(gpu_class, record, work, now);
  return risk;
}

int64_t EvictionGuards::LossOf(const PodRecord& record, const HeldWork& work,
                               const CheckpointAges& ages, Instant now) const {
  const WorkInTime risk = RiskOf(record, work, ages, now);
  return LostGpuMillis(risk.work, risk.assumed, now);
}

std::string_view GuardName(Guard guard) {
  switch (guard) {
    case Guard::kDisruptionBudget:
      return "by a PodDisruptionBudget";
    case Guard::kMinRuntime:
      return "by its minimum runtime";
    case Guard::kImmunity:
      return "as it was evicted lately";
    case Guard::kDailyLimit:
      return "as it was evicted often today";
    case Guard::kSettled:
      return "as it has just started";
    case Guard::kNone:
      break;
  }
  return "by the hourly limit of its team";
}

}  // namespace tranche
