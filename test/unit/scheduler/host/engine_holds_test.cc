#include "scheduler/host/engine_holds.h"

#include <gtest/gtest.h>

#include <set>

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;

const EngineHolds::Moment kStart{1h};

TEST(EngineHolds, EachCallerHasItsOwnSumAndLongest) {
  EngineHolds holds;
  EXPECT_TRUE(holds.Rows().empty());
  holds.Note(EngineCaller::kFilter, kStart, kStart + 250us);
  holds.Note(EngineCaller::kFilter, kStart + 1s, kStart + 1s + 750us);
  holds.Note(EngineCaller::kStatus, kStart + 2s, kStart + 2s + 30ms);
  const std::vector<metrics::HoldRow> rows = holds.Rows();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].caller, "filter");
  EXPECT_EQ(rows[0].holds, 2);
  EXPECT_EQ(rows[0].long_holds, 0);
  EXPECT_DOUBLE_EQ(rows[0].total_seconds, 0.001);
  EXPECT_DOUBLE_EQ(rows[0].longest_seconds, 0.00075);
  EXPECT_EQ(rows[1].caller, "status");
  EXPECT_EQ(rows[1].long_holds, 1);
}

TEST(EngineHolds, ALongHoldIsToldOfOnceAMinute) {
  EngineHolds holds;
  const auto hold = [&holds](EngineHolds::Moment at, std::chrono::nanoseconds took) {
    return holds.Note(EngineCaller::kPolicies, at, at + took);
  };
  EXPECT_FALSE(hold(kStart, EngineHolds::kLong)) << "not over it";
  EXPECT_TRUE(hold(kStart, 21ms));
  EXPECT_FALSE(hold(kStart + 30s, 90ms));
  EXPECT_TRUE(hold(kStart + 61s, 21ms));
  EXPECT_EQ(holds.Rows()[0].long_holds, 3);
}

TEST(EngineHolds, AStartIsCountedAndNotToldOf) {
  EngineHolds holds;
  EXPECT_FALSE(holds.Note(EngineCaller::kStart, kStart, kStart + 5s));
  EXPECT_EQ(holds.Rows()[0].long_holds, 1);
  EXPECT_DOUBLE_EQ(holds.Rows()[0].longest_seconds, 5.0);
}

TEST(EngineHolds, EveryCallerHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i < static_cast<int>(EngineCaller::kCount); ++i)
    names.insert(EngineCallerName(static_cast<EngineCaller>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(EngineCaller::kCount));
  EXPECT_FALSE(names.contains(""));
}

}  // namespace THIS_FILE
}  // namespace tranche
