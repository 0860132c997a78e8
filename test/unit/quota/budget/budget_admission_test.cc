#include "gtest/gtest.h"
#include "quota/budget/budget.h"
#include "test/builders/budget.h"

namespace tranche {
namespace THIS_FILE {

using test::GpuHours;
using test::Gpus;
using test::Hours;
using test::Minutes;
using test::PlainBudget;
using test::Ran;
using test::RollingBudget;
using test::Utc;
using Type = BudgetWindow::Type;

std::string Text(Int128 amount) { return FormatGpuHours(amount); }

// Ten hours before the day's end, four GPUs run for six hours more.
BudgetMeter FourGpusForSixHours() {
  BudgetMeter meter(PlainBudget(Type::kDay, 100), Utc(2026, 1, 1, 14));
  meter.Start("a", Gpus(4), kUnitWeight, Utc(2026, 1, 1, 14), Utc(2026, 1, 1, 20));
  return meter;
}

TEST(BudgetAdmissionTest, AdmissionIsSafeAndSaysWhenTheRequestWillFit) {
  const BudgetMeter meter = FourGpusForSixHours();
  const BudgetVerdict now = meter.Admit(Gpus(8), kUnitWeight, Hours(12), Utc(2026, 1, 1, 14));
  EXPECT_FALSE(now.fits);
  EXPECT_EQ(Text(now.used), "0.000");
  EXPECT_EQ(Text(now.committed), "24.000");
  EXPECT_EQ(Text(now.request), "80.000");
  EXPECT_EQ(Text(now.effective), "100.000");
  ASSERT_TRUE(now.eligible_at.has_value());
  EXPECT_EQ(*now.eligible_at, Utc(2026, 1, 1, 14, 30));

  const BudgetVerdict later = meter.Admit(Gpus(8), kUnitWeight, Hours(12), *now.eligible_at);
  EXPECT_TRUE(later.fits);
  EXPECT_EQ(Text(later.used), "2.000");
  EXPECT_EQ(Text(later.committed), "22.000");
  EXPECT_EQ(Text(later.request), "76.000");
  EXPECT_EQ(later.eligible_at, now.eligible_at);
  EXPECT_FALSE(meter.Admit(Gpus(8), kUnitWeight, Hours(12), *now.eligible_at - Millis(1)).fits);
}

TEST(BudgetAdmissionTest, ARequestWithoutEndAsksForTheLease) {
  BudgetMeter meter(PlainBudget(Type::kDay, 2), Utc(2026, 1, 1));
  EXPECT_TRUE(meter.Admit(Gpus(8), kUnitWeight, std::nullopt, Utc(2026, 1, 1)).fits);
  EXPECT_FALSE(meter.Admit(Gpus(9), kUnitWeight, std::nullopt, Utc(2026, 1, 1)).fits);
  EXPECT_EQ(Text(meter.Admit(Gpus(9), kUnitWeight, std::nullopt, Utc(2026, 1, 1)).request),
            "2.250");
  EXPECT_TRUE(meter.Admit(Gpus(9), kUnitWeight, std::nullopt, Utc(2026, 1, 1, 23, 50)).fits);
}

TEST(BudgetAdmissionTest, WorkWithoutEndOrBeyondItsEndIsPromisedTheLeaseAlwaysAnew) {
  BudgetMeter meter(PlainBudget(Type::kDay, 100), Utc(2026, 1, 1));
  meter.Start("endless", Gpus(4), kUnitWeight, Utc(2026, 1, 1), std::nullopt);
  meter.Start("longer than declared", Gpus(4), kUnitWeight, Utc(2026, 1, 1), Utc(2026, 1, 1, 2));
  const struct {
    Instant at;
    const char* committed;
  } kCases[] = {
      {Utc(2026, 1, 1), "9.000"},         {Utc(2026, 1, 1, 1), "5.000"},
      {Utc(2026, 1, 1, 2), "2.000"},      {Utc(2026, 1, 1, 9), "2.000"},
      {Utc(2026, 1, 1, 23, 50), "1.333"},
  };
  for (const auto& c : kCases) EXPECT_EQ(Text(meter.View(c.at).committed), c.committed);
}

TEST(BudgetAdmissionTest, WhatCrossesTheWindowsEndIsCroppedThere) {
  BudgetMeter meter(PlainBudget(Type::kDay, 10), Utc(2026, 1, 1));
  const BudgetVerdict verdict = meter.Admit(Gpus(1), kUnitWeight, Hours(1000), Utc(2026, 1, 1, 10));
  EXPECT_FALSE(verdict.fits);
  EXPECT_EQ(Text(verdict.request), "14.000");
  EXPECT_EQ(verdict.eligible_at, Utc(2026, 1, 1, 14));
}

TEST(BudgetAdmissionTest, ARequestMayWaitForCarriedHoursOrForDebtToBePaid) {
  GpuBudget budget = PlainBudget(Type::kDay, 10);
  budget.rollover_max_percent = 50;
  budget.rollover_max_windows = 1;
  budget.max_debt_percent = 100;
  BudgetMeter meter(budget, Utc(2026, 1, 1));
  Ran(meter, "a", Gpus(1), Utc(2026, 1, 1), Utc(2026, 1, 1, 6));
  // 4 are left, and tomorrow 10 and those 4.
  EXPECT_EQ(meter.Admit(Gpus(14), kUnitWeight, Hours(1), Utc(2026, 1, 1, 6)).eligible_at,
            Utc(2026, 1, 1, 23) + Millis(2'571'429));  // cropped to 4 a few minutes before midnight
  meter.Start("b", Gpus(1), kUnitWeight, Utc(2026, 1, 1, 6), Utc(2026, 1, 1, 18));
  // Today overruns by 8; tomorrow only 2 are left, the day after all 10.
  EXPECT_EQ(meter.Admit(Gpus(2), kUnitWeight, Hours(4), Utc(2026, 1, 1, 17)).eligible_at,
            Utc(2026, 1, 2, 23));
}

TEST(BudgetAdmissionTest, TheFirstMomentIsFoundAcrossWindowsOrGivenUp) {
  BudgetMeter meter(PlainBudget(Type::kDay, 1), Utc(2026, 1, 1));
  meter.Start("a", Gpus(8), kUnitWeight, Utc(2026, 1, 1), Utc(2026, 1, 5));
  EXPECT_EQ(meter.Admit(Gpus(1), kUnitWeight, Hours(1), Utc(2026, 1, 1)).eligible_at,
            Utc(2026, 1, 5));
  meter.Start("b", Gpus(8), kUnitWeight, Utc(2026, 1, 1), std::nullopt);
  EXPECT_EQ(meter.Admit(Gpus(1), kUnitWeight, Hours(1), Utc(2026, 1, 1)).eligible_at, std::nullopt);
}

TEST(BudgetAdmissionTest, ANextWindowHasRoomUntilEndlessWorkTakesIt) {
  BudgetMeter meter(PlainBudget(Type::kDay, 10), Utc(2026, 1, 1));
  meter.Start("a", Gpus(8), kUnitWeight, Utc(2026, 1, 1), std::nullopt);
  EXPECT_EQ(meter.Admit(Gpus(8), kUnitWeight, Hours(1), Utc(2026, 1, 1, 12)).eligible_at,
            Utc(2026, 1, 2));
}

TEST(BudgetAdmissionTest, OnceOnlyTheLeaseIsLeftEndlessWorkTakesNoMore) {
  GpuBudget budget = PlainBudget(Type::kDay, 0);
  budget.milli_gpu_hours = 192'100;
  BudgetMeter meter(budget, Utc(2026, 1, 1));
  meter.Start("a", Gpus(8), kUnitWeight, Utc(2026, 1, 1), std::nullopt);
  // It takes 192 in all from 23:45 on; a request cropped to six minutes fits beside it.
  EXPECT_EQ(meter.Admit(Gpus(1), kUnitWeight, Hours(1), Utc(2026, 1, 1, 23, 44)).eligible_at,
            Utc(2026, 1, 1, 23, 54));
}

TEST(BudgetAdmissionTest, FreeWorkIsAdmittedWhateverIsUsed) {
  BudgetMeter meter(PlainBudget(Type::kDay, 1), Utc(2026, 1, 1));
  Ran(meter, "a", Gpus(8), Utc(2026, 1, 1), Utc(2026, 1, 1, 6));
  EXPECT_TRUE(meter.Exhausted(Utc(2026, 1, 1, 6)));
  EXPECT_TRUE(meter.Admit(Gpus(8), 0, std::nullopt, Utc(2026, 1, 1, 6)).fits);
  EXPECT_FALSE(meter.Admit(Gpus(8), 1, std::nullopt, Utc(2026, 1, 1, 6)).fits);
}

TEST(BudgetAdmissionTest, DimensionsAreSummedBeforeTheLargerOneIsCompared) {
  BudgetMeter meter(PlainBudget(Type::kDay, 10), Utc(2026, 1, 1));
  Ran(meter, "a", {10 * kQuantaPerGpu, 0}, Utc(2026, 1, 1), Utc(2026, 1, 1, 1));
  const Charge memory_only{0, kQuantaPerGpu};
  EXPECT_TRUE(meter.Admit(memory_only, kUnitWeight, Hours(10), Utc(2026, 1, 1, 1)).fits);
  const BudgetVerdict verdict =
      meter.Admit(memory_only, kUnitWeight, Hours(11), Utc(2026, 1, 1, 1));
  EXPECT_FALSE(verdict.fits);
  EXPECT_EQ(Text(verdict.used), "0.000");
  EXPECT_EQ(Text(verdict.request), "11.000");
}

TEST(BudgetAdmissionTest, ARollingWindowAdmitsWhenEnoughHasAged) {
  BudgetMeter meter(RollingBudget(Hours(24), 10), Utc(2026, 1, 1));
  Ran(meter, "a", Gpus(2), Utc(2026, 1, 1, 6), Utc(2026, 1, 1, 10));
  const Instant now = Utc(2026, 1, 1, 12);
  EXPECT_TRUE(meter.Admit(Gpus(1), kUnitWeight, Hours(2), now).fits);
  EXPECT_EQ(meter.Admit(Gpus(1), kUnitWeight, Hours(3), now).eligible_at, Utc(2026, 1, 2, 6, 30));
  EXPECT_EQ(meter.Admit(Gpus(1), kUnitWeight, Hours(3), Utc(2026, 1, 2, 6)).eligible_at,
            Utc(2026, 1, 2, 6, 30));
  EXPECT_EQ(meter.Admit(Gpus(1), kUnitWeight, Hours(10), now).eligible_at, Utc(2026, 1, 2, 10));
  EXPECT_EQ(meter.Admit(Gpus(1), kUnitWeight, Hours(11), now).eligible_at, std::nullopt);
}

TEST(BudgetAdmissionTest, ARollingWindowPromisesNoMoreThanItsDuration) {
  BudgetMeter meter(RollingBudget(Hours(24), 100), Utc(2026, 1, 1));
  meter.Start("a", Gpus(1), kUnitWeight, Utc(2026, 1, 1), Utc(2026, 1, 11));
  EXPECT_EQ(Text(meter.View(Utc(2026, 1, 1)).committed), "24.000");
  EXPECT_EQ(Text(meter.View(Utc(2026, 1, 10, 12)).committed), "12.000");
  EXPECT_EQ(Text(meter.Admit(Gpus(1), kUnitWeight, Hours(99), Utc(2026, 1, 1)).request), "24.000");
}

TEST(BudgetViewTest, AFreshBudgetIsUntouched) {
  const BudgetMeter meter(PlainBudget(Type::kMonth, 10), Utc(2026, 1, 7));
  const BudgetView view = meter.View(Utc(2026, 1, 7));
  EXPECT_EQ(view.window, (TimeSpan{Utc(2026, 1, 1), Utc(2026, 2, 1)}));
  EXPECT_EQ(view.state, BudgetState::kOk);
  EXPECT_EQ(view.percent, 0);
  EXPECT_EQ(view.exhausts_at, std::nullopt);
  EXPECT_EQ(meter.NextChange(Utc(2026, 1, 7)), Utc(2026, 2, 1));
}

TEST(BudgetViewTest, StateFollowsConsumptionAndItsChangesAreForetold) {
  GpuBudget budget = PlainBudget(Type::kDay, 20);
  budget.notify_at_percent = {50, 80, 95};
  BudgetMeter meter(budget, Utc(2026, 1, 1));
  meter.Start("a", Gpus(2), kUnitWeight, Utc(2026, 1, 1), std::nullopt);
  const struct {
    Instant at;
    BudgetState state;
    int percent, notified;
    Instant next;
  } kCases[] = {
      {Utc(2026, 1, 1), BudgetState::kOk, 0, 0, Utc(2026, 1, 1, 5)},
      {Utc(2026, 1, 1, 5) - Millis(1), BudgetState::kOk, 49, 0, Utc(2026, 1, 1, 5)},
      {Utc(2026, 1, 1, 5), BudgetState::kWarning, 50, 50, Utc(2026, 1, 1, 8)},
      {Utc(2026, 1, 1, 8), BudgetState::kWarning, 80, 80, Utc(2026, 1, 1, 9, 30)},
      {Utc(2026, 1, 1, 9, 30), BudgetState::kWarning, 95, 95, Utc(2026, 1, 1, 10)},
      {Utc(2026, 1, 1, 10), BudgetState::kExhausted, 100, 95, Utc(2026, 1, 2)},
      {Utc(2026, 1, 1, 20), BudgetState::kExhausted, 200, 95, Utc(2026, 1, 2)},
      {Utc(2026, 1, 2), BudgetState::kOk, 0, 0, Utc(2026, 1, 2, 5)},
  };
  for (const auto& c : kCases) {
    const BudgetView view = meter.View(c.at);
    EXPECT_EQ(view.state, c.state) << c.percent;
    EXPECT_EQ(view.percent, c.percent);
    EXPECT_EQ(view.notified_percent, c.notified);
    EXPECT_EQ(meter.NextChange(c.at), c.next) << c.percent;
    EXPECT_EQ(meter.Exhausted(c.at), c.state == BudgetState::kExhausted);
  }
  EXPECT_EQ(meter.View(Utc(2026, 1, 1)).exhausts_at, Utc(2026, 1, 1, 10));
  EXPECT_EQ(meter.View(Utc(2026, 1, 1, 20)).exhausts_at, Utc(2026, 1, 1, 20));
}

TEST(BudgetViewTest, DeclaredEndsPutExhaustionOffButNotTheNextLook) {
  BudgetMeter meter(PlainBudget(Type::kDay, 10), Utc(2026, 1, 1));
  meter.Start("a", Gpus(1), kUnitWeight, Utc(2026, 1, 1), Utc(2026, 1, 1, 8));
  EXPECT_EQ(meter.View(Utc(2026, 1, 1)).exhausts_at, std::nullopt);
  EXPECT_EQ(meter.NextChange(Utc(2026, 1, 1)), Utc(2026, 1, 1, 10));
  meter.Start("b", Gpus(1), kUnitWeight, Utc(2026, 1, 1, 1), std::nullopt);
  EXPECT_EQ(meter.View(Utc(2026, 1, 1, 1)).exhausts_at, Utc(2026, 1, 1, 5, 30));
}

TEST(BudgetViewTest, ARollingBudgetRecovers) {
  BudgetMeter meter(RollingBudget(Hours(24), 8), Utc(2026, 1, 1));
  Ran(meter, "a", Gpus(2), Utc(2026, 1, 1, 6), Utc(2026, 1, 1, 10));
  const Instant now = Utc(2026, 1, 1, 12);
  const BudgetView view = meter.View(now);
  EXPECT_EQ(view.window, (TimeSpan{Utc(2025, 12, 31, 12), now}));
  EXPECT_EQ(view.state, BudgetState::kExhausted);
  EXPECT_EQ(meter.NextChange(now), Utc(2026, 1, 2, 6) + Millis(1));
  EXPECT_EQ(meter.View(Utc(2026, 1, 2, 6)).state, BudgetState::kExhausted);
  EXPECT_EQ(meter.View(Utc(2026, 1, 2, 6) + Millis(1)).state, BudgetState::kOk);
  EXPECT_EQ(meter.NextChange(Utc(2026, 1, 2, 6) + Millis(1)), std::nullopt);
}

TEST(BudgetViewTest, ABudgetOfNothingIsExhausted) {
  const BudgetMeter meter(PlainBudget(Type::kDay, 0), Utc(2026, 1, 1));
  EXPECT_EQ(meter.View(Utc(2026, 1, 1)).state, BudgetState::kExhausted);
  EXPECT_EQ(meter.View(Utc(2026, 1, 1)).percent, 100);
}

}  // namespace THIS_FILE
}  // namespace tranche
