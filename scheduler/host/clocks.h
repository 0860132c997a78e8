// The two clocks of the shell: the machine's, and one that an operator moves by hand.
//
// Thread rule: any thread. Both only ever go forward.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/ports/clock.h"

namespace tranche {

// RFC 3339 cannot write a later moment.
inline constexpr Instant kLastInstant =
    std::chrono::sys_days(std::chrono::year(9999) / std::chrono::December / 31) +
    std::chrono::hours(23) + std::chrono::minutes(59) + std::chrono::seconds(59);

// Time that runs at the rate of the boot-time clock, which suspension does not stop, and keeps to
// the wall clock where it can without going back (hazards 40). A plain value.
//
// The wall more than a second ahead: a step, followed at once and told. Ahead by less: caught up
// with by at most a millisecond a second, so that intervals stay true to one part in a thousand.
// The wall behind: time runs on at its true rate, ahead of the wall, until the wall has caught up.
class ForwardTime {
 public:
  using Wall = std::chrono::sys_time<std::chrono::microseconds>;
  using Boot = std::chrono::microseconds;  // since any fixed moment

  static constexpr Boot kStep = std::chrono::seconds(1);

  // Starts at the first reading's wall time, at `not_before` if that is later.
  explicit ForwardTime(Instant not_before) : time_(not_before) {}

  // The time at a reading of both clocks; `boot` never goes back.
  Wall At(Wall wall, Boot boot);
  // How far the last reading was ahead of the wall; 0 unless it is a step or more. Changes by steps
  // alone, so that each change is worth a line in the log.
  Boot ahead() const { return ahead_; }
  // Steps since the last call, oldest first.
  std::vector<ClockStep> TakeSteps() { return std::exchange(steps_, {}); }

 private:
  bool started_ = false;
  Wall time_;    // at boot_
  Boot boot_{};  // moved on once a second, and at steps
  Boot ahead_{};
  std::vector<ClockStep> steps_;
};

// Time of this machine.
class SystemClock : public Clock {
 public:
  // `not_before`: the last moment known from an earlier life. `cluster`: see Clock::Cluster; null:
  // nothing is known.
  explicit SystemClock(Instant not_before = Instant{},
                       std::function<std::optional<ClusterTime>()> cluster = nullptr);
  Instant Now() const override;
  std::vector<ClockStep> TakeSteps() override;
  std::optional<ClusterTime> Cluster() const override {
    return cluster_ ? cluster_() : std::nullopt;
  }
  // As ForwardTime::ahead.
  std::chrono::milliseconds AheadOfWall() const;

 private:
  ForwardTime::Wall Read() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<std::optional<ClusterTime>()> cluster_;
  mutable absl::Mutex mutex_;
  mutable ForwardTime time_ ABSL_GUARDED_BY(mutex_);
};

// Stands still until moved.
class ManualClock : public Clock {
 public:
  explicit ManualClock(Instant start);
  Instant Now() const override;
  // The time after the step. Negative steps count as zero; the clock stops at kLastInstant.
  Instant AdvanceBy(Millis step);

 private:
  mutable absl::Mutex mutex_;
  Instant now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche
