#include "topology/base/limit.h"

#include <gtest/gtest.h>

namespace tranche {
namespace THIS_FILE {

TEST(LimitTest, SumsSaturateAndNeverWrap) {
  const struct {
    int64_t left, right, sum;
  } kCases[] = {
      {1, 2, 3},
      {-5, 3, -2},
      {kSaturated, -7, kSaturated},
      {-7, kSaturated, kSaturated},
      {kSaturated, -kSaturated, kSaturated},
      {kSaturated - 1, 1, kSaturated},
      {kSaturated - 1, kSaturated - 1, kSaturated},
      {1 - kSaturated, -1, -kSaturated},
      {-kSaturated, 7, -kSaturated},
      {INT64_MAX, INT64_MAX, kSaturated},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(AddSaturating(c.left, c.right), c.sum) << c.left << " + " << c.right;
  }
}

TEST(LimitTest, AnAmountAllowsUpToItself) {
  const Limit four = 4;
  EXPECT_EQ(four.amount(), 4);
  EXPECT_EQ(four.saturated(), 4);
  EXPECT_TRUE(four.Allows(4));
  EXPECT_FALSE(four.Allows(5));
  EXPECT_EQ(four.Minus(5), Limit(-1));
  EXPECT_FALSE(four.Minus(5).Allows(0));
}

TEST(LimitTest, NoLimitAllowsEverythingWhateverIsTaken) {
  const Limit none;
  EXPECT_EQ(none.amount(), std::nullopt);
  EXPECT_TRUE(none.Allows(INT64_MAX));
  EXPECT_EQ(none.Minus(kSaturated), none);
  EXPECT_EQ(Limit(kSaturated), none);
  EXPECT_GT(none, Limit(kSaturated - 1));
}

}  // namespace THIS_FILE
}  // namespace tranche
