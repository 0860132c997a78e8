#include "scheduler/engine/preemption/idle_work.h"

#include <algorithm>
#include <chrono>

namespace tranche {

GpuUse UseAfter(const std::optional<GpuUse>& before, const MeasuredPod& measured, Instant now) {
  GpuUse after{measured.permille.value_or(0), now, std::nullopt};
  if (!measured.idle) return after;
  const bool goes_on = before && before->idle_since && now >= before->measured &&
                       now - before->measured <= kUseGoodFor;
  after.idle_since = goes_on ? before->idle_since : now;
  return after;
}

Millis IdleNotice(Millis idle_after) {
  constexpr Millis kMost = std::chrono::minutes(10);
  return std::min(idle_after / 10, kMost);
}

std::optional<Instant> IdleEnd(const GpuClass* gpu_class, const PodRecord& record,
                               const HeldWork& work, Instant now) {
  if (gpu_class == nullptr || !gpu_class->idle_after) return std::nullopt;
  if (!record.use || !record.use->idle_since || !work.running) return std::nullopt;
  if (now - record.use->measured > kUseGoodFor) return std::nullopt;
  return std::max(*record.use->idle_since, *work.running) + *gpu_class->idle_after;
}

bool IsIdleWork(const GpuClass* gpu_class, const PodRecord& record, const HeldWork& work,
                Instant now) {
  const std::optional<Instant> end = IdleEnd(gpu_class, record, work, now);
  return end && now >= *end - IdleNotice(*gpu_class->idle_after);
}

}  // namespace tranche
