// Work whose GPUs do nothing (GPUClass idleAfter), as far as somebody who measures them tells.
//
// Pure functions; thread rule of the state.
#pragma once

#include <optional>

#include "policy/spec.h"
#include "quota/quota_book.h"
#include "scheduler/engine/state/records.h"

namespace tranche {

// `before` and what was measured `now`. A gap in what is told of at most kUseGoodFor is none.
GpuUse UseAfter(const std::optional<GpuUse>& before, const MeasuredPod& measured, Instant now);

// How long before its end idle work is told: a tenth of idleAfter, ten minutes at most.
Millis IdleNotice(Millis idle_after);

// When it will have been idle for as long as its class allows; nullopt: it works, has not begun to
// run, its class has no idleAfter, or what was measured is too old at `now`.
std::optional<Instant> IdleEnd(const GpuClass* gpu_class, const PodRecord& record,
                               const HeldWork& work, Instant now);

// It is near that end or beyond: nothing worth keeping is lost with it.
bool IsIdleWork(const GpuClass* gpu_class, const PodRecord& record, const HeldWork& work,
                Instant now);

}  // namespace tranche
