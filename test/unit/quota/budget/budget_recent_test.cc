// The sum over a moving window against one over all changes.
#include "quota/budget/budget_recent.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "quota/budget/budget.h"
#include "test/builders/budget.h"

namespace tranche {
namespace THIS_FILE {

using test::Gpus;
using test::Hours;
using test::RollingBudget;
using test::Utc;

Instant AtMs(int64_t ms) { return Instant(Millis(ms)); }

GpuTime SlowBetween(const std::vector<Bend>& changes, Instant from, Instant to) {
  GpuTime sum;
  for (const Bend& bend : changes) {
    if (bend.at < to) sum += bend.change * (to - std::max(bend.at, from));
  }
  return sum;
}

TEST(RecentRateTest, IsTheSumOverAllChangesWhateverTheOrderTheyComeIn) {
  std::mt19937_64 random(7);
  const auto below = [&random](int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  };
  for (int round = 0; round < 300; ++round) {
    RecentRate rate;
    std::vector<Bend> all;
    int64_t now = 1'000, forgotten = 0;
    for (int step = 0; step < 60; ++step) {
      now += below(50);
      const int64_t late = below(4) == 0 ? below(400) : 0;
      const Bend bend{AtMs(std::max(now - late, forgotten)), {below(9) - 4, below(9) - 4}};
      rate.Add(bend.at, bend.change);
      all.push_back(bend);
      if (below(5) == 0) {
        forgotten = std::max(forgotten, now - 300);
        rate.ForgetBefore(AtMs(forgotten));
      }
      const int64_t from = forgotten + below(200);
      const int64_t to = from + below(500);
      ASSERT_EQ(rate.Between(AtMs(from), AtMs(to)), SlowBetween(all, AtMs(from), AtMs(to)))
          << round << " " << step;
      const std::vector<GpuTime> parts = rate.InParts(AtMs(from), Millis(60), 7);
      for (int part = 0; part < 7; ++part) {
        ASSERT_EQ(parts[static_cast<std::size_t>(part)],
                  SlowBetween(all, AtMs(from + 60 * part / 7), AtMs(from + 60 * (part + 1) / 7)));
      }
    }
  }
}

TEST(RecentRateTest, AWindowFullOfChangesCostsNoMoreToAsk) {
  RecentRate rate;
  constexpr int64_t kWindow = 1'000'000;
  int64_t now = 0;
  for (int i = 0; i < 50'000; ++i) {
    now += 20;
    rate.Add(AtMs(now), {i % 2 == 0 ? 5 : -5, 0});
    rate.ForgetBefore(AtMs(now - kWindow));
    rate.Between(AtMs(now - kWindow), AtMs(now));
    rate.At(AtMs(now - kWindow));
  }
  EXPECT_GT(rate.changes().size(), 49'000U);
  EXPECT_LT(rate.walked(), 100);
}

// Looking again and again at a budget that nothing happens to does not look at its window.
TEST(RecentRateTest, WhatWasForeseenStandsUntilItComesOrSomethingHappens) {
  GpuBudget budget = RollingBudget(Hours(24), 100);
  BudgetMeter asked(budget, Utc(2026, 1, 1));
  std::mt19937_64 random(3);
  Instant now = Utc(2026, 1, 1);
  for (int step = 0; step < 400; ++step) {
    now += Millis(static_cast<int64_t>(random() % 3'000'000));
    const std::string key = std::to_string(random() % 8);
    if (random() % 3 == 0) {
      asked.Start(key, Gpus(static_cast<int>(1 + random() % 4)), kUnitWeight, now,
                  random() % 2 == 0 ? std::optional(now + Hours(2)) : std::nullopt);
    } else if (random() % 3 == 0) {
      asked.Stop(key, now);
    }
    asked.Advance(now);
    // One that was never asked before.
    BudgetMeter fresh = asked;
    fresh.SetSpec(budget);
    ASSERT_EQ(asked.NextChange(now), fresh.NextChange(now)) << step;
    ASSERT_EQ(asked.View(now).exhausts_at, fresh.View(now).exhausts_at) << step;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
