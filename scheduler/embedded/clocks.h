// The two clocks of the shell: the machine's, and one that an operator moves by hand.
//
// Thread rule: any thread. Both only ever go forward.
#pragma once

#include <chrono>
#include <mutex>

#include "scheduler/ports/clock.h"

namespace tranche {

// RFC 3339 cannot write a later moment.
inline constexpr Instant kLastInstant =
    std::chrono::sys_days(std::chrono::year(9999) / std::chrono::December / 31) +
    std::chrono::hours(23) + std::chrono::minutes(59) + std::chrono::seconds(59);

// Turns readings of a wall clock, which may be set back, into time that goes forward: while the
// wall is behind, time runs at half speed, so that it neither stops nor runs away. A plain value.
class ForwardTime {
 public:
  using Wall = std::chrono::sys_time<std::chrono::nanoseconds>;
  using Steady = std::chrono::nanoseconds;  // since any fixed moment

  Wall At(Wall wall, Steady steady);

 private:
  bool started_ = false;
  Wall last_{};
  Steady last_steady_{};
};

// Wall time of this machine.
class SystemClock : public Clock {
 public:
  Instant Now() const override;

 private:
  mutable std::mutex mutex_;
  mutable ForwardTime time_;
};

// Stands still until moved.
class ManualClock : public Clock {
 public:
  explicit ManualClock(Instant start);
  Instant Now() const override;
  // The time after the step. Negative steps count as zero; the clock stops at kLastInstant.
  Instant AdvanceBy(Millis step);

 private:
  mutable std::mutex mutex_;
  Instant now_;
};

}  // namespace tranche
