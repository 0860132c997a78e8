// GPU time by team, class and model, as a counter of the process, and what namespaces hold.
#include "quota/held_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "test/builders/policies.h"
#include "test/unit/quota/quota_book_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Hours;
using test::Minutes;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kHourMs = 3'600'000;

class HeldSumsTest : public QuotaBookTest {
 protected:
  void SetUp() override {
    Set({.quotas = TwoTeams()});
    book_.sums().BeginCounting(now_);
  }
  // "leaf/class/model milli GPU-hours" of each series.
  std::vector<std::string> Time() {
    std::vector<std::string> rows;
    for (const HeldTimeRow& row : book_.sums().Time(now_)) {
      const auto hours = static_cast<int64_t>(row.quanta_ms * 1000 / kHourMs / kQuantaPerGpu);
      rows.push_back(row.leaf + "/" + row.workload_class + "/" + row.model + " " +
                     std::to_string(hours));
    }
    return rows;
  }
  std::vector<std::string> Namespaces() {
    std::vector<std::string> rows;
    for (const NamespaceHeldRow& row : book_.sums().ByNamespace()) {
      rows.push_back(row.ns + "/" + row.model + " " +
                     std::to_string(GpuEquivalents(row.held) / kQuantaPerGpu));
    }
    return rows;
  }
  // Work that began or ended while nobody told.
  void HoldSince(const std::string& pod, const std::string& ns, int64_t gpus, Instant since) {
    const Instant now = std::exchange(now_, since);
    Hold(pod, ns, gpus);
    now_ = now;
  }
};

TEST_F(HeldSumsTest, CountTimeByTeamClassAndModel) {
  Hold("p1", "a", 2, "training");
  Pass(Minutes(30));
  Hold("p2", "b", 1);
  Hold("p3", "nobodys", 4, "", "t4");
  Pass(Minutes(30));
  EXPECT_THAT(Time(), ElementsAre("//t4 2000", "team-a/training/h100 2000", "team-b//h100 500"));
  EXPECT_THAT(Namespaces(), ElementsAre("a/h100 2", "b/h100 1", "nobodys/t4 4"));
  Release("p1");
  Release("p3");
  Pass(Hours(1));
  EXPECT_THAT(Time(), ElementsAre("//t4 2000", "team-a/training/h100 2000", "team-b//h100 1500"));
  EXPECT_THAT(Namespaces(), ElementsAre("b/h100 1"));
}

TEST_F(HeldSumsTest, WhatWasHeldBeforeTheProcessBeganIsNotCounted) {
  HoldSince("old", "a", 1, now_ - Hours(50));
  Pass(Hours(1));
  EXPECT_THAT(Time(), ElementsAre("team-a//h100 1000"));
}

TEST_F(HeldSumsTest, BeforeCountingBeginsOnlyWhatIsHeldIsKnown) {
  HeldSums sums;
  const std::string ns = "a", leaf = "team-a", none;
  const std::vector<ModelCharge> parts = Parts(3);
  sums.Hold({ns, leaf, none, parts}, now_ - Hours(5));
  ASSERT_EQ(sums.Time(now_).size(), 1U);
  EXPECT_EQ(sums.Time(now_)[0].quanta_ms, 0);
  sums.BeginCounting(now_);
  EXPECT_EQ(sums.Time(now_ + Hours(1))[0].quanta_ms, Int128{3} * kQuantaPerGpu * kHourMs);
}

TEST_F(HeldSumsTest, LateNewsIsCountedFromWhenItHappenedAndTheCounterNeverFalls) {
  Pass(Hours(2));
  EXPECT_THAT(Time(), IsEmpty());
  HoldSince("late", "a", 1, now_ - Minutes(30));
  EXPECT_THAT(Time(), ElementsAre("team-a//h100 500"));
  Pass(Hours(1));
  EXPECT_THAT(Time(), ElementsAre("team-a//h100 1500"));
  book_.Release(PodUid("late"), now_ - Minutes(30));
  EXPECT_THAT(Time(), ElementsAre("team-a//h100 1500")) << "half an hour too much was told";
  Hold("next", "a", 1);
  Pass(Minutes(30));
  EXPECT_THAT(Time(), ElementsAre("team-a//h100 1500")) << "caught up with";
  Pass(Minutes(30));
  EXPECT_THAT(Time(), ElementsAre("team-a//h100 2000"));
}

TEST_F(HeldSumsTest, NobodyUsesAnythingWhileTheClockIsSetForward) {
  Hold("p", "a", 2);
  Pass(Hours(1));
  const Instant from = now_;
  now_ += Hours(24);
  book_.Step(from, now_);
  Pass(Hours(1));
  EXPECT_THAT(Time(), ElementsAre("team-a//h100 4000"));
}

}  // namespace THIS_FILE
}  // namespace tranche
