#include "quota/preemption/eviction_history.h"

#include <gtest/gtest.h>

#include <string>

namespace tranche {
namespace THIS_FILE {

using std::chrono::hours;
using std::chrono::minutes;

Instant Minute(int64_t count) { return Instant(hours(480'000) + minutes(count)); }

constexpr int64_t kDay = 24 * 60;

TEST(EvictionHistoryTest, ImmunityDoublesWithEachEvictionOfTheDayUpToAnHour) {
  EvictionHistory history;
  EXPECT_EQ(history.ImmuneUntil("job", Minute(kDay * 2), minutes(10), Minute(0)), std::nullopt);
  const int64_t guards[] = {10, 20, 40, 60, 60};
  for (int i = 0; i < 5; ++i) {
    const int64_t at = 100 * i;
    history.Note("job", "team-a", 1, Minute(at));
    const Instant until = Minute(at + guards[i]);
    EXPECT_EQ(history.Evictions("job", Minute(at)), i + 1);
    EXPECT_EQ(history.ImmuneUntil("job", Minute(kDay * 2), minutes(10), Minute(at)), until) << i;
    EXPECT_EQ(history.ImmuneUntil("job", Minute(kDay * 2), minutes(10), until - Millis(1)), until)
        << i;
    EXPECT_EQ(history.ImmuneUntil("job", Minute(kDay * 2), minutes(10), until), std::nullopt) << i;
  }
  EXPECT_EQ(history.ImmuneUntil("job", Minute(kDay * 2), Millis(0), Minute(400)), std::nullopt)
      << "no cooldown";
  EXPECT_EQ(history.ImmuneUntil("job", Minute(kDay * 2), Millis::max(), Minute(400)), Minute(460))
      << "capped";
  EXPECT_EQ(history.ImmuneUntil("other", Minute(kDay * 2), minutes(10), Minute(400)), std::nullopt);
}

TEST(EvictionHistoryTest, ImmunityStartsAgainWhenADayIsOver) {
  EvictionHistory history;
  history.Note("job", "team-a", 1, Minute(0));
  history.Note("job", "team-a", 1, Minute(kDay));
  EXPECT_EQ(history.Evictions("job", Minute(kDay)), 1) << "the first one has just left";
  EXPECT_EQ(history.ImmuneUntil("job", Minute(kDay * 2), minutes(10), Minute(kDay)),
            Minute(kDay + 10));
}

TEST(EvictionHistoryTest, ADayHoldsSoManyEvictionsOfAnOwner) {
  EvictionHistory history;
  for (const int64_t at : {0, 60, 120}) history.Note("job", "team-a", 1, Minute(at));
  const struct {
    std::optional<int> most;
    int64_t now;
    std::optional<Instant> until;
  } rows[] = {
      {std::nullopt, 120, std::nullopt},
      {4, 120, std::nullopt},       // one is left
      {3, 120, Minute(kDay)},       // when the first leaves
      {2, 120, Minute(kDay + 60)},  // the limit was lowered: two have to leave
      {1, 120, Minute(kDay + 120)},
      {3, kDay, std::nullopt},
      {2, kDay, Minute(kDay + 60)},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(history.DayFullUntil("job", row.most, Minute(row.now)), row.until)
        << row.most.value_or(0) << " at " << row.now;
  }
  EXPECT_EQ(history.DayFullUntil("other", 1, Minute(120)), std::nullopt);
}

TEST(EvictionHistoryTest, WhatRanAllAlongIsNotProtectedByWhatHappenedToOthersOfItsOwner) {
  EvictionHistory history;
  history.Note("job", "team", 1, Minute(10));
  history.Note("job", "team", 1, Minute(20));
  const struct {
    int64_t started;
    std::optional<Instant> until;
  } rows[] = {
      {0, std::nullopt}, {10, std::nullopt}, {11, Minute(20) + minutes(5)},
      {20, Minute(25)},  {21, Minute(50)},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(history.ImmuneUntil("job", Minute(row.started), minutes(15), Minute(22)), row.until)
        << row.started;
  }
}

TEST(EvictionHistoryTest, AnHourHoldsSoManyPodsOfALeaf) {
  EvictionHistory history;
  history.Note("a", "team", 4, Minute(0));
  history.Note("b", "team", 1, Minute(10));
  history.Note("c", "team", 2, Minute(20));
  history.Note("d", "other", 50, Minute(20));
  EXPECT_EQ(history.PodsInHour("team", Minute(20)), 7);
  EXPECT_EQ(history.PodsInHour("team", Minute(60)), 3) << "the first gang has just left";
  EXPECT_EQ(history.PodsInHour("team", Minute(80)), 0);
  EXPECT_EQ(history.PodsInHour("nobody", Minute(20)), 0);
  const struct {
    int64_t most;
    int64_t now;
    std::optional<Instant> until;
  } rows[] = {
      {8, 20, std::nullopt}, {7, 20, Minute(60)}, {4, 20, Minute(60)}, {3, 20, Minute(70)},
      {2, 20, Minute(80)},   {1, 20, Minute(80)}, {3, 60, Minute(70)}, {3, 70, std::nullopt},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(history.HourFullUntil("team", row.most, Minute(row.now)), row.until)
        << row.most << " at " << row.now;
    if (row.until) {
      EXPECT_LT(history.PodsInHour("team", *row.until), row.most) << "true at that moment";
      EXPECT_GE(history.PodsInHour("team", *row.until - Millis(1)), row.most) << "and not before";
    }
  }
  EXPECT_EQ(history.HourFullUntil("nobody", 1, Minute(20)), std::nullopt);
}

TEST(EvictionHistoryTest, LateAndRepeatedNotesCountOnceInTheirPlace) {
  EvictionHistory history;
  history.Note("job", "team", 3, Minute(50));
  history.Note("job", "team", 3, Minute(0));
  history.Note("job", "team", 3, Minute(50));
  history.Note("job", "team", 3, Minute(0));
  EXPECT_EQ(history.Evictions("job", Minute(55)), 2);
  EXPECT_EQ(history.PodsInHour("team", Minute(55)), 6);
  EXPECT_EQ(history.PodsInHour("team", Minute(60)), 3);
  EXPECT_EQ(history.ImmuneUntil("job", Minute(kDay * 2), minutes(10), Minute(55)), Minute(70))
      << "after the latest";
  history.Note("another", "team", 1, Minute(50));
  EXPECT_EQ(history.PodsInHour("team", Minute(60)), 4) << "another owner at the same moment";
}

TEST(EvictionHistoryTest, WhatIsOlderThanADayIsForgotten) {
  EvictionHistory history;
  history.Note("old", "team", 1, Minute(0));
  history.Note("job", "team", 2, Minute(0));
  history.Note("job", "team", 2, Minute(30));
  history.Forget(Minute(kDay));
  EXPECT_EQ(history.Evictions("old", Minute(30)), 0);
  EXPECT_EQ(history.Evictions("job", Minute(30)), 1);
  EXPECT_EQ(history.PodsInHour("team", Minute(30)), 2);
  history.Forget(Minute(2 * kDay));
  EXPECT_EQ(history.Evictions("job", Minute(30)), 0);
  EXPECT_EQ(history.PodsInHour("team", Minute(30)), 0);
}

}  // namespace THIS_FILE
}  // namespace tranche
