#include "scheduler/host/turn_lock.h"

namespace tranche {

void TurnLock::LockFirst() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  ++first_waiting_;
  mutex_.Lock();
  --first_waiting_;
  in_a_row_ = in_turn_waiting_ > 0 ? in_a_row_ + 1 : 0;
}

void TurnLock::LockInTurn() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  ++in_turn_waiting_;
  const uint64_t ticket = tickets_++;
  const auto is_its_turn = [this, ticket] {
    return ticket == serving_ && (first_waiting_ == 0 || in_a_row_ >= kMostInARow);
  };
  mutex_.LockWhen(absl::Condition(&is_its_turn));
  --in_turn_waiting_;
  ++serving_;
  in_a_row_ = 0;
}

void TurnLock::Unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }

}  // namespace tranche
