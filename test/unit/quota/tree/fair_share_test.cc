#include "quota/tree/fair_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "quota/tree/charge.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr int64_t kGpu = kQuantaPerGpu;

struct Row {
  std::string name;
  int64_t k_milli = 0;
  int64_t capacity = 0;
  std::vector<FairShareMember> members;  // key, weight, nominal, demand, past use
  std::vector<int64_t> shares;
};

void Check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    EXPECT_THAT(DivideFairly(row.capacity, row.members, row.k_milli), ElementsAreArray(row.shares))
        << row.name;
  }
}

TEST(FairShareTest, SurplusIsFilledToOneLevel) {
  const std::vector<FairShareMember> model = {{"a", 1, 4 * kGpu, 16 * kGpu, 500'000},
                                              {"b", 1, 4 * kGpu, 6 * kGpu, 100'000},
                                              {"c", 2, 0, 16 * kGpu, 200'000}};
  Check({
      {"by weight alone", 0, 16 * kGpu, model, {6 * kGpu, 6 * kGpu, 4 * kGpu}},
      {"a has had twice its part", 1000, 16 * kGpu, model, {4 * kGpu, 6 * kGpu, 6 * kGpu}},
      {"enough for all", 0, 40 * kGpu, model, {16 * kGpu, 6 * kGpu, 16 * kGpu}},
      {"nobody there", 0, 16 * kGpu, {}, {}},
      {"nothing to divide", 0, 0, model, {0, 0, 0}},
      {"who wants nothing has no weight", 0, 10, {{"a", 9, 5, 0}, {"b", 1, 0, 10}}, {0, 10}},
      {"nominal comes before any surplus", 0, 10, {{"a", 1, 8, 8}, {"b", 100, 0, 10}}, {8, 2}},
  });
}

TEST(FairShareTest, SurplusNobodyLeansTowardsIsStillGiven) {
  // Past use takes all the leaning of a and c, b is content: the rest goes by weight.
  const std::vector<FairShareMember> greedy = {
      {"a", 1, 0, 12, 900'000}, {"b", 1, 0, 2, 0}, {"c", 2, 0, 12, 1'000'000}};
  Check({
      {"by weight", 1000, 12, greedy, {3, 2, 7}},
      {"weight zero comes last", 0, 10, {{"a", 0, 0, 10}, {"b", 1, 0, 6}}, {4, 6}},
      {"nobody has weight", 0, 10, {{"a", 0, 0, 10}, {"b", 0, 0, 3}}, {7, 3}},
  });
}

TEST(FairShareTest, NominalsAboveCapacityShrinkInProportion) {
  const std::vector<FairShareMember> modest = {{"a", 1, 8, 1}, {"b", 1, 4, 4}, {"c", 1, 4, 4}};
  Check({
      {"a rack has failed", 0, 6, {{"a", 1, 8, 8}, {"b", 9, 4, 4}}, {4, 2}},
      {"who wants less leaves it to the others", 0, 6, modest, {1, 3, 2}},
  });
}

TEST(FairShareTest, OddQuantaGoToTheLargestRemaindersThenByKey) {
  const std::vector<FairShareMember> alike = {{"c", 1, 0, 9}, {"a", 1, 0, 9}, {"b", 1, 0, 9}};
  const std::vector<FairShareMember> double_a = {{"a", 2, 0, 9}, {"b", 1, 0, 9}, {"c", 1, 0, 9}};
  const std::vector<FairShareMember> full_a = {{"a", 1, 0, 2}, {"b", 1, 0, 9}, {"c", 1, 0, 9}};
  Check({
      {"thirds of ten", 0, 10, alike, {3, 4, 3}},
      {"3.5, 1.75 and 1.75 of seven", 0, 7, double_a, {3, 2, 2}},
      {"a limit that is reached takes no odd quantum", 0, 9, full_a, {2, 4, 3}},
  });
}

TEST(FairShareTest, AmountsAtTheEdgeOfTheRangeDoNotWrap) {
  const int64_t most = int64_t{1} << 53;
  EXPECT_THAT(DivideFairly(most,
                           std::vector<FairShareMember>{{"a", 1'000'000, 0, most},
                                                        {"b", 1'000'000, 0, INT64_MAX}},
                           10'000),
              ElementsAre(most / 2, most / 2));
  const std::vector<FairShareMember> many(std::size_t{1} << 14,
                                          {"a", 1'000'000, 0, most, INT64_MAX});
  const std::vector<int64_t> shares = DivideFairly(most, many, 10'000);
  EXPECT_EQ(shares.front(), most >> 14);
  EXPECT_EQ(shares.back(), most >> 14);
}

constexpr Millis kWeek = std::chrono::hours(168);

Instant Hour(int64_t hours) { return Instant(std::chrono::hours(480'000 + hours)); }

TEST(DecayedUsageTest, ADayOfEightGpusFadesByHalfEachWeek) {
  DecayedUsage usage(kWeek);
  usage.Hold(8 * kGpu, Hour(0));
  usage.Hold(0, Hour(24));
  EXPECT_EQ(usage.MilliGpuHours(Hour(24)), 182'800) << "182.80013... GPU-hours";
  EXPECT_EQ(usage.MilliGpuHours(Hour(24 + 168)), 91'400);
  EXPECT_EQ(usage.MilliGpuHours(Hour(24 + 2 * 168)), 45'700);
  EXPECT_EQ(usage.MilliGpuHours(Hour(24 + 100 * 168)), 0);
}

TEST(DecayedUsageTest, AHoldForEverTendsToItsLimit) {
  DecayedUsage usage(kWeek);
  usage.Hold(8 * kGpu, Hour(0));
  EXPECT_EQ(usage.MilliGpuHours(Hour(168)), 969'491) << "half of it after one half-life";
  EXPECT_EQ(usage.MilliGpuHours(Hour(100 * 168)), 1'938'982) << "8 H / ln 2";
}

TEST(DecayedUsageTest, NothingWasUsedBeforeTheFirstHold) {
  DecayedUsage usage(kWeek);
  EXPECT_EQ(usage.MilliGpuHours(Hour(0)), 0);
  usage.Hold(kGpu, Hour(0));
  EXPECT_EQ(usage.MilliGpuHours(Hour(0)), 0);
}

TEST(DecayedUsageTest, AnEarlierTimeCountsAsTheLast) {
  DecayedUsage usage(kWeek);
  usage.Hold(kGpu, Hour(10));
  usage.Hold(2 * kGpu, Hour(5));
  EXPECT_EQ(usage.state().at, Hour(10));
  EXPECT_EQ(usage.MilliGpuHours(Hour(3)), 0);
  DecayedUsage straight(kWeek);
  straight.Hold(2 * kGpu, Hour(10));
  EXPECT_EQ(usage.MilliGpuHours(Hour(20)), straight.MilliGpuHours(Hour(20)));
}

TEST(DecayedUsageTest, ARestoredStateGoesOnAsBefore) {
  DecayedUsage usage(kWeek);
  usage.Hold(500'000 * kGpu, Hour(0));
  usage.Hold(3 * kGpu, Hour(1000));
  EXPECT_NE(usage.state().usage_high, 0) << "both halves of the number matter";
  DecayedUsage again(kWeek);
  again.Restore(usage.state());
  EXPECT_EQ(again.MilliGpuHours(Hour(2000)), usage.MilliGpuHours(Hour(2000)));
}

}  // namespace THIS_FILE
}  // namespace tranche
