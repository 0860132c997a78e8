// How far a plan for one preemptor has come that lets others in between: each question is put to
// the books as they are then, and what is found is begun at once.
//
// Values; they belong to who asks. Begin with an empty one, go on until done(). One that is not
// gone on with leaves nothing behind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "quota/preemption/reclaim_search.h"
#include "scheduler/engine/state/answers.h"
#include "scheduler/facts/reclaim.h"
#include "topology/base/ids.h"

namespace tranche {

// By the marks as they are. Where that makes no room: whether it would if nothing protected what is
// borrowed, which is waited for. Else R1 chooses anew what is borrowed; and at last whether that
// would make room if nothing protected it.
enum class PlanQuestion : uint8_t { kByMarks, kUnguarded, kChosen, kChosenUnguarded, kNone };

constexpr bool IgnoresGuards(PlanQuestion question) {
  return question == PlanQuestion::kUnguarded || question == PlanQuestion::kChosenUnguarded;
}
constexpr bool Chooses(PlanQuestion question) {
  return question == PlanQuestion::kChosen || question == PlanQuestion::kChosenUnguarded;
}

// Which question comes after which answer.
class PlanQuestions {
 public:
  PlanQuestion next() const { return next_; }
  bool done() const { return next_ == PlanQuestion::kNone; }
  // What it came to: kPlan where what was answered last is to be carried out.
  ReclaimAnswer::Result result() const { return result_; }

  // To the next question. `entitled`: the preemptor would be in quota somewhere; `guarded`: work
  // was left out that will not be for ever. Requires: not done.
  void Note(const ReclaimAnswer& answer, bool entitled, bool guarded);

 private:
  PlanQuestion next_ = PlanQuestion::kByMarks;
  ReclaimAnswer::Result result_ = ReclaimAnswer::Result::kImpossible;
  bool entitled_ = false;  // by the first answer, as all that follows
  bool guarded_ = false;
};

struct PlanWalk {
  bool through = false;
  std::optional<PodUid> uid;        // whose turn it is; nullopt: nobody's
  std::optional<uint64_t> version;  // of the books when it was looked at first
  PlanQuestions questions;
  int64_t evaluations = 0;             // of geometry, so far
  std::optional<PlanBlock> block;      // what stands in the way, as far as it is known
  std::optional<PlanOutcome> outcome;  // good when done; nullopt: there was nothing to plan
  // What the last question was made from, which is no small thing to clear away: not under a lock.
  std::shared_ptr<const void> spent;

  bool done() const { return through; }
  void End(std::optional<PlanOutcome> with) {
    outcome = with;
    through = true;
  }
};

}  // namespace tranche
