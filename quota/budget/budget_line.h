// An amount that changes at a constant rate between bends, and the moments it crosses a limit.
//
// All bends lie on whole milliseconds, so answers are exact. Pure values; any thread. Cost: O(bends
// before the answer), of which only the few of `bends` are copied and sorted.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "quota/budget/budget_amounts.h"
#include "quota/budget/budget_bends.h"

namespace tranche {

struct BudgetLine {
  Instant from;
  GpuTime value;            // at `from`
  GpuTime rate;             // from `from` on, bends excluded
  std::vector<Bend> bends;  // none before `from`; any order
  // Further ones, from that place on, which are taken back when they are so old; they outlive the
  // line. Null: none.
  const Bends* fading = nullptr;
  std::size_t fading_from = 0;
  Millis fades_after{0};
};

// The first millisecond in [line.from, until) at which the larger dimension is at most, or at
// least, `limit`.
std::optional<Instant> FirstAtMost(const BudgetLine& line, Int128 limit, Instant until);
std::optional<Instant> FirstAtLeast(const BudgetLine& line, Int128 limit, Instant until);

}  // namespace tranche
