// Expected starts: exact where every end is declared, spread where it is drawn, and no time where
// nobody knows.
#include "scheduler/foresight/forecast.h"

#include "test/unit/scheduler/foresight/foresight_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::DayBudget;
using test::Hours;
using test::Minutes;
using test::Quota;
using test::StockNode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ForecastTest : public ForesightTest {
 protected:
  void SetUp() override { Nodes({StockNode("n1", 8)}); }
  std::string Because(const Forecasts& forecasts, const std::string& name) {
    for (const auto& [pod, forecast] : forecasts.pods) {
      if (pod.name == name) return forecast.because;
    }
    return "not there";
  }
};

TEST_F(ForecastTest, DeclaredEndsTellEveryStartToTheMillisecond) {
  Started(Lasting(Pod("a", "runs", 8), Hours(2)), "n1");
  Pass(Minutes(30));
  Wait(Lasting(Pod("a", "first", 8), Hours(3)));
  Pass(Millis(1'234));
  Wait(Lasting(Pod("b", "second", 8), Hours(1)));
  Wait(Lasting(Pod("b", "small", 2), Hours(1)));
  const Forecasts ahead = Ahead();
  EXPECT_TRUE(ahead.exact);
  EXPECT_EQ(ahead.rehearsals, 1);
  const Millis first = Minutes(90) - Millis(1'234);
  std::map<std::string, Millis> starts;
  for (const auto& [name, forecast] : ahead.pods) {
    ASSERT_TRUE(forecast.p50) << name.str();
    EXPECT_EQ(forecast.earliest, forecast.p50);
    EXPECT_EQ(forecast.p10, forecast.p90);
    starts[name.name] = *forecast.p50 - now_;
  }
  // The two of b are of one age: by uid.
  EXPECT_EQ(starts["first"], first);
  EXPECT_EQ(starts["second"], first + Hours(3));
  EXPECT_EQ(starts["small"], first + Hours(4));
}

TEST_F(ForecastTest, SmallerWorkGoesWhereRoomIsLeft) {
  Started(Lasting(Pod("a", "runs", 6), Hours(2)), "n1");
  Wait(Lasting(Pod("a", "large", 8), Hours(3)));
  Wait(Lasting(Pod("a", "small", 2), Hours(1)));
  EXPECT_THAT(Starts(Ahead()), ElementsAre("large at 120", "small at 0"));
}

TEST_F(ForecastTest, PriorityGoesBeforeAge) {
  Started(Lasting(Pod("a", "runs", 8), Hours(1)), "n1");
  Wait(Lasting(Pod("a", "older", 8), Hours(1)));
  Pass(Minutes(10));
  PodRequest urgent = Lasting(Pod("a", "urgent", 8), Hours(1));
  urgent.priority = 1000;
  Wait(urgent);
  EXPECT_THAT(Starts(Ahead()), ElementsAre("older at 110", "urgent at 50"));
}

TEST_F(ForecastTest, AGangStartsWhenAllOfItCan) {
  Nodes({StockNode("n2", 8)});
  Started(Lasting(Pod("a", "short", 8), Hours(1)), "n1");
  Started(Lasting(Pod("a", "long", 8), Hours(5)), "n2");
  for (const std::string name : {"ring-0", "ring-1"}) {
    PodRequest member = Lasting(Pod("a", name, 8), Hours(1));
    member.gang = "ring";
    member.gang_size = 2;
    Wait(member);
  }
  const Forecasts ahead = Ahead();
  EXPECT_THAT(Starts(ahead), ElementsAre("ring-0 at 300", "ring-1 at 300"));
}

TEST_F(ForecastTest, NoTimeIsGivenWhereNobodyKnowsAnEnd) {
  Started(Pod("b", "forever", 8), "n1");
  Wait(Pod("a", "wants", 8));
  const Forecasts ahead = Ahead();
  EXPECT_THAT(Starts(ahead), ElementsAre("wants at never"));
  EXPECT_THAT(Because(ahead, "wants"), HasSubstr("nobody knows how long b/forever run"));
}

TEST_F(ForecastTest, WorkThatOverranWhatItDeclaredHasToldNothing) {
  Started(Lasting(Pod("b", "late", 8), Hours(1)), "n1");
  Pass(Hours(2));
  Wait(Pod("a", "wants", 8));
  EXPECT_THAT(Because(Ahead(), "wants"), HasSubstr("b/late"));
}

TEST_F(ForecastTest, WorkOfALikeTellsHowLongItRuns) {
  for (int hours = 1; hours <= 20; ++hours) {
    runtimes_.Add({"b", "train", "", 8}, {Hours(hours), true});
  }
  Started(Pod("b", "train-bcdfg", 8), "n1");
  Pass(Hours(10) + Minutes(30));
  Wait(Pod("a", "wants", 8));
  const Forecasts ahead = Ahead();
  EXPECT_FALSE(ahead.exact);
  EXPECT_EQ(ahead.rehearsals, 21);
  const Forecast& forecast = ahead.pods.begin()->second;
  // Of ten that ran longer the median has five hours more.
  EXPECT_GE(*forecast.p50 - now_, Hours(4));
  EXPECT_LE(*forecast.p50 - now_, Hours(6));
  EXPECT_LE(*forecast.p10 - now_, Hours(2));
  EXPECT_GE(*forecast.p90 - now_, Hours(7));
  EXPECT_LE(forecast.earliest, forecast.p10);
  EXPECT_THAT(forecast.because, HasSubstr("2 are taken to run as work like them did"));
}

TEST_F(ForecastTest, ABudgetLetsInWhenItsWindowTurns) {
  now_ = test::Utc(2026, 3, 2, 0, 0);
  engine_.Tick(now_);
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "8")},
           .budgets = {DayBudget("team-a", 16)}});
  Started(Lasting(Pod("a", "spends", 8), Hours(2)), "n1");
  Pass(Hours(2));
  Leave(Pod("a", "spends", 8));
  const PodRequest wants = Lasting(Pod("a", "wants", 8), Hours(1));
  Wait(wants);
  EXPECT_EQ(Try(wants), "BudgetExhausted");
  EXPECT_THAT(Starts(Ahead()), ElementsAre("wants at 1320"));
}

TEST_F(ForecastTest, VictimsGiveWayAndComeBackLater) {
  Declare({.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "8"),
                      Quota("team-b").Under("org").Owns("b").Line("h100", "0")},
           .classes = {Class("train", 2)}});
  Started(Lasting(Pod("b", "borrows", 8, "train"), Hours(9)), "n1");
  Pass(Hours(1));
  const PodRequest entitled = Lasting(Pod("a", "entitled", 8, "train"), Hours(1));
  Wait(entitled);
  Try(entitled);
  const Forecasts ahead = Ahead();
  ASSERT_EQ(ahead.pods.size(), 1U);
  const Forecast& forecast = ahead.pods.begin()->second;
  ASSERT_TRUE(forecast.p50);
  EXPECT_LE(*forecast.p50 - now_, Minutes(5)) << "the grace of the victim, not its end";
}

TEST_F(ForecastTest, WorkThatUsuallyComesFirstMakesAStartLater) {
  Started(Lasting(Pod("a", "runs", 8), Hours(2)), "n1");
  PodRequest wants = Lasting(Pod("b", "wants", 8), Hours(1));
  Wait(wants);
  EXPECT_THAT(Starts(Ahead()), ElementsAre("wants at 120"));
  // Small pods of a come every ten minutes; one of them waits, with a higher priority.
  PodRequest small = Lasting(Pod("a", "small", 1), Hours(3));
  small.priority = 10;
  Wait(small);
  for (int i = 0; i < 60; ++i) {
    runtimes_.NoteBegun({"a", "", "", 1}, now_ - Minutes(600 - 10 * i), std::nullopt);
  }
  const Forecasts ahead = Ahead();
  EXPECT_FALSE(ahead.exact);
  EXPECT_GT(ahead.rehearsals, 1);
  const Forecast& forecast = ahead.pods.at(wants.name);
  EXPECT_GT(*forecast.earliest - now_, Hours(5)) << "it needs the whole node";
  EXPECT_THAT(forecast.because, HasSubstr("work comes as it came"));
}

TEST_F(ForecastTest, NobodyWaitsNothingIsForetold) {
  Started(Lasting(Pod("a", "runs", 8), Hours(1)), "n1");
  EXPECT_THAT(Ahead().pods, IsEmpty());
  EXPECT_EQ(Ahead().rehearsals, 0);
}

TEST_F(ForecastTest, TheSameCopyGivesTheSameForecasts) {
  for (int hours = 1; hours <= 20; ++hours) {
    runtimes_.Add({"b", "train", "", 8}, {Hours(hours), true});
  }
  Started(Pod("b", "train-bcdfg", 8), "n1");
  for (int i = 0; i < 5; ++i) Wait(Pod("b", fmt::format("train-{}", i), 8));
  const std::vector<std::string> once = Starts(Ahead());
  EXPECT_EQ(Starts(Ahead()), once);
  EXPECT_NE(Starts(Ahead({.seed = 2})), once) << "the seed is what is drawn by";
}

}  // namespace THIS_FILE
}  // namespace tranche
