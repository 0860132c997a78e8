// The books compared with themselves while the server runs: a slice at a time, so that nobody
// waits, and from the start again five minutes after the last look at all of them.
//
// A fault is never mended here: whoever keeps that part of the books is wrong, and what they say is
// in the log. Placement goes on.
//
// Thread rule: Tick from one thread; findings() from any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/engine/audit_walk.h"
#include "scheduler/host/engine_host.h"

namespace tranche {

inline constexpr Millis kSelfCheckEvery{300'000};
// A bind is pursued for five minutes; what is reserved for twice as long has nobody behind it.
inline constexpr Millis kReservationIsStuck{600'000};

class SelfCheck {
 public:
  // Lines of one walk that reach the log.
  static constexpr std::size_t kMostLines = 20;

  // Of the last walk that came to its end.
  struct Findings {
    int64_t walks = 0;
    int64_t faults = 0;
    int64_t stuck_reservations = 0;
  };

  explicit SelfCheck(EngineHost& engine) : engine_(engine) {}

  // One slice, where a walk is under way or due.
  void Tick(Instant now);
  Findings findings() const;

 private:
  void Finish(Instant now);

  EngineHost& engine_;
  Instant due_ = Instant::min();
  AuditWalk walk_;
  std::vector<std::string> faults_;
  mutable absl::Mutex mutex_;
  Findings findings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche
