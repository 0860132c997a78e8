// A budget that goes on from where another account of the same time says it stood.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "quota/budget/budget.h"
#include "test/builders/budget.h"

namespace tranche {
namespace THIS_FILE {

using test::Gpus;
using test::Hours;
using test::Utc;
using Type = BudgetWindow::Type;

std::string Used(const BudgetMeter& meter, Instant now) {
  return FormatGpuHours(meter.View(now).used);
}

GpuBudget Carrying(Type type) {
  GpuBudget budget = test::PlainBudget(type, 100);
  budget.rollover_max_percent = 50;
  budget.rollover_max_windows = 2;
  return budget;
}

struct Case {
  const char* name;
  GpuBudget budget;
};

std::vector<Case> Cases() {
  return {{"day", Carrying(Type::kDay)},
          {"week", Carrying(Type::kWeek)},
          {"month", Carrying(Type::kMonth)},
          {"rolling", test::RollingBudget(Hours(24), 100)}};
}

// Two pods that ended, and one of 2 GPUs that runs from the 14th, 20:00, on.
void Live(BudgetMeter& meter) {
  test::Ran(meter, "a", Gpus(4), Utc(2026, 1, 13, 10), Utc(2026, 1, 13, 12));
  meter.Advance(Utc(2026, 1, 13, 12));
  test::Ran(meter, "b", Gpus(1), Utc(2026, 1, 14, 1), Utc(2026, 1, 14, 1));
  meter.Start("c", Gpus(2), kUnitWeight, Utc(2026, 1, 14, 20), std::nullopt);
}
const Instant kStood = Utc(2026, 1, 15, 2);

TEST(BudgetStandTest, WhoGoesOnCountsAsIfNothingHadBeenLost) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    BudgetMeter first(c.budget, Utc(2026, 1, 12));
    Live(first);
    // Until then it ran 6 hours on two GPUs; of a day's window 2 of them.
    const BudgetStand stand = first.Stand(kStood);
    EXPECT_TRUE(IsStandOf(stand, c.budget.window));
    EXPECT_EQ(stand.at, kStood);

    // The lost events are not told again; the pod that still runs is, from its beginning.
    BudgetMeter second(c.budget, Utc(2026, 1, 15, 3));
    second.Resume(stand);
    second.Start("c", Gpus(2), kUnitWeight, Utc(2026, 1, 14, 20), std::nullopt);
    second.Advance(Utc(2026, 1, 15, 3));
    for (const Instant now : {Utc(2026, 1, 15, 3), Utc(2026, 1, 15, 9), Utc(2026, 1, 15, 23, 59),
                              Utc(2026, 1, 16, 5), Utc(2026, 2, 2)}) {
      first.Advance(now);
      second.Advance(now);
      EXPECT_EQ(Used(second, now), Used(first, now)) << now.time_since_epoch().count();
      EXPECT_EQ(FormatGpuHours(second.View(now).effective),
                FormatGpuHours(first.View(now).effective));
    }
  }
}

TEST(BudgetStandTest, WhatHappenedBeforeIsNotCountedTwiceWhoeverTellsIt) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    BudgetMeter first(c.budget, Utc(2026, 1, 12));
    Live(first);
    BudgetMeter second(c.budget, Utc(2026, 1, 12));
    second.Resume(first.Stand(kStood));
    // An old file comes back with all of its events; a refund reaches back over the stand.
    Live(second);
    EXPECT_EQ(Used(second, kStood), Used(first, kStood));
    second.Adjust(Gpus(2), kUnitWeight, {Utc(2026, 1, 14, 20), Utc(2026, 1, 15, 3)}, -1);
    first.Adjust(Gpus(2), kUnitWeight, {kStood, Utc(2026, 1, 15, 3)}, -1);
    EXPECT_EQ(Used(second, Utc(2026, 1, 15, 4)), Used(first, Utc(2026, 1, 15, 4)));
  }
}

TEST(BudgetStandTest, ARollingWindowForgetsItsPartsInTurn) {
  const GpuBudget budget = test::RollingBudget(Hours(24), 100);
  BudgetMeter first(budget, Utc(2026, 1, 1));
  test::Ran(first, "a", Gpus(3), Utc(2026, 1, 1, 6), Utc(2026, 1, 1, 8));
  const BudgetStand stand = first.Stand(Utc(2026, 1, 1, 20));
  ASSERT_EQ(stand.parts.size(), 2U);
  BudgetMeter second(budget, Utc(2026, 1, 1, 20));
  second.Resume(stand);
  const std::pair<Instant, const char*> moments[] = {{Utc(2026, 1, 2, 6), "6.000"},
                                                     {Utc(2026, 1, 2, 7), "3.000"},
                                                     {Utc(2026, 1, 2, 7, 30), "1.500"},
                                                     {Utc(2026, 1, 2, 8), "0.000"}};
  for (const auto& [now, used] : moments) {
    second.Advance(now);
    EXPECT_EQ(Used(second, now), used);
  }
}

TEST(BudgetStandTest, WhatDoesNotDivideIsNotLost) {
  const GpuBudget budget = test::RollingBudget(Hours(1), 1);
  BudgetStand stand;
  stand.at = Utc(2026, 1, 1, 1);
  stand.window = {Utc(2026, 1, 1), stand.at};
  stand.parts = {
      {{Utc(2026, 1, 1, 0, 1), Utc(2026, 1, 1, 0, 2)}, {60'000 * Int128{7} + 59'999, 3}}};
  BudgetMeter meter(budget, stand.at);
  meter.Resume(stand);
  EXPECT_TRUE(UsedOf(meter.Stand(stand.at)) == UsedOf(stand));
}

TEST(BudgetStandTest, AStandOfAnotherWindowIsKnown) {
  BudgetStand good;
  good.window = {Utc(2026, 1, 15), Utc(2026, 1, 16)};
  good.at = Utc(2026, 1, 15, 2);
  good.parts = {{{Utc(2026, 1, 15), Utc(2026, 1, 15, 1)}, {5, 5}},
                {{Utc(2026, 1, 15, 1), Utc(2026, 1, 15, 2)}, {5, 5}}};
  const auto window = [](Type type) { return test::PlainBudget(type, 1).window; };
  EXPECT_TRUE(IsStandOf(good, window(Type::kDay)));
  EXPECT_FALSE(IsStandOf(good, window(Type::kWeek)));
  EXPECT_FALSE(IsStandOf(good, window(Type::kMonth)));
  EXPECT_FALSE(IsStandOf(good, test::RollingBudget(Hours(24), 1).window));
  const std::pair<const char*, void (*)(BudgetStand&)> wrong[] = {
      {"before its window", [](BudgetStand& stand) { stand.at = Utc(2026, 1, 14); }},
      {"after it", [](BudgetStand& stand) { stand.at = Utc(2026, 1, 17); }},
      {"no window", [](BudgetStand& stand) { stand.window.end = stand.window.start; }},
      {"turned round", [](BudgetStand& stand) { std::swap(stand.parts[0], stand.parts[1]); }},
      {"a part of another window",
       [](BudgetStand& stand) { stand.parts[0].span.start = Utc(2026, 1, 14); }},
      {"a part after it stood so",
       [](BudgetStand& stand) { stand.parts[1].span.end = Utc(2026, 1, 15, 3); }},
      {"an empty part", [](BudgetStand& stand) { stand.parts[0].span.end = Utc(2026, 1, 15); }},
  };
  for (const auto& [name, spoil] : wrong) {
    BudgetStand stand = good;
    spoil(stand);
    EXPECT_FALSE(IsStandOf(stand, window(Type::kDay))) << name;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
