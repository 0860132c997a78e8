#include "quota/budget/budget_rollover.h"

#include "gtest/gtest.h"
#include "test/builders/budget.h"

namespace tranche {
namespace THIS_FILE {

using test::GpuHours;

// In GPU-hours.
std::vector<std::string> Text(const std::vector<Int128>& amounts) {
  std::vector<std::string> text;
  for (const Int128 amount : amounts) text.push_back(FormatGpuHours(amount));
  return text;
}

std::vector<Int128> Amounts(const std::vector<int>& hours) {
  std::vector<Int128> amounts;
  for (const int hour : hours) amounts.push_back(GpuHours(hour));
  return amounts;
}

TEST(BudgetRolloverTest, CarriedHoursAreSpentFirstAndTheOldestOfThemBeforeTheOthers) {
  const struct {
    const char* what;
    int percent, windows, debt_percent;
    std::vector<int> carried_in;
    int debt_in, used;
    int effective;
    std::vector<int> carried_out;
    int debt_out;
  } kCases[] = {
      {"left of the base", 25, 1, 20, {}, 0, 800, 1000, {200}, 0},
      {"base before carry", 25, 1, 20, {200}, 0, 1150, 1200, {50}, 0},
      {"carry of one window lapses", 25, 1, 20, {200}, 0, 100, 1200, {250}, 0},
      {"all spent", 25, 1, 20, {200}, 0, 1200, 1200, {}, 0},
      {"capped", 25, 1, 20, {}, 0, 100, 1000, {250}, 0},
      {"none lives", 25, 0, 20, {}, 0, 800, 1000, {}, 0},
      {"no percent", 0, 3, 20, {}, 0, 800, 1000, {}, 0},
      {"older carry lives on", 100, 2, 20, {200}, 0, 50, 1200, {1000}, 0},
      {"older carry under the cap", 100, 2, 20, {200}, 0, 300, 1200, {900}, 0},
      {"two ages, oldest spent first", 100, 3, 20, {300, 200}, 0, 250, 1500, {1000}, 0},
      {"of what is over the cap the youngest stays", 50, 2, 20, {200}, 0, 100, 1200, {500}, 0},
      {"ages move on", 200, 3, 20, {300, 200}, 0, 250, 1500, {1000, 250}, 0},
      {"what is too old lapses", 200, 2, 20, {300, 200}, 0, 0, 1500, {1000, 300}, 0},
      {"overrun", 25, 1, 20, {}, 0, 1100, 1000, {}, 100},
      {"overrun beyond the cap", 25, 1, 20, {}, 0, 1900, 1000, {}, 200},
      {"debt is paid from what is there", 25, 1, 20, {}, 200, 700, 800, {100}, 0},
      {"debt and overrun", 25, 1, 20, {}, 200, 850, 800, {}, 50},
      {"no debt taken over", 25, 1, 0, {}, 0, 1100, 1000, {}, 0},
      {"never below zero", 25, 1, 20, {}, 1500, 0, 0, {}, 0},
  };
  for (const auto& c : kCases) {
    GpuBudget budget = test::PlainBudget(BudgetWindow::Type::kMonth, 1000);
    budget.rollover_max_percent = c.percent;
    budget.rollover_max_windows = c.windows;
    budget.max_debt_percent = c.debt_percent;
    const WindowAccount account{TermsOf(budget, BaseOf(budget)), Amounts(c.carried_in),
                                GpuHours(c.debt_in)};
    EXPECT_EQ(FormatGpuHours(EffectiveOf(account)), FormatGpuHours(GpuHours(c.effective)))
        << c.what;
    const Settlement settled = Settle(account, GpuHours(c.used));
    EXPECT_EQ(Text(settled.carried_out), Text(Amounts(c.carried_out))) << c.what;
    EXPECT_EQ(FormatGpuHours(settled.debt_out), FormatGpuHours(GpuHours(c.debt_out))) << c.what;
  }
}

TEST(BudgetRolloverTest, CapsOfThousandthsOfAnHourAreExact) {
  GpuBudget budget = test::PlainBudget(BudgetWindow::Type::kMonth, 0);
  budget.milli_gpu_hours = 7;
  budget.rollover_max_percent = 33;
  budget.max_debt_percent = 1;
  const RolloverTerms terms = TermsOf(budget, BaseOf(budget));
  EXPECT_TRUE(terms.base * 1000 == kGpuHour * 7);
  EXPECT_TRUE(terms.most_carried * 100'000 == kGpuHour * 7 * 33);
  EXPECT_TRUE(terms.most_debt * 100'000 == kGpuHour * 7);
}

}  // namespace THIS_FILE
}  // namespace tranche
