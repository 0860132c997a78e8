#include "scheduler/host/clocks.h"

#include <algorithm>

#include "scheduler/ports/boot_time.h"

namespace tranche {
namespace {

constexpr ForwardTime::Boot kSlewPeriod = std::chrono::seconds(1);
constexpr int64_t kSlewFraction = 1000;

Instant Truncated(ForwardTime::Wall time) { return std::chrono::floor<Millis>(time); }

}  // namespace

ForwardTime::Wall ForwardTime::At(Wall wall, Boot boot) {
  if (!started_) {
    started_ = true;
    time_ = std::max(time_, wall);
    boot_ = boot;
  }
  const Boot passed = boot - boot_;
  const Boot behind = wall - (time_ + passed);
  if (behind > kStep) {
    steps_.push_back({Truncated(time_ + passed), Truncated(wall)});
    time_ = wall;
    boot_ = boot;
  } else if (passed >= kSlewPeriod) {
    time_ += passed + std::clamp(behind, Boot::zero(), passed / kSlewFraction);
    boot_ = boot;
  }
  const Wall now = time_ + (boot - boot_);
  const Boot ahead = now - wall;
  if (std::chrono::abs(ahead - ahead_) >= kStep) ahead_ = ahead < kStep ? Boot::zero() : ahead;
  return now;
}

SystemClock::SystemClock(Instant not_before, std::function<std::optional<ClusterTime>()> cluster)
    : cluster_(std::move(cluster)), time_(std::min(not_before, kLastInstant)) {}

ForwardTime::Wall SystemClock::Read() const {
  // The wall first: a pause between the two readings must not look like a step of the wall.
  const auto wall = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  return time_.At(wall, std::chrono::floor<ForwardTime::Boot>(BootNow()));
}

Instant SystemClock::Now() const {
  const absl::MutexLock lock(&mutex_);
  return Truncated(Read());
}

std::vector<ClockStep> SystemClock::TakeSteps() {
  const absl::MutexLock lock(&mutex_);
  Read();  // a step that Now would find is reported before it
  return time_.TakeSteps();
}

std::chrono::milliseconds SystemClock::AheadOfWall() const {
  const absl::MutexLock lock(&mutex_);
  Read();
  return std::chrono::floor<std::chrono::milliseconds>(time_.ahead());
}

ManualClock::ManualClock(Instant start) : now_(std::min(start, kLastInstant)) {}

Instant ManualClock::Now() const {
  const absl::MutexLock lock(&mutex_);
  return now_;
}

Instant ManualClock::AdvanceBy(Millis step) {
  const absl::MutexLock lock(&mutex_);
  now_ += std::clamp(step, Millis::zero(), Millis(kLastInstant - now_));
  return now_;
}

}  // namespace tranche
