#include "scheduler/embedded/clocks.h"

#include <algorithm>

namespace tranche {

ForwardTime::Wall ForwardTime::At(Wall wall, Steady steady) {
  if (!started_) {
    started_ = true;
    last_ = wall;
  } else {
    last_ = std::max(wall, last_ + (steady - last_steady_) / 2);
  }
  last_steady_ = steady;
  return last_;
}

Instant SystemClock::Now() const {
  const std::lock_guard lock(mutex_);
  const auto wall =
      std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now());
  const auto steady = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
  return std::chrono::time_point_cast<Millis>(time_.At(wall, steady));
}

ManualClock::ManualClock(Instant start) : now_(std::min(start, kLastInstant)) {}

Instant ManualClock::Now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

Instant ManualClock::AdvanceBy(Millis step) {
  const std::lock_guard lock(mutex_);
  now_ += std::clamp(step, Millis::zero(), Millis(kLastInstant - now_));
  return now_;
}

}  // namespace tranche
