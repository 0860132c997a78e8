#include "scheduler/embedded/clocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace tranche {
namespace {

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

TEST(ForwardTime, FollowsTheWallAndRunsAtHalfSpeedWhileTheWallIsBehind) {
  struct Reading {
    const char* what;
    int wall, steady, expected;
  };
  const std::vector<Reading> readings = {
      {"the first reading is the wall's", 1000, 0, 1000},
      {"time passes", 1010, 10, 1010},
      {"the wall jumps ahead and is followed", 2000, 20, 2000},
      {"the wall is set back: half speed", 1010, 30, 2005},
      {"still behind", 2000, 1020, 2500},
      {"the wall is ahead again", 2600, 1030, 2600},
      {"neither clock moved", 2600, 1030, 2600},
  };
  ForwardTime time;
  for (const Reading& reading : readings) {
    EXPECT_EQ(time.At(ForwardTime::Wall(seconds(reading.wall)), seconds(reading.steady)),
              ForwardTime::Wall(seconds(reading.expected)))
        << reading.what;
  }
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

}  // namespace
}  // namespace tranche
