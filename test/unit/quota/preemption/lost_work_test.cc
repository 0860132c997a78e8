#include "quota/preemption/lost_work.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "quota/tree/charge.h"

namespace tranche {
namespace THIS_FILE {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Instant kNow{hours(480'000)};
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

Charge Gpus(int64_t count) { return {count * kQuantaPerGpu, count * kQuantaPerGpu}; }

// Four GPUs for forty minutes, capped at an hour, that need three minutes to come back.
WorkAtRisk Silent() {
  WorkAtRisk work;
  work.charge = Gpus(4);
  work.running = kNow - minutes(40);
  work.cap = minutes(60);
  work.restart_overhead = minutes(3);
  return work;
}

WorkAtRisk Publisher(Millis runtime, Millis checkpoint_age) {
  WorkAtRisk work = Silent();
  work.running = kNow - runtime;
  work.checkpoint = kNow - checkpoint_age;
  return work;
}

TEST(LostWorkTest, PublishingCheckpointsPaysAgainstBeingNewer) {
  // The worked example: T1 is six hours old with a checkpoint of five minutes ago, T2 is silent.
  EXPECT_EQ(LostGpuMillis(Publisher(hours(6), minutes(5)), std::nullopt, kNow), 1'920'000);
  EXPECT_EQ(LostGpuMillis(Silent(), minutes(15), kNow), 4'320'000);
  EXPECT_EQ(LostGpuMillis(Silent(), std::nullopt, kNow), 4 * (2400 + 180) * 1000);
}

TEST(LostWorkTest, RuntimeIsLostSinceTheLastCheckpointButNeverMoreThanTheCap) {
  WorkAtRisk not_started = Silent();
  not_started.running.reset();
  WorkAtRisk starts_later = Silent();
  starts_later.running = kNow + minutes(1);
  WorkAtRisk old_silent = Silent();
  old_silent.running = kNow - hours(6);
  const struct {
    std::string name;
    WorkAtRisk work;
    std::optional<Millis> assumed;
    Millis lost;
  } rows[] = {
      {"since the checkpoint", Publisher(hours(6), minutes(5)), minutes(50), minutes(5)},
      {"a checkpoint at the start is one", Publisher(hours(1), hours(1)), minutes(5), hours(1)},
      {"a checkpoint beyond the cap", Publisher(hours(6), hours(5)), std::nullopt, hours(1)},
      {"a checkpoint from before it ran is none", Publisher(minutes(30), hours(2)), minutes(4),
       minutes(4)},
      {"a checkpoint in the future is made now", Publisher(hours(6), -minutes(5)), std::nullopt,
       Millis(0)},
      {"silent, as its class does", Silent(), minutes(15), minutes(15)},
      {"silent, younger than its class's checkpoints", Silent(), minutes(50), minutes(40)},
      {"silent, no publishers", Silent(), std::nullopt, minutes(40)},
      {"silent and old", old_silent, std::nullopt, hours(1)},
      {"silent and old, as its class does, capped", old_silent, hours(2), hours(1)},
      {"nothing has run", not_started, minutes(15), Millis(0)},
      {"the clocks disagree", starts_later, minutes(15), Millis(0)},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(LostRuntime(row.work, row.assumed, kNow), row.lost) << row.name;
  }
}

TEST(LostWorkTest, EarlierEvictionsDoubleTheLossThreeTimesAtMost) {
  WorkAtRisk work = Silent();
  const std::vector<int64_t> factors = {1, 2, 4, 8, 8, 8};
  for (std::size_t evictions = 0; evictions < factors.size(); ++evictions) {
    work.earlier_evictions = static_cast<int>(evictions);
    EXPECT_EQ(LostGpuMillis(work, minutes(15), kNow), factors[evictions] * 4'320'000) << evictions;
  }
}

TEST(LostWorkTest, RelocatableWorkPaysTheRestartAlone) {
  WorkAtRisk work = Silent();
  work.relocatable = true;
  EXPECT_EQ(LostGpuMillis(work, minutes(15), kNow), 4 * 180'000);
  work.earlier_evictions = 1;
  EXPECT_EQ(LostGpuMillis(work, minutes(15), kNow), 8 * 180'000);
}

TEST(LostWorkTest, ChargesCountAsGpuEquivalentsRoundedUp) {
  WorkAtRisk work = Silent();
  work.restart_overhead = Millis(0);
  work.charge = {kQuantaPerGpu / 7, kQuantaPerGpu / 8};  // 1g
  EXPECT_EQ(LostGpuMillis(work, seconds(7), kNow), 1000);
  work.charge = {0, 1};
  EXPECT_EQ(LostGpuMillis(work, seconds(7), kNow), 1);
  work.charge = {};
  EXPECT_EQ(LostGpuMillis(work, seconds(7), kNow), 0);
}

TEST(LostWorkTest, HugeAmountsSaturate) {
  WorkAtRisk work = Silent();
  work.charge = {kMost, kMost};
  work.restart_overhead = Millis::max();
  work.earlier_evictions = 3;
  EXPECT_EQ(LostGpuMillis(work, std::nullopt, kNow), kMost);
  work.charge = Gpus(1);
  EXPECT_EQ(LostGpuMillis(work, std::nullopt, kNow), kMost);
}

TEST(CheckpointAgesTest, PercentileIsTheNearestRankOfTheClass) {
  CheckpointAges ages;
  EXPECT_EQ(ages.Percentile("training", 50), std::nullopt);
  for (const int age : {50, 20, 40, 10, 30}) ages.Add("training", minutes(age));
  ages.Add("notebook", minutes(1));
  const struct {
    int percentile;
    Millis age;
  } rows[] = {{0, minutes(10)},  {1, minutes(10)},  {20, minutes(10)}, {21, minutes(20)},
              {50, minutes(30)}, {80, minutes(40)}, {81, minutes(50)}, {100, minutes(50)}};
  for (const auto& row : rows) {
    EXPECT_EQ(ages.Percentile("training", row.percentile), row.age) << row.percentile;
  }
  EXPECT_EQ(ages.Percentile("notebook", 50), minutes(1));
  ages.Add("training", minutes(5));
  EXPECT_EQ(ages.Percentile("training", 1), minutes(5)) << "added after the first question";
}

}  // namespace THIS_FILE
}  // namespace tranche
