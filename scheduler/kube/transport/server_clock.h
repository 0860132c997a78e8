// What the API server's clock says, and how far this machine's is from it, by the Date of its
// answers.
//
// A Date is a whole second, and an answer takes time to come: one answer tells a second and more.
// The last ones together tell less, as long as they agree; where they do not (a clock was set, or
// servers behind one address differ) the newest counts. Thread rule: any thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/ports/boot_time.h"
#include "scheduler/ports/clock.h"

namespace tranche::kube {

// "Mon, 23 Nov 2026 16:46:05 GMT". nullopt: it is not written so.
std::optional<std::chrono::sys_seconds> ParseDate(std::string_view text);

class ServerClock {
 public:
  using Wall = std::chrono::system_clock::time_point;
  // What this machine's clocks say at one moment.
  struct Moment {
    Wall wall;
    BootTime boot;
    static Moment Now() { return {std::chrono::system_clock::now(), BootNow()}; }
  };
  // From here on it is logged, and that it is over; servers behind one address may differ, so
  // no more than once a minute.
  static constexpr std::chrono::seconds kTooFar{5};
  static constexpr std::chrono::minutes kLogGap{1};

  // One answer: when its request was sent, when its head was there, and its Date.
  void Note(BootTime asked, const Moment& answered, std::chrono::sys_seconds date);
  // nullopt: there was no answer with a Date yet.
  std::optional<ClusterTime> At(BootTime boot) const;
  std::optional<ClusterTime> Now() const { return At(BootNow()); }
  // Our wall clock ahead of theirs, at least; negative: behind.
  std::optional<std::chrono::milliseconds> AheadAt(const Moment& moment) const;
  std::optional<std::chrono::milliseconds> ahead() const { return AheadAt(Moment::Now()); }

 private:
  // Their time since 1970 less our boot-time is between the two.
  struct Range {
    std::chrono::nanoseconds least;
    std::chrono::nanoseconds most;
  };
  // What the newest answers agree on.
  Range Agreed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::array<Range, 16> answers_ ABSL_GUARDED_BY(mutex_) = {};
  std::size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Range> known_ ABSL_GUARDED_BY(mutex_);
  bool too_far_ ABSL_GUARDED_BY(mutex_) = false;  // as logged
  std::optional<BootTime> logged_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche::kube
