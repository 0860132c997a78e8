// A lock that is not given back to who has just had it while others wait: some callers come first,
// since somebody stands behind each of them, and the rest take turns in the order they came.
//
// A mutex alone goes to whoever asks at the right moment, and work in many small pieces asks for
// the next piece before those who sleep have woken up.
//
// Thread rule: any thread. Cost: as of a mutex; letting it go looks at who waits in turn.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tranche {

class ABSL_LOCKABLE TurnLock {
 public:
  // Of those who come first, so many may follow each other while another one waits for its turn.
  static constexpr int kMostInARow = 64;

  void LockFirst() ABSL_EXCLUSIVE_LOCK_FUNCTION();
  void LockInTurn() ABSL_EXCLUSIVE_LOCK_FUNCTION();
  void Unlock() ABSL_UNLOCK_FUNCTION();
  // Callers that wait, of either kind.
  int64_t waiting() const { return first_waiting_ + in_turn_waiting_; }

 private:
  absl::Mutex mutex_;
  std::atomic<int64_t> first_waiting_ = 0;
  std::atomic<int64_t> in_turn_waiting_ = 0;
  std::atomic<uint64_t> tickets_ = 0;  // given to those who take turns
  // Under mutex_; the analysis cannot follow a condition.
  uint64_t serving_ = 0;  // the ticket that is next
  int in_a_row_ = 0;      // of those who come first, since the last one in turn
};

}  // namespace tranche
