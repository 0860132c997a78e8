// Exact products and quotients, rounded to either side.
#include "topology/base/int128.h"

#include <gtest/gtest.h>

namespace tranche {
namespace THIS_FILE {

constexpr int64_t kMost = INT64_MAX;

struct Division {
  int64_t left;
  int64_t right;
  int64_t divisor;
  int64_t floor;
  int64_t ceil;
};

TEST(Int128Test, QuotientsOfProductsRoundDownAndUp) {
  for (const Division& row : {
           Division{0, 5, 3, 0, 0},
           {2, 3, 3, 2, 2},
           {7, 1, 2, 3, 4},
           {-7, 1, 2, -4, -3},
           {7, -1, 2, -4, -3},
           {-6, 1, 2, -3, -3},
           {kMost, kMost, kMost, kMost, kMost},  // the product needs 126 bits
           {kMost, 3, 4, 6'917'529'027'641'081'855, 6'917'529'027'641'081'856},
       }) {
    EXPECT_EQ(MulDivFloor(row.left, row.right, row.divisor), row.floor) << row.left;
    EXPECT_EQ(MulDivCeil(row.left, row.right, row.divisor), row.ceil) << row.left;
  }
}

TEST(Int128Test, FloorDivRoundsTowardsMinusInfinity) {
  static_assert(FloorDiv(-1, 256) == -1);
  static_assert(FloorDiv(-256, 256) == -1);
  static_assert(FloorDiv(255, 256) == 0);
  EXPECT_TRUE(FloorDiv(Int128{kMost} * kMost, kMost) == kMost);
}

}  // namespace THIS_FILE
}  // namespace tranche
