// Tells the engine how much the GPUs of pods do, by what somebody who measures them answers.
//
// A pod is measured where all it holds is: its cards by UUID, where the allocation is exact and of
// whole cards or shares of them, or rows that name the pod, one for each of its devices. Of a card
// that several pods share counts what a row says to be the pod's own use (wire/agents/use_rows.h);
// without one the use of the card counts for it: only where nobody uses the card is it idle. Of a
// gang the busiest member counts for all. What is not measured is not idle.
//
// What pods did from then on is kept beside (UseHistory), for advice; it and the spans in which
// they did nothing go to the ledger, so that a restart forgets neither.
//
// Thread rule: Take by one thread at a time, the rest from any. Cost of Take: O(rows + pods log
// pods) outside the engine's lock, which is held for a few hundred pods at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/advice/use_history.h"
#include "scheduler/controllers/card_readings.h"
#include "scheduler/controllers/idle_spans.h"
#include "scheduler/facts/gpu_use.h"
#include "scheduler/host/host.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/ports/ledger.h"
#include "scheduler/wire/agents/use_rows.h"

namespace tranche {

// Of the pods that hold devices, in their order.
struct Measurement {
  std::vector<MeasuredPod> pods;
  // The same pods, each for itself also in a gang. Where no mean is told the busiest moment counts
  // for it.
  std::vector<PodSample> samples;
};
// `idle_permille`: so much or less is idle.
Measurement MeasurePods(std::span<const PodView> pods, std::span<const wire::UseRow> rows,
                        int idle_permille);

class UseReader {
 public:
  // Rows that go to the ledger at a time: its commits stay short.
  static constexpr std::size_t kMostTold = 256;

  // `host` outlives this, and `ledger`, if any; `now`: since when answers are awaited; `before`:
  // what the ledger knew.
  UseReader(Host& host, int idle_percent, Instant now, Ledger* ledger, std::vector<PodWork> before)
      : host_(host), idle_permille_(idle_percent * 10), ledger_(ledger), read_at_(now) {
    history_.Restore(std::move(before));
  }

  // An answer of Prometheus, or why there is none.
  void Take(const absl::StatusOr<std::string>& answer);
  metrics::UseRow row(Instant now) const;
  // A copy. Cost: O(pods that hold devices).
  UseHistory history() const;
  // Of the last answer; null: there was none.
  std::shared_ptr<const CardReadings> readings() const {
    const absl::MutexLock lock(&mutex_);
    return readings_;
  }

 private:
  void TakeRows(const wire::UseRows& rows);
  void NoteFailure(std::string_view why);
  // What there is to tell of these now.
  void TellLedger(std::span<const PodView> pods, const std::vector<PodUid>& grown, Instant now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Host& host_;
  const int idle_permille_;
  Ledger* const ledger_;  // null: nothing is told
  mutable absl::Mutex mutex_;
  Instant read_at_ ABSL_GUARDED_BY(mutex_);  // the last answer
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;
  metrics::UseRow row_ ABSL_GUARDED_BY(mutex_);
  UseHistory history_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const CardReadings> readings_ ABSL_GUARDED_BY(mutex_);
  IdleSpans idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche
