#include "scheduler/engine/preemption/run_limits.h"

#include <algorithm>

namespace tranche {
namespace {

// How long before its end a pod is warned: a tenth of what it may run, at most this.
constexpr Millis kWarningMost{600'000};

Millis WarningOf(Millis most) { return std::min(most / 10, kWarningMost); }

// Null: the class has no limit.
const Millis* MostOf(const PolicySet& set, const HeldWork& work) {
  const GpuClass* gpu_class = set.ClassNamed(work.workload_class);
  return gpu_class == nullptr || !gpu_class->max_runtime ? nullptr : &*gpu_class->max_runtime;
}

}  // namespace

std::optional<Instant> RunLimitOf(const PolicySet& set, const HeldWork& work) {
  const Millis* const most = MostOf(set, work);
  if (most == nullptr) return std::nullopt;
  return work.running.value_or(work.since) + *most;
}

void RunLimits::Put(const PodUid& uid, Limit& limit, Instant due) {
  limit.due = due;
  DuesOf(limit).emplace(due, uid);
}

void RunLimits::Note(const PodUid& uid) {
  const PodRecord* record = cluster_.Find(uid);
  const HeldWork* work = cluster_.book.Find(uid);
  const Millis* const most = work == nullptr ? nullptr : MostOf(*cluster_.set, *work);
  if (most == nullptr || record == nullptr || record->node.empty()) return Forget(uid);
  const Instant end = *RunLimitOf(*cluster_.set, *work);
  const auto [at, fresh] = limits_.try_emplace(uid);
  Limit& limit = at->second;
  if (!fresh && limit.end == end) return;
  if (!fresh) DuesOf(limit).erase({limit.due, uid});
  limit.end = end;
  limit.warned = false;
  Put(uid, limit, end - WarningOf(*most));
}

void RunLimits::Forget(const PodUid& uid) {
  const auto at = limits_.find(uid);
  if (at == limits_.end()) return;
  DuesOf(at->second).erase({at->second.due, uid});
  limits_.erase(at);
}

void RunLimits::Regroup() {
  const bool any = std::ranges::any_of(
      cluster_.set->classes, [](const GpuClass& one) { return one.max_runtime.has_value(); });
  if (!any) {
    limits_.clear();
    warnings_.clear();
    ends_.clear();
    return;
  }
  for (const auto& [uid, work] : cluster_.book.holdings()) Note(uid);
}

void RunLimits::Tend(Instant now) {
  while (!warnings_.empty() && warnings_.begin()->first <= now) {
    const PodUid uid = warnings_.begin()->second;
    warnings_.erase(warnings_.begin());
    const HeldWork* work = cluster_.book.Find(uid);
    const Millis* const most = work == nullptr ? nullptr : MostOf(*cluster_.set, *work);
    if (most == nullptr) {
      limits_.erase(uid);
      continue;
    }
    Limit& limit = limits_.at(uid);
    limit.warned = true;
    Put(uid, limit, std::max(limit.end, now + WarningOf(*most)));
    cluster_.outbox.reclaims().warnings.push_back(
        {work->pod, uid, work->workload_class, limit.due});
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
