#include "scheduler/engine/preemption/plan_walk.h"

#include "topology/base/check.h"

namespace tranche {

void PlanQuestions::Note(const ReclaimAnswer& answer, bool entitled, bool guarded) {
  using Result = ReclaimAnswer::Result;
  // Only who would be in quota can be entitled.
  const auto chosen = [this] { return entitled_ ? PlanQuestion::kChosen : PlanQuestion::kNone; };
  switch (next_) {
    case PlanQuestion::kByMarks:
      result_ = answer.result;
      entitled_ = entitled;
      guarded_ = guarded;
      if (answer.plan || result_ == Result::kFits) {
        next_ = PlanQuestion::kNone;
      } else if (guarded && (entitled || result_ == Result::kImpossible)) {
        next_ = PlanQuestion::kUnguarded;
      } else {
        next_ = chosen();
      }
      return;
    case PlanQuestion::kUnguarded:
      next_ = answer.plan ? PlanQuestion::kNone : chosen();
      return;
    case PlanQuestion::kChosen:
      if (answer.plan) result_ = Result::kPlan;
      next_ = !answer.plan && guarded_ && result_ == Result::kImpossible
                  ? PlanQuestion::kChosenUnguarded
                  : PlanQuestion::kNone;
      return;
    case PlanQuestion::kChosenUnguarded:
    case PlanQuestion::kNone:
      break;
  }
  TRANCHE_CHECK(next_ == PlanQuestion::kChosenUnguarded);
  next_ = PlanQuestion::kNone;
}

}  // namespace tranche
