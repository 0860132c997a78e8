#include "quota/budget/budget_rollover.h"

#include <algorithm>
#include <numeric>

namespace tranche {

Int128 BaseOf(const GpuBudget& budget) { return kGpuHour / 1000 * budget.milli_gpu_hours; }

RolloverTerms TermsOf(const GpuBudget& budget, Int128 base) {
  // A base is a multiple of a thousandth of a GPU-hour, and that divides by 100: exact.
  const Int128 percent = base / 100;
  return {.base = base,
          .most_carried = percent * budget.rollover_max_percent,
          .most_debt = percent * budget.max_debt_percent,
          .carry_windows = static_cast<std::size_t>(budget.rollover_max_windows)};
}

Int128 CarriedIn(const WindowAccount& account) {
  return std::accumulate(account.carried_in.begin(), account.carried_in.end(), Int128{0});
}

Int128 EffectiveOf(const WindowAccount& account) {
  return std::max<Int128>(0, account.terms.base + CarriedIn(account) - account.debt_in);
}

Settlement Settle(const WindowAccount& account, Int128 used) {
  const RolloverTerms& terms = account.terms;
  // What is left of this window's base, then of the amounts carried in: ascending age.
  std::vector<Int128> left = {terms.base};
  left.insert(left.end(), account.carried_in.begin(), account.carried_in.end());
  Int128 spent = used + account.debt_in;
  for (auto amount = left.rbegin(); amount != left.rend(); ++amount) {
    const Int128 taken = std::min(*amount, spent);
    *amount -= taken;
    spent -= taken;
  }
  left.resize(std::min(left.size(), terms.carry_windows));
  Int128 room = terms.most_carried;
  for (Int128& amount : left) {
    amount = std::min(amount, room);
    room -= amount;
  }
  while (!left.empty() && left.back() == 0) left.pop_back();
  const Int128 overrun = std::max<Int128>(0, used - EffectiveOf(account));
  return {.carried_out = std::move(left), .debt_out = std::min(overrun, terms.most_debt)};
}

}  // namespace tranche
