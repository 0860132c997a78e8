#include "scheduler/scoring/normal.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tranche {
namespace THIS_FILE {

TEST(NormalTest, TheSquareRootIsRoundedDown) {
  for (int64_t root = 0; root < 2000; ++root) {
    EXPECT_EQ(IntSqrt(Int128{root} * root), root);
    EXPECT_EQ(IntSqrt(Int128{root} * root + 2 * root), root);
  }
  const int64_t large = (int64_t{1} << 62) + 12345;
  EXPECT_EQ(IntSqrt(Int128{large} * large), large);
  EXPECT_EQ(IntSqrt(Int128{large} * large - 1), large - 1);
  EXPECT_EQ(IntSqrt(-5), 0);
}

TEST(NormalTest, QuotientsAreRoundedDown) {
  EXPECT_EQ(static_cast<int>(FloorDiv(7, 2)), 3);
  EXPECT_EQ(static_cast<int>(FloorDiv(-7, 2)), -4);
  EXPECT_EQ(static_cast<int>(FloorDiv(-8, 2)), -4);
  EXPECT_EQ(static_cast<int>(FloorDiv(0, 2)), 0);
}

TEST(NormalTest, ChancesAreThoseOfTheNormalCurveInSixteenthsOfADeviation) {
  for (const int64_t variance : {100, 10'000, 123'456'789}) {
    for (int64_t excess = -70'000; excess <= 70'000; excess += 137) {
      const double at =
          std::floor(16 * static_cast<double>(excess) / std::sqrt(static_cast<double>(variance)));
      const double z = std::min(4.0, std::max(-4.0, at / 16));
      const double chance = 256 * 0.5 * (1 + std::erf(z / std::sqrt(2.0)));
      // The root is rounded to a 256th, which may take the argument over to the next sixteenth.
      const double next = 256 * 0.5 * (1 + std::erf((z + 1.0 / 16) / std::sqrt(2.0)));
      const auto found = static_cast<double>(Chance(excess, variance));
      EXPECT_GE(found, chance - 0.5) << excess << " of " << variance;
      EXPECT_LE(found, next + 0.5) << excess << " of " << variance;
    }
  }
  EXPECT_EQ(Chance(0, 1), 128) << "as much demand as room: even odds";
  EXPECT_EQ(Chance(-400, 10'000), 0);
  EXPECT_EQ(Chance(400, 10'000), kCertain);
  EXPECT_EQ(Chance(Int128{1} << 60, 1), kCertain) << "far tails do not overflow";
  EXPECT_EQ(Chance(-(Int128{1} << 60), 1), 0);
}

}  // namespace THIS_FILE
}  // namespace tranche
