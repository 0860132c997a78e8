// Keeps forecasts of when waiting pods start, made from copies of the engine on the caller's
// thread, and remembers how long work ran.
//
// Thread rule: any thread; of callers that want new forecasts one makes them and the others wait
// for it. The engine is held for the slices of a copy alone. Cost: of large clusters a second or
// two of one core and, for that while, the memory of a second engine; no more than a tenth of the
// time is spent on it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/foresight/forecast.h"
#include "scheduler/foresight/runtimes.h"
#include "scheduler/foresight/track_record.h"
#include "scheduler/host/engine_host.h"
#include "scheduler/metrics/metrics.h"

namespace tranche {

// How long work ran, noted as it ends, and what was foretold of it. Watch from any thread; the
// others by one thread at a time.
class RunNotes {
 public:
  // What is noted and was not looked at since; beyond it the older half is forgotten.
  static constexpr std::size_t kMostNoted = 20'000;

  // What the ledger remembers, once, before the engine is asked anything.
  void Learn(const MeterHistory& history) { runtimes_.Learn(history); }
  // Under the engine's lock: only notes.
  void Watch(const Effects& effects);
  // With all that was noted; good until the next call.
  const Runtimes& CatchUp();
  // It knows of the starts that CatchUp came by. It begins anew with each leader.
  TrackRecord& record() { return record_; }

 private:
  struct Note {
    MeterEvent event;      // without devices
    bool evicted = false;  // its pod is asked to go; else the event happened
  };

  Runtimes runtimes_;
  TrackRecord record_;
  absl::Mutex mutex_;
  std::vector<Note> notes_ ABSL_GUARDED_BY(mutex_);
};

class Forecaster {
 public:
  // What takes no longer is made anew for everybody who asks; what does rests kRest times as long.
  static constexpr std::chrono::milliseconds kQuick{50};
  static constexpr int kRest = 10;
  // Forecasts of books that do not change are made anew all the same: time has passed.
  static constexpr std::chrono::seconds kOldest{60};
  // Pods that nobody has refused yet have no forecast for so long.
  static constexpr std::chrono::seconds kAskedBy{10};

  // Both outlive this.
  Forecaster(EngineHost& host, RunNotes& runs) : host_(host), runs_(runs) {}

  // As they were made last; null: none were yet.
  std::shared_ptr<const Forecasts> Latest() const;
  // As good as can be had now: made anew where they are outdated and it is not too soon.
  std::shared_ptr<const Forecasts> Fresh();
  // Forecasts in the making are given up: the process is about to end.
  void Stop() { stopping_ = true; }
  // By quota and class the median wait from the scrape on, of those that have a forecast.
  std::vector<metrics::ExpectedStartRow> Rows(Instant now) const;
  // Of those made last.
  metrics::ForecastSpansRow Spans() const;

 private:
  bool IsOutdated(uint64_t version, Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(making_);

  EngineHost& host_;
  RunNotes& runs_;  // under making_
  std::atomic<bool> stopping_ = false;
  absl::Mutex making_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::chrono::steady_clock::time_point made_ ABSL_GUARDED_BY(making_);
  std::chrono::nanoseconds took_ ABSL_GUARDED_BY(making_){0};
  mutable absl::Mutex mutex_;
  std::shared_ptr<const Forecasts> latest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche
