// How one calendar window's account settles: what is carried into the next and what is owed there.
//
// quota-model section 3. Effective hours are base plus what was carried in less the debt brought
// in, at least zero. Carried hours are spent first, the oldest before the others, then the base.
// What is left of the base is carried over and lives for the terms' number of windows; all that is
// carried is capped, the youngest kept first since they live longest. What was used beyond the
// effective hours is debt against the next window, capped. Pure values; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "policy/spec.h"
#include "quota/budget/budget_amounts.h"

namespace tranche {

struct RolloverTerms {
  Int128 base = 0;
  Int128 most_carried = 0;
  Int128 most_debt = 0;
  std::size_t carry_windows = 0;
};
// Hours of the budget per window.
Int128 BaseOf(const GpuBudget& budget);
// The budget's terms for a window with this base.
RolloverTerms TermsOf(const GpuBudget& budget, Int128 base);

struct WindowAccount {
  RolloverTerms terms;
  std::vector<Int128> carried_in;  // by age: [0] from the window before, ...
  Int128 debt_in = 0;
};
Int128 CarriedIn(const WindowAccount& account);
Int128 EffectiveOf(const WindowAccount& account);

struct Settlement {
  std::vector<Int128> carried_out;  // by age: [0] left of this window's base; no trailing zeros
  Int128 debt_out = 0;
};
Settlement Settle(const WindowAccount& account, Int128 used);

}  // namespace tranche
