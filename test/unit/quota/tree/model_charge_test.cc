#include "quota/tree/model_charge.h"

#include <gtest/gtest.h>

#include <vector>

namespace tranche {
namespace THIS_FILE {

TEST(ModelChargeTest, TheSumIsAscendingHoweverThePartsCome) {
  std::vector<ModelCharge> sum;
  Add(sum, {"H100", {2, 3}});
  Add(sum, {"A100", {1, 1}});
  Add(sum, {"L4", {5, 0}});
  Add(sum, {"H100", {1, 4}});
  const std::vector<ModelCharge> expected = {{"A100", {1, 1}}, {"H100", {3, 7}}, {"L4", {5, 0}}};
  EXPECT_EQ(sum, expected);
}

TEST(ModelChargeTest, Saturates) {
  std::vector<ModelCharge> sum = {{"H100", {kSaturated - 1, 0}}};
  Add(sum, {"H100", {kSaturated, 1}});
  EXPECT_EQ(sum.front().charge, (Charge{kSaturated, 1}));
}

}  // namespace THIS_FILE
}  // namespace tranche
