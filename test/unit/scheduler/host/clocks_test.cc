#include "scheduler/host/clocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace tranche {
namespace THIS_FILE {

using std::chrono::seconds;

const Instant kNoon =
    std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + std::chrono::hours(12);

TEST(ManualClock, StandsStillUntilMoved) {
  ManualClock clock(kNoon);
  EXPECT_EQ(clock.Now(), kNoon);
  EXPECT_EQ(clock.Now(), kNoon);
  EXPECT_EQ(clock.AdvanceBy(seconds(90)), kNoon + seconds(90));
  EXPECT_EQ(clock.Now(), kNoon + seconds(90));
}

TEST(ManualClock, AcceptsAStepOfZero) {
  ManualClock clock(kNoon);
  EXPECT_EQ(clock.AdvanceBy(Millis(0)), kNoon);
}

TEST(ManualClock, NeverGoesBack) {
  ManualClock clock(kNoon);
  EXPECT_EQ(clock.AdvanceBy(seconds(-1)), kNoon);
  EXPECT_EQ(clock.AdvanceBy(Millis::min()), kNoon);
}

TEST(ManualClock, StopsAtTheLastMomentThatCanBeWritten) {
  ManualClock clock(kNoon);
  EXPECT_EQ(clock.AdvanceBy(Millis::max()), kLastInstant);
  EXPECT_EQ(clock.AdvanceBy(seconds(1)), kLastInstant);
  EXPECT_EQ(ManualClock(kLastInstant + seconds(1)).Now(), kLastInstant);
}

// Readings in milliseconds after a common start, and what comes of them.
struct Reading {
  const char* what;
  int64_t boot, wall, expected, ahead;
};

void ExpectReadings(ForwardTime& time, const std::vector<Reading>& readings) {
  const ForwardTime::Wall start{kNoon};
  for (const Reading& reading : readings) {
    EXPECT_EQ(time.At(start + Millis(reading.wall), Millis(reading.boot)) - start,
              Millis(reading.expected))
        << reading.what;
    EXPECT_EQ(time.ahead(), Millis(reading.ahead)) << reading.what;
  }
}

TEST(ForwardTime, RunsWithTheWallWhileBothAgree) {
  ForwardTime time(Instant{});
  ExpectReadings(time, {{"the first reading is the wall's", 5000, 0, 0, 0},
                        {"time passes", 5010, 10, 10, 0},
                        {"neither clock moved", 5010, 10, 10, 0},
                        {"an hour passes", 3'605'000, 3'600'000, 3'600'000, 0}});
  EXPECT_TRUE(time.TakeSteps().empty());
}

TEST(ForwardTime, FollowsAWallSetForwardAndTellsTheStepOnce) {
  ForwardTime time(Instant{});
  ExpectReadings(time, {{"start", 0, 0, 0, 0},
                        {"a day ahead", 100, 86'400'000, 86'400'000, 0},
                        {"at its rate from there", 200, 86'400'100, 86'400'100, 0},
                        {"just over a second", 300, 86'401'201, 86'401'201, 0}});
  const std::vector<ClockStep> steps = time.TakeSteps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].from, kNoon + Millis(100));
  EXPECT_EQ(steps[0].to, kNoon + Millis(86'400'000));
  EXPECT_EQ(steps[1].from, kNoon + Millis(86'400'200));
  EXPECT_EQ(steps[1].to, kNoon + Millis(86'401'201));
  EXPECT_TRUE(time.TakeSteps().empty());
}

TEST(ForwardTime, CatchesUpWithASlightlyFasterWallByAThousandth) {
  ForwardTime time(Instant{});
  ExpectReadings(time, {{"start", 0, 0, 0, 0},
                        {"a second ahead: not before a second has passed", 999, 1999, 999, 0},
                        {"one in a thousand", 1000, 2000, 1001, 0},
                        {"from there", 1500, 2500, 1501, 0},
                        {"a second later", 2000, 3000, 2002, 0},
                        {"after ten minutes", 602'000, 603'000, 602'602, 0},
                        {"never past the wall", 1'602'000, 1'602'700, 1'602'700, 0}});
  EXPECT_TRUE(time.TakeSteps().empty());
}

TEST(ForwardTime, RunsOnAtItsTrueRateWhileTheWallIsBehind) {
  ForwardTime time(Instant{});
  ExpectReadings(time, {{"start", 0, 0, 0, 0},
                        {"set back an hour", 100, -3'600'000, 100, 3'600'100},
                        {"at the true rate", 10'100, -3'590'000, 10'100, 3'600'100},
                        {"a little nearer is no change", 10'200, -3'589'400, 10'200, 3'600'100},
                        {"set forward again", 10'300, 10'250, 10'300, 0},
                        {"set back by less than a second", 10'400, 9'500, 10'400, 0}});
  EXPECT_TRUE(time.TakeSteps().empty());
}

TEST(ForwardTime, DoesNotStartBeforeAKnownMoment) {
  ForwardTime later(kNoon + Millis(5000));
  ExpectReadings(later, {{"the wall is behind", 0, 0, 5000, 5000},
                         {"at the true rate", 1000, 1000, 6000, 5000}});
  ForwardTime earlier(kNoon - Millis(5000));
  ExpectReadings(earlier, {{"the wall is ahead", 0, 0, 0, 0}});
  EXPECT_TRUE(earlier.TakeSteps().empty()) << "a start is no step";
}

TEST(SystemClock, IsTheMachinesWallTimeAndNeverGoesBack) {
  const SystemClock clock;
  const Instant before =
      std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now()) - seconds(1);
  Instant last = clock.Now();
  EXPECT_GE(last, before);
  EXPECT_LE(last, before + seconds(60));
  for (int i = 0; i < 1000; ++i) {
    const Instant now = clock.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(SystemClock, StartsNoEarlierThanTold) {
  const Instant last_known =
      std::chrono::floor<Millis>(std::chrono::system_clock::now()) + std::chrono::hours(24 * 400);
  SystemClock clock(last_known);
  EXPECT_GE(clock.Now(), last_known);
  EXPECT_LE(clock.Now(), last_known + seconds(60));
  EXPECT_GT(clock.AheadOfWall(), std::chrono::hours(24 * 399));
  EXPECT_TRUE(clock.TakeSteps().empty());
  EXPECT_EQ(SystemClock().AheadOfWall(), Millis(0));
  EXPECT_LE(SystemClock(Instant::max()).Now(), kLastInstant + seconds(60));
}

}  // namespace THIS_FILE
}  // namespace tranche
