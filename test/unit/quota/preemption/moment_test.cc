#include "quota/preemption/moment.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tranche {
namespace THIS_FILE {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Instant kNow{hours(480'000)};

Charge Gpus(int64_t count) { return {count * kQuantaPerGpu, count * kQuantaPerGpu}; }

// Runs for six hours; its last checkpoint was so long ago, the one before a gap earlier.
WorkInTime Victim(int64_t gpus, Millis age, Millis gap) {
  WorkInTime victim;
  victim.work.charge = Gpus(gpus);
  victim.work.running = kNow - hours(6);
  victim.work.checkpoint = kNow - age;
  victim.work.cap = hours(1);
  victim.gap = gap;
  return victim;
}

WorkInTime Silent(int64_t gpus) {
  WorkInTime victim = Victim(gpus, minutes(0), minutes(0));
  victim.work.checkpoint.reset();
  return victim;
}

TEST(MomentTest, TheNextCheckpointIsAGapAfterTheLast) {
  WorkInTime starting = Victim(1, minutes(5), minutes(30));
  starting.work.running.reset();
  WorkInTime moved = Victim(1, minutes(5), minutes(30));
  moved.work.relocatable = true;
  const struct {
    const char* what;
    WorkInTime victim;
    std::optional<Instant> next;
  } rows[] = {
      {"it comes", Victim(1, minutes(5), minutes(30)), kNow + minutes(25)},
      {"a moment ago", Victim(1, minutes(0), minutes(30)), kNow + minutes(30)},
      {"late by less than a gap", Victim(1, minutes(40), minutes(30)), kNow + minutes(20)},
      {"two gaps ago: it has stopped", Victim(1, minutes(60), minutes(30)), {}},
      {"in the future: now", Victim(1, minutes(-5), minutes(30)), kNow + minutes(30)},
      {"one checkpoint tells no gap", Victim(1, minutes(5), minutes(0)), {}},
      {"it writes none", Silent(1), {}},
      {"it has not begun", starting, {}},
      {"it goes on elsewhere", moved, {}},
  };
  for (const auto& row : rows) EXPECT_EQ(NextCheckpoint(row.victim, kNow), row.next) << row.what;
}

TEST(MomentTest, WaitingCountsATenthOfLostWork) {
  const struct {
    const char* what;
    std::vector<WorkInTime> victims;
    int64_t waiting;  // GPUs
    Millis patience;
    std::optional<Millis> wait;
  } rows[] = {
      {"10 min of work, 20 min to go",
       {Victim(1, minutes(10), minutes(30))},
       1,
       hours(1),
       minutes(20)},
      {"2 min of work are not worth 28 of waiting",
       {Victim(1, minutes(2), minutes(30))},
       1,
       hours(1),
       {}},
      {"as much is lost as waited: now", {Victim(1, minutes(3), minutes(33))}, 1, hours(1), {}},
      {"a second more",
       {Victim(1, minutes(3) + seconds(1), minutes(33))},
       1,
       hours(1),
       minutes(30) - seconds(1)},
      {"8 GPUs wait for one", {Victim(1, minutes(10), minutes(30))}, 8, hours(1), {}},
      {"one GPU waits for 8", {Victim(8, minutes(2), minutes(30))}, 1, hours(1), minutes(28)},
      {"beyond its patience", {Victim(1, minutes(10), minutes(30))}, 1, minutes(19), {}},
      {"just within it", {Victim(1, minutes(10), minutes(30))}, 1, minutes(20), minutes(20)},
      {"nobody writes checkpoints", {Silent(4)}, 1, hours(1), {}},
      {"nobody has to go", {}, 1, hours(1), {}},
      {"the first of two is enough, the other has just written one",
       {Victim(1, minutes(29), minutes(30)), Victim(1, minutes(1), minutes(30))},
       1,
       hours(1),
       minutes(1)},
      {"the second is worth more",
       {Victim(1, minutes(29), minutes(30)), Victim(8, minutes(25), minutes(30))},
       1,
       hours(1),
       minutes(5)},
  };
  for (const auto& row : rows) {
    const auto moment = BetterMoment(row.victims, Gpus(row.waiting), kNow, kNow + row.patience);
    EXPECT_EQ(moment, row.wait ? std::optional(kNow + *row.wait) : std::nullopt) << row.what;
  }
}

// No moment within the patience, looked at second by second, costs less.
TEST(MomentTest, NoOtherMomentCostsLess) {
  constexpr uint64_t kSeed = 20261126;
  std::mt19937_64 draws(kSeed);
  const auto below = [&draws](int64_t most) {
    return static_cast<int64_t>(draws() % static_cast<uint64_t>(most));
  };
  for (int scene = 0; scene < 200; ++scene) {
    std::vector<WorkInTime> victims;
    for (int64_t i = 1 + below(4); i > 0; --i) {
      const Millis gap = seconds(90 + below(600));
      victims.push_back(Victim(1 + below(8), seconds(below(gap / seconds(1))), gap));
    }
    const Charge waiting = Gpus(1 + below(16));
    const Instant latest = kNow + seconds(below(660));
    const auto cost_at = [&](Instant at) {
      int64_t cost = GpuEquivalents(waiting) / kQuantaPerGpu * (at - kNow).count() / 10;
      for (WorkInTime victim : victims) {
        while (*victim.work.checkpoint + victim.gap <= at) *victim.work.checkpoint += victim.gap;
        cost += LostGpuMillis(victim.work, victim.assumed, at);
      }
      return cost;
    };
    const auto moment = BetterMoment(victims, waiting, kNow, latest);
    const int64_t found = cost_at(moment.value_or(kNow));
    for (Instant at = kNow; at <= latest; at += seconds(1))
      ASSERT_LE(found, cost_at(at)) << "seed " << kSeed << ", scene " << scene;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
