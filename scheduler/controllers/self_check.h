// The books compared with themselves and with what the watch shows while the server runs: a slice
// at a time, so that nobody waits, and from the start again five minutes after the last look at all
// of them, or once the watch had to list all pods again.
//
// What does not add up is told in the log. A sum is summed again; of two parts that disagree nobody
// knows which is wrong, and they stay. Placement goes on. A pod that the API server does not have
// is forgotten, and counted as a fault: one that was read past the watch, or bound before the watch
// told of it, and deleted while the watch was down, is in no list, and no word of its end will
// come. Only pods that the watch does not show are asked for, again until the API server has said
// of each whether it is there. One whose bind is under way is left to the binder, which asks too.
//
// Thread rule: Tick from one thread; findings() from any. Answers of the API server may come on any
// thread, and after this is gone; `host` outlives them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/controllers/audit_run.h"
#include "scheduler/host/host.h"
#include "scheduler/ports/pod_writes.h"

namespace tranche {

inline constexpr Millis kSelfCheckEvery{300'000};
inline constexpr Millis kAskAgainAfter{10'000};

class SelfCheck {
 public:
  // Lines of one walk that reach the log.
  static constexpr std::size_t kMostLines = 20;

  // Of the last walk that came to its end.
  struct Findings {
    int64_t walks = 0;
    int64_t faults = 0;  // mended ones and forgotten pods among them
    int64_t stuck_reservations = 0;
    int64_t mended = 0;  // sums, in all walks
  };

  SelfCheck(Host& host, PodWrites& pods)
      : host_(host), pods_(pods), run_(host), shared_(std::make_shared<Shared>()) {}

  // One slice, where a walk is under way or due.
  void Tick(Instant now);
  Findings findings() const;

 private:
  struct Shared {  // with answers that may come later than the last call
    absl::Mutex mutex;
    Findings findings ABSL_GUARDED_BY(mutex);
    std::vector<std::pair<PodUid, PodName>> unanswered ABSL_GUARDED_BY(mutex);
  };

  void Finish(Instant now);
  void Ask(const std::vector<std::pair<PodUid, PodName>>& pods, Instant now);
  // Those of the last round of whom the API server said nothing.
  void AskAgain(Instant now);

  Host& host_;
  PodWrites& pods_;
  Instant due_ = Instant::min();
  Instant ask_again_ = Instant::min();
  bool under_way_ = false;
  int64_t lists_ = 0;            // of pods, when the last walk began
  std::optional<AuditRun> run_;  // never empty
  std::shared_ptr<Shared> shared_;
};

}  // namespace tranche
