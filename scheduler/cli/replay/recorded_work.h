// What a ledger recorded as a past that can be lived again, with edits or without; and as it was.
//
// Pods that a controller made in place of one that was evicted are one piece of work with it. How
// long work needs is how long the last of its pods ran. Where that was evicted too, or never
// started, it is what it says (tranche.dev/expected-runtime), else the median of work of the same
// template; where it had run longer already, twice that: these are counted as guesses.
//
// Pure. Cost: O(pods log pods).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/spec.h"
#include "scheduler/api/foresight/plan_edits.h"
#include "scheduler/foresight/replay.h"
#include "scheduler/ledger/past/recorded.h"

namespace tranche::replay {

struct WorkQuery {
  Instant from;
  Instant until;
  std::vector<ObjectEdit> edits;  // hold for the whole span, whatever was recorded of the object
  std::optional<Strategy> strategy;
};

struct RecordedWork {
  Past past;
  LivedPast happened;   // without fleet: that is the past's
  int64_t guesses = 0;  // pieces of work of which it is not known how long they need
  int64_t budgets = 0;  // in force: what was spent before the span is not counted
};

// Errors: DataLoss (a text that cannot be read), InvalidArgument (edits that would not be in
// force).
absl::StatusOr<RecordedWork> MakeWork(const ledger::RecordedPast& recorded, const WorkQuery& query);

}  // namespace tranche::replay
