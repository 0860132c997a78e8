#include "quota/budget/budget_amounts.h"

#include "gtest/gtest.h"

namespace tranche {
namespace THIS_FILE {

TEST(BudgetAmountsTest, HoursAreWrittenWithThreeDecimalsRoundedHalfAwayFromZero) {
  constexpr Int128 kThousandth = kGpuHour / 1000;
  const struct {
    Int128 amount;
    const char* text;
  } kCases[] = {
      {0, "0.000"},
      {1, "0.000"},
      {-1, "0.000"},
      {kThousandth / 2 - 1, "0.000"},
      {kThousandth / 2, "0.001"},
      {-kThousandth / 2, "-0.001"},
      {kGpuHour, "1.000"},
      {kGpuHour * 612 + kThousandth * 417, "612.417"},
      {kGpuHour - kThousandth / 2, "1.000"},
      {-kGpuHour * 3 / 2, "-1.500"},
      {kGpuHour * 9'000'000'000'000'000, "9000000000000000.000"},
  };
  for (const auto& c : kCases) EXPECT_EQ(FormatGpuHours(c.amount), c.text);
}

TEST(BudgetAmountsTest, TheLargerDimensionOfASumCounts) {
  const GpuTime first{4, 3};
  const GpuTime second{3, 4};
  EXPECT_TRUE(Larger(first + second) == 7);
  EXPECT_TRUE(Larger(GpuTime{-5, -3}) == -3);
  EXPECT_TRUE((RateOf({2, 3}, 500'000) * Millis(10) == GpuTime{10'000'000, 15'000'000}));
}

}  // namespace THIS_FILE
}  // namespace tranche
