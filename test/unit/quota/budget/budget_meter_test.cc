#include <fmt/format.h>

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

std::string TextOf(Int128 amount) { return FormatGpuHours(amount); }

// "used 1150.000 of 1000.000 + 200.000 - 0.000, carried 50.000, debt 0.000": of base, carried hours
// and debt.
std::string TextOf(const WindowClosing& closing) {
  std::string carried;
  for (const Int128 amount : closing.carried_out) carried += " " + TextOf(amount);
  return fmt::format("used {} of {} + {} - {}, carried{}, debt {}", TextOf(closing.used),
                     TextOf(closing.base), TextOf(closing.carried_in), TextOf(closing.debt_in),
                     carried, TextOf(closing.debt_out));
}

std::vector<std::string> TextOf(const std::vector<WindowClosing>& closings) {
  std::vector<std::string> text;
  for (const WindowClosing& closing : closings) text.push_back(TextOf(closing));
  return text;
}

using Lines = std::vector<std::string>;

std::string UsedBy(const BudgetMeter& meter, Instant now) { return TextOf(meter.View(now).used); }

// Thousand GPU-hours a month, a quarter of which may be carried over.
GpuBudget CarryingBudget(int windows) {
  GpuBudget budget = PlainBudget(Type::kMonth, 1000);
  budget.rollover_max_percent = 25;
  budget.rollover_max_windows = windows;
  return budget;
}

TEST(BudgetMeterTest, UnspentHoursRollOver) {
  BudgetMeter meter(CarryingBudget(1), Utc(2026, 1, 10));
  Ran(meter, "a", Gpus(8), Utc(2026, 1, 10), Utc(2026, 1, 10) + Hours(100));
  EXPECT_EQ(TextOf(meter.Advance(Utc(2026, 2, 1))),
            Lines{"used 800.000 of 1000.000 + 0.000 - 0.000, carried 200.000, debt 0.000"});
  EXPECT_EQ(TextOf(meter.View(Utc(2026, 2, 1)).effective), "1200.000");
  Ran(meter, "b", Gpus(5), Utc(2026, 2, 3), Utc(2026, 2, 3) + Hours(230));
  EXPECT_EQ(TextOf(meter.Advance(Utc(2026, 3, 1))),
            Lines{"used 1150.000 of 1000.000 + 200.000 - 0.000, carried 50.000, debt 0.000"});
  EXPECT_EQ(TextOf(meter.View(Utc(2026, 3, 1)).effective), "1050.000");
  Ran(meter, "c", Gpus(9), Utc(2026, 3, 3), Utc(2026, 3, 3) + Hours(100));
  EXPECT_EQ(TextOf(meter.Advance(Utc(2026, 4, 1))),
            Lines{"used 900.000 of 1000.000 + 50.000 - 0.000, carried 150.000, debt 0.000"});
  EXPECT_EQ(TextOf(meter.View(Utc(2026, 4, 1)).carried_in), "150.000");
}

TEST(BudgetMeterTest, OverTwoWindowsWhatIsLeftOfCarriedHoursLivesOnUnderTheCap) {
  GpuBudget budget = CarryingBudget(2);
  budget.rollover_max_percent = 200;
  BudgetMeter meter(budget, Utc(2026, 1, 10));
  Ran(meter, "a", Gpus(8), Utc(2026, 1, 10), Utc(2026, 1, 10) + Hours(100));
  meter.Advance(Utc(2026, 2, 1));
  Ran(meter, "b", Gpus(1), Utc(2026, 2, 3), Utc(2026, 2, 3) + Hours(50));
  EXPECT_EQ(
      TextOf(meter.Advance(Utc(2026, 3, 1))),
      Lines{"used 50.000 of 1000.000 + 200.000 - 0.000, carried 1000.000 150.000, debt 0.000"});
  // The 150 are spent first; had they not been, they would have lapsed.
  Ran(meter, "c", Gpus(9), Utc(2026, 3, 3), Utc(2026, 3, 3) + Hours(50));
  EXPECT_EQ(
      TextOf(meter.Advance(Utc(2026, 4, 1))),
      Lines{"used 450.000 of 1000.000 + 1150.000 - 0.000, carried 1000.000 700.000, debt 0.000"});
  EXPECT_EQ(
      TextOf(meter.Advance(Utc(2026, 5, 1))),
      Lines{"used 0.000 of 1000.000 + 1700.000 - 0.000, carried 1000.000 1000.000, debt 0.000"});
}

TEST(BudgetMeterTest, OverrunIsDebtAgainstTheNextWindowUpToTheCap) {
  GpuBudget budget = PlainBudget(Type::kMonth, 1000);
  budget.max_debt_percent = 20;
  BudgetMeter meter(budget, Utc(2026, 1, 1));
  Ran(meter, "a", Gpus(11), Utc(2026, 1, 10), Utc(2026, 1, 10) + Hours(100));
  EXPECT_EQ(TextOf(meter.Advance(Utc(2026, 2, 1))),
            Lines{"used 1100.000 of 1000.000 + 0.000 - 0.000, carried, debt 100.000"});
  EXPECT_EQ(TextOf(meter.View(Utc(2026, 2, 1)).debt_in), "100.000");
  EXPECT_EQ(TextOf(meter.View(Utc(2026, 2, 1)).effective), "900.000");
  Ran(meter, "b", Gpus(15), Utc(2026, 2, 10), Utc(2026, 2, 10) + Hours(100));
  EXPECT_EQ(TextOf(meter.Advance(Utc(2026, 3, 1))),
            Lines{"used 1500.000 of 1000.000 + 0.000 - 100.000, carried, debt 200.000"});
}

TEST(BudgetMeterTest, AMigInstanceOverAMonthsEndIsSplitExactlyInBothDimensions) {
  constexpr Charge k3g71gb{7'722'000, 9'009'000};
  BudgetMeter meter(PlainBudget(Type::kMonth, 100), Utc(2026, 1, 1));
  Ran(meter, "a", k3g71gb, Utc(2026, 1, 31, 23, 30), Utc(2026, 2, 1, 0, 45));
  const Instant now = Utc(2026, 2, 1, 1);
  const GpuTime january = meter.UsedOf({Utc(2026, 1, 1), Utc(2026, 2, 1)}, now).value();
  const GpuTime february = meter.UsedOf({Utc(2026, 2, 1), Utc(2026, 3, 1)}, now).value();
  const auto four_decimals = [](Int128 amount) {
    const Int128 rounded = (amount * 10'000 + kGpuHour / 2) / kGpuHour;
    return fmt::format("0.{:04}", static_cast<int64_t>(rounded));
  };
  EXPECT_EQ(four_decimals(january.compute), "0.2143");
  EXPECT_EQ(four_decimals(february.compute), "0.3214");
  EXPECT_EQ(four_decimals((january + february).compute), "0.5357");
  EXPECT_EQ(four_decimals(january.memory), "0.2500");
  EXPECT_EQ(four_decimals(february.memory), "0.3750");
  EXPECT_EQ(four_decimals((january + february).memory), "0.6250");
  EXPECT_TRUE(january.compute * 14 == kGpuHour * 3);  // 3/7 of half an hour
  EXPECT_EQ(UsedBy(meter, now), "0.375");
  const std::vector<WindowClosing> closings = meter.Advance(now);
  ASSERT_EQ(closings.size(), 1u);
  EXPECT_EQ(closings[0].budget_uid, "uid-of-team-a");
  EXPECT_EQ(closings[0].span, (TimeSpan{Utc(2026, 1, 1), Utc(2026, 2, 1)}));
  EXPECT_EQ(TextOf(closings[0].used), "0.250");
  EXPECT_FALSE(meter.UsedOf({Utc(2025, 12, 1), Utc(2026, 1, 1)}, now).has_value());
}

TEST(BudgetMeterTest, DimensionsAreSummedBeforeTheLargerOneCounts) {
  BudgetMeter meter(PlainBudget(Type::kDay, 100), Utc(2026, 1, 1));
  Ran(meter, "4g", {10'296'000, 9'009'000}, Utc(2026, 1, 1), Utc(2026, 1, 1, 10));
  Ran(meter, "3g", {7'722'000, 9'009'000}, Utc(2026, 1, 1), Utc(2026, 1, 1, 10));
  EXPECT_EQ(UsedBy(meter, Utc(2026, 1, 1, 11)), "10.000");
}

TEST(BudgetMeterTest, DaysOfAClockChangeHold23And25Hours) {
  GpuBudget budget = PlainBudget(Type::kDay, 100);
  budget.window.zone = TimeZone::Load("Europe/Paris").value();
  for (const auto& [day, hours] :
       {std::pair{Utc(2026, 3, 28, 23), "23.000"}, std::pair{Utc(2026, 10, 24, 22), "25.000"}}) {
    BudgetMeter meter(budget, day);
    meter.Start("a", Gpus(1), kUnitWeight, day - Hours(5), std::nullopt);
    const std::vector<WindowClosing> closings = meter.Advance(day + Hours(26));
    ASSERT_EQ(closings.size(), 1u);
    EXPECT_EQ(TextOf(closings[0].used), hours);
  }
}

TEST(BudgetMeterTest, HoursOfARollingWindowComeBackAsTheyAge) {
  BudgetMeter meter(RollingBudget(Hours(24), 10), Utc(2026, 1, 1));
  Ran(meter, "a", Gpus(2), Utc(2026, 1, 1, 6), Utc(2026, 1, 1, 10));
  const struct {
    Instant at;
    const char* used;
  } kCases[] = {
      {Utc(2026, 1, 1, 10), "8.000"},    {Utc(2026, 1, 2, 6), "8.000"},
      {Utc(2026, 1, 2, 6, 30), "7.000"}, {Utc(2026, 1, 2, 9, 45), "0.500"},
      {Utc(2026, 1, 2, 10), "0.000"},    {Utc(2026, 3, 1), "0.000"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(UsedBy(meter, c.at), c.used);
    EXPECT_TRUE(meter.Advance(c.at).empty());
    EXPECT_EQ(UsedBy(meter, c.at), c.used) << "advanced";
  }
}

TEST(BudgetMeterTest, ARollingWindowIsExactToTheMillisecond) {
  BudgetMeter meter(RollingBudget(Hours(24), 10), Utc(2026, 1, 1));
  Ran(meter, "a", Gpus(2), Utc(2026, 1, 1, 6), Utc(2026, 1, 1, 10));
  for (const int64_t early : {2, 1, 0}) {
    meter.Advance(Utc(2026, 1, 2, 6) - Millis(early));
    EXPECT_TRUE(meter.View(Utc(2026, 1, 2, 6) - Millis(early)).used == GpuHours(8)) << early;
  }
  meter.Advance(Utc(2026, 1, 2, 6) + Millis(1));
  EXPECT_TRUE(meter.View(Utc(2026, 1, 2, 6)).used * 1'800'000 ==
              GpuHours(8) * 1'800'000 - kGpuHour);
}

TEST(BudgetMeterTest, LateNewsCountAsIfTheyHadComeInTime) {
  for (const GpuBudget& budget : {PlainBudget(Type::kDay, 100), RollingBudget(Hours(24), 100)}) {
    BudgetMeter meter(budget, Utc(2026, 1, 1));
    meter.Start("a", Gpus(4), kUnitWeight, Utc(2026, 1, 1, 1), std::nullopt);
    meter.Advance(Utc(2026, 1, 1, 12));
    meter.Start("b", Gpus(1), kUnitWeight, Utc(2026, 1, 1, 8), std::nullopt);
    meter.Stop("a", Utc(2026, 1, 1, 3));
    EXPECT_EQ(UsedBy(meter, Utc(2026, 1, 1, 12)), "12.000");
  }
}

TEST(BudgetMeterTest, ALateCloseGivesTheClosingsOfItsWindowsAgain) {
  BudgetMeter meter(CarryingBudget(1), Utc(2026, 1, 1));
  meter.Start("a", Gpus(2), kUnitWeight, Utc(2026, 1, 1), std::nullopt);
  EXPECT_EQ(meter.Advance(Utc(2026, 2, 1)).size(), 1u);
  EXPECT_TRUE(meter.Advance(Utc(2026, 2, 10)).empty());
  EXPECT_EQ(TextOf(meter.View(Utc(2026, 2, 10)).effective), "1000.000");  // 1488 used, no debt
  // The node was lost on 11 January already.
  meter.Stop("a", Utc(2026, 1, 11));
  EXPECT_EQ(TextOf(meter.View(Utc(2026, 2, 10)).effective), "1250.000");
  EXPECT_EQ(UsedBy(meter, Utc(2026, 2, 10)), "0.000");
  EXPECT_EQ(TextOf(meter.Advance(Utc(2026, 2, 10))),
            Lines{"used 480.000 of 1000.000 + 0.000 - 0.000, carried 250.000, debt 0.000"});
  EXPECT_TRUE(meter.Advance(Utc(2026, 2, 11)).empty());
}

TEST(BudgetMeterTest, ACorrectedWindowCorrectsTheClosedOnesAfterIt) {
  BudgetMeter meter(CarryingBudget(1), Utc(2026, 1, 1));
  Ran(meter, "a", Gpus(10), Utc(2026, 1, 2), Utc(2026, 1, 2) + Hours(100));
  Ran(meter, "b", Gpus(11), Utc(2026, 2, 2), Utc(2026, 2, 2) + Hours(100));
  EXPECT_EQ(meter.Advance(Utc(2026, 3, 2)).size(), 2u);
  meter.Adjust(Gpus(1), kUnitWeight, {Utc(2026, 1, 3), Utc(2026, 1, 3) + Hours(50)}, -1);
  EXPECT_EQ(TextOf(meter.Advance(Utc(2026, 3, 2))),
            (Lines{"used 950.000 of 1000.000 + 0.000 - 0.000, carried 50.000, debt 0.000",
                   "used 1100.000 of 1000.000 + 50.000 - 0.000, carried, debt 0.000"}));
  // Too long ago to be corrected.
  meter.Advance(Utc(2026, 4, 2));
  meter.Adjust(Gpus(1), kUnitWeight, {Utc(2026, 1, 3), Utc(2026, 1, 3) + Hours(50)}, -1);
  EXPECT_TRUE(meter.Advance(Utc(2026, 4, 2)).empty());
}

TEST(BudgetMeterTest, AnAdjustmentAddsOrGivesBackItsPartOfEachWindow) {
  for (const GpuBudget& budget : {PlainBudget(Type::kDay, 100), RollingBudget(Hours(24), 100)}) {
    BudgetMeter meter(budget, Utc(2026, 1, 1));
    Ran(meter, "a", Gpus(4), Utc(2026, 1, 2, 1), Utc(2026, 1, 2, 11));
    meter.Adjust(Gpus(4), kUnitWeight, {Utc(2026, 1, 2, 8), Utc(2026, 1, 2, 11)}, -1);
    EXPECT_EQ(UsedBy(meter, Utc(2026, 1, 2, 23)), "28.000");
    meter.Adjust(Gpus(1), kUnitWeight, {Utc(2026, 1, 2, 9), Utc(2026, 1, 2, 10)}, 1);
    EXPECT_EQ(UsedBy(meter, Utc(2026, 1, 2, 23)), "29.000");
    meter.Adjust(Gpus(1), kUnitWeight, {Utc(2026, 1, 2, 9), Utc(2026, 1, 2, 9)}, 1);
    EXPECT_EQ(UsedBy(meter, Utc(2026, 1, 2, 23)), "29.000");
  }
}

TEST(BudgetMeterTest, WeightIsRateTimesFactorAndZeroIsFree) {
  BudgetMeter meter(PlainBudget(Type::kDay, 10), Utc(2026, 1, 1));
  const Instant end = Utc(2026, 1, 1, 10);
  meter.Start("l4 scavenger", Gpus(8), 150 * 250, Utc(2026, 1, 1), std::nullopt);
  EXPECT_EQ(UsedBy(meter, end), "3.000");  // 80 x 0.15 x 0.25
  meter.Start("free", Gpus(1000), 0, Utc(2026, 1, 1), std::nullopt);
  EXPECT_EQ(UsedBy(meter, end), "3.000");
  EXPECT_EQ(TextOf(meter.View(end).committed), "0.075");
}

TEST(BudgetMeterTest, RepeatedEventsChangeNothing) {
  BudgetMeter meter(PlainBudget(Type::kDay, 100), Utc(2026, 1, 1));
  meter.Start("a", Gpus(1), kUnitWeight, Utc(2026, 1, 1, 1), std::nullopt);
  meter.Start("a", Gpus(8), kUnitWeight, Utc(2026, 1, 1, 2), std::nullopt);
  meter.Stop("b", Utc(2026, 1, 1, 2));
  meter.Stop("a", Utc(2026, 1, 1, 3));
  meter.Stop("a", Utc(2026, 1, 1, 4));
  EXPECT_EQ(UsedBy(meter, Utc(2026, 1, 1, 5)), "2.000");
}

TEST(BudgetMeterTest, AStopBeforeItsStartChargesNothing) {
  for (const GpuBudget& budget : {PlainBudget(Type::kDay, 100), RollingBudget(Hours(24), 100)}) {
    BudgetMeter meter(budget, Utc(2026, 1, 1));
    Ran(meter, "a", Gpus(1), Utc(2026, 1, 1, 3), Utc(2026, 1, 1, 2));
    Ran(meter, "b", Gpus(1), Utc(2026, 1, 1), Utc(2026, 1, 1, 4));
    EXPECT_EQ(UsedBy(meter, Utc(2026, 1, 1, 5)), "4.000");
  }
}

TEST(BudgetMeterTest, AnEditedAmountHoldsFromNowOnAndClosedWindowsKeepTheirs) {
  BudgetMeter meter(CarryingBudget(1), Utc(2026, 1, 1));
  Ran(meter, "a", Gpus(9), Utc(2026, 1, 2), Utc(2026, 1, 2) + Hours(100));
  meter.Advance(Utc(2026, 2, 1));
  Ran(meter, "b", Gpus(4), Utc(2026, 2, 2), Utc(2026, 2, 2) + Hours(100));
  GpuBudget smaller = CarryingBudget(1);
  smaller.milli_gpu_hours = 500'000;
  meter.SetSpec(smaller);
  BudgetView view = meter.View(Utc(2026, 2, 10));
  EXPECT_EQ(TextOf(view.used), "400.000");
  EXPECT_EQ(TextOf(view.effective), "600.000");
  EXPECT_EQ(view.percent, 66);
  // January is settled by January's terms, also when it is corrected in February.
  meter.Adjust(Gpus(1), kUnitWeight, {Utc(2026, 1, 2), Utc(2026, 1, 2) + Hours(50)}, -1);
  EXPECT_EQ(TextOf(meter.Advance(Utc(2026, 3, 1))),
            (Lines{"used 850.000 of 1000.000 + 0.000 - 0.000, carried 150.000, debt 0.000",
                   "used 400.000 of 500.000 + 150.000 - 0.000, carried 125.000, debt 0.000"}));
}

TEST(BudgetMeterTest, AnotherCalendarFormBeginsWhereTheCurrentWindowEnds) {
  BudgetMeter meter(PlainBudget(Type::kMonth, 1000), Utc(2026, 1, 1));
  meter.Start("a", Gpus(1), kUnitWeight, Utc(2026, 1, 31), std::nullopt);
  meter.SetSpec(PlainBudget(Type::kWeek, 1000));
  const std::vector<WindowClosing> closings = meter.Advance(Utc(2026, 2, 9));
  ASSERT_EQ(closings.size(), 3u);
  EXPECT_EQ(closings[0].span, (TimeSpan{Utc(2026, 1, 1), Utc(2026, 2, 1)}));
  EXPECT_EQ(closings[1].span, (TimeSpan{Utc(2026, 2, 1), Utc(2026, 2, 2)}));
  EXPECT_EQ(closings[2].span, (TimeSpan{Utc(2026, 2, 2), Utc(2026, 2, 9)}));
  EXPECT_EQ(TextOf(closings[2].used), "168.000");
}

TEST(BudgetMeterTest, BetweenRollingAndCalendarWindowsTheMeterStartsOverWithWhatRuns) {
  BudgetMeter meter(PlainBudget(Type::kDay, 1000), Utc(2026, 1, 1));
  Ran(meter, "a", Gpus(1), Utc(2026, 1, 1), Utc(2026, 1, 1, 5));
  meter.Start("b", Gpus(2), kUnitWeight, Utc(2026, 1, 1, 6), std::nullopt);
  meter.Advance(Utc(2026, 1, 1, 12));
  meter.SetSpec(RollingBudget(Hours(2), 1000));
  EXPECT_EQ(UsedBy(meter, Utc(2026, 1, 1, 12)), "4.000");
  EXPECT_EQ(UsedBy(meter, Utc(2026, 1, 1, 13)), "4.000");
  meter.SetSpec(PlainBudget(Type::kDay, 1000));
  EXPECT_EQ(UsedBy(meter, Utc(2026, 1, 1, 13)), "14.000");
}

TEST(BudgetMeterTest, AfterARestartTheNewestClosingFeedsTheWindowAfterIt) {
  BudgetMeter first(CarryingBudget(1), Utc(2026, 1, 1));
  Ran(first, "a", Gpus(9), Utc(2026, 1, 2), Utc(2026, 1, 2) + Hours(100));
  first.Start("b", Gpus(1), kUnitWeight, Utc(2026, 2, 1), std::nullopt);
  std::vector<WindowClosing> closings = first.Advance(Utc(2026, 3, 2));
  ASSERT_EQ(closings.size(), 2u);
  std::swap(closings[0], closings[1]);

  BudgetMeter second(CarryingBudget(1), Utc(2026, 1, 1));
  for (const WindowClosing& closing : closings) second.Restore(closing);
  second.Start("b", Gpus(1), kUnitWeight, Utc(2026, 2, 1), std::nullopt);
  EXPECT_TRUE(second.Advance(Utc(2026, 3, 3)).empty());
  for (BudgetMeter* meter : {&first, &second}) {
    EXPECT_EQ(UsedBy(*meter, Utc(2026, 3, 3)), "48.000");
    EXPECT_EQ(TextOf(meter->View(Utc(2026, 3, 3)).effective), "1250.000");
    // News from before the restart still correct the closed window.
    meter->Adjust(Gpus(8), kUnitWeight, {Utc(2026, 2, 2), Utc(2026, 2, 2) + Hours(50)}, 1);
    EXPECT_EQ(TextOf(meter->Advance(Utc(2026, 3, 3))),
              Lines{"used 1072.000 of 1000.000 + 100.000 - 0.000, carried 28.000, debt 0.000"});
    EXPECT_EQ(TextOf(meter->View(Utc(2026, 3, 3)).effective), "1028.000");
  }
}

TEST(BudgetMeterTest, AfterARestartCarriedHoursKeepTheirAge) {
  GpuBudget budget = CarryingBudget(3);
  budget.rollover_max_percent = 300;
  BudgetMeter first(budget, Utc(2026, 1, 1));
  Ran(first, "a", Gpus(9), Utc(2026, 1, 2), Utc(2026, 1, 2) + Hours(100));
  const std::vector<WindowClosing> closings = first.Advance(Utc(2026, 4, 1));
  ASSERT_EQ(closings.size(), 3u);

  BudgetMeter second(budget, Utc(2026, 1, 1));
  for (const WindowClosing& closing : closings) second.Restore(closing);
  second.Advance(Utc(2026, 4, 1));
  for (BudgetMeter* meter : {&first, &second}) {
    // March had 1000 of February and, spent first, 100 of January.
    meter->Adjust(Gpus(1), kUnitWeight, {Utc(2026, 3, 2), Utc(2026, 3, 2) + Hours(50)}, 1);
    EXPECT_EQ(TextOf(meter->Advance(Utc(2026, 4, 1))),
              Lines{"used 50.000 of 1000.000 + 1100.000 - 0.000, "
                    "carried 1000.000 1000.000 50.000, debt 0.000"});
  }
}

TEST(BudgetMeterTest, WindowsMissedWhileTheProcessWasDownAreClosedFromWhatRan) {
  BudgetMeter meter(CarryingBudget(1), Utc(2025, 6, 1));
  WindowClosing january;
  january.span = {Utc(2026, 1, 1), Utc(2026, 2, 1)};
  january.base = GpuHours(1000);
  january.used = GpuHours(900);
  january.carried_out = {GpuHours(100)};
  meter.Restore(january);
  meter.Start("a", Gpus(2), kUnitWeight, Utc(2026, 1, 20), std::nullopt);
  EXPECT_EQ(TextOf(meter.Advance(Utc(2026, 4, 2))),
            (Lines{"used 1344.000 of 1000.000 + 100.000 - 0.000, carried, debt 0.000",
                   "used 1488.000 of 1000.000 + 0.000 - 0.000, carried, debt 0.000"}));
  EXPECT_EQ(UsedBy(meter, Utc(2026, 4, 2)), "48.000");
}

}  // namespace THIS_FILE
}  // namespace tranche
