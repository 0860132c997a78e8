// What a failed check prints before it stops the process.
#include "topology/base/check.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {
namespace THIS_FILE {

enum class Color : int8_t { kRed = 3, kBlue = 4 };

TEST(CheckTest, AHoldingCheckLetsTheProgramGoOn) {
  TRANCHE_CHECK(true);
  TRANCHE_CHECK_EQ(1, 1);
  TRANCHE_CHECK_NE(1, 2);
  TRANCHE_CHECK_LT(1, 2);
  TRANCHE_CHECK_LE(2, 2);
  TRANCHE_CHECK_GT(2, 1);
  TRANCHE_CHECK_GE(2, 2);
}

TEST(CheckDeathTest, AFailedCheckPrintsItsText) {
  EXPECT_DEATH(TRANCHE_CHECK(1 + 1 == 3), R"(check_test\.cc:[0-9]+: check failed: 1 \+ 1 == 3)");
}

TEST(CheckDeathTest, AFailedComparisonPrintsBothValues) {
  const int rows = 2;
  EXPECT_DEATH(TRANCHE_CHECK_EQ(rows, 3), R"(check failed: rows == 3 \(2 and 3\))");
  EXPECT_DEATH(TRANCHE_CHECK_NE(rows, 2), R"(check failed: rows != 2 \(2 and 2\))");
  EXPECT_DEATH(TRANCHE_CHECK_LT(rows, 2), R"(check failed: rows < 2 \(2 and 2\))");
  EXPECT_DEATH(TRANCHE_CHECK_LE(rows, 1), R"(check failed: rows <= 1 \(2 and 1\))");
  EXPECT_DEATH(TRANCHE_CHECK_GT(rows, 2), R"(check failed: rows > 2 \(2 and 2\))");
  EXPECT_DEATH(TRANCHE_CHECK_GE(rows, 3), R"(check failed: rows >= 3 \(2 and 3\))");
}

TEST(CheckTest, ShowsNumbersUnitsNamesAndText) {
  EXPECT_EQ(CheckedValue(-7), "-7");
  EXPECT_EQ(CheckedValue(Color::kBlue), "4");
  EXPECT_EQ(CheckedValue(MilliGpu::Of(250)), "250");
  EXPECT_EQ(CheckedValue(Millis(9)), "9");
  EXPECT_EQ(CheckedValue(NodeName("n1")), "n1");
  EXPECT_EQ(CheckedValue("text"), "text");
}

}  // namespace THIS_FILE
}  // namespace tranche
