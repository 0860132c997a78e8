#include "gtest/gtest.h"
#include "quota/budget/budget.h"
#include "test/builders/budget.h"

namespace tranche {
namespace THIS_FILE {

using test::Hours;
using test::Utc;
using Type = BudgetWindow::Type;

BudgetWindow Window(Type type, const char* zone) {
  BudgetWindow window;
  window.type = type;
  window.zone = TimeZone::Load(zone).value();
  return window;
}

TEST(BudgetWindowTest, AMomentLiesInItsDayWeekOrMonth) {
  const struct {
    Type type;
    const char* zone;
    Instant at;
    TimeSpan span;
  } kCases[] = {
      {Type::kDay, "UTC", Utc(2026, 5, 6, 7), {Utc(2026, 5, 6), Utc(2026, 5, 7)}},
      {Type::kDay, "UTC", Utc(2026, 12, 31), {Utc(2026, 12, 31), Utc(2027, 1, 1)}},
      {Type::kWeek, "UTC", Utc(2026, 1, 1), {Utc(2025, 12, 29), Utc(2026, 1, 5)}},
      {Type::kWeek, "UTC", Utc(2026, 1, 5), {Utc(2026, 1, 5), Utc(2026, 1, 12)}},
      {Type::kMonth, "UTC", Utc(2026, 12, 7), {Utc(2026, 12, 1), Utc(2027, 1, 1)}},
      {Type::kDay, "Europe/Paris", Utc(2026, 6, 1, 22), {Utc(2026, 6, 1, 22), Utc(2026, 6, 2, 22)}},
      {Type::kMonth, "Europe/Paris", Utc(2026, 3, 1), {Utc(2026, 2, 28, 23), Utc(2026, 3, 31, 22)}},
      // Two minutes after midnight clocks went back to the day that had ended.
      {Type::kDay,
       "America/St_Johns",
       Utc(2010, 11, 7, 2, 32),
       {Utc(2010, 11, 7, 2, 30), Utc(2010, 11, 8, 3, 30)}},
  };
  for (const auto& c : kCases) {
    const TimeSpan span = WindowAt(Window(c.type, c.zone), c.at);
    EXPECT_EQ(span.start, c.span.start) << c.zone << " " << c.at.time_since_epoch().count();
    EXPECT_EQ(span.end, c.span.end) << c.zone << " " << c.at.time_since_epoch().count();
  }
}

TEST(BudgetWindowTest, DaysOfAClockChangeAndLeapYearsHaveTheirOwnLength) {
  const struct {
    Type type;
    const char* zone;
    Instant at;
    Millis length;
  } kCases[] = {
      {Type::kDay, "Europe/Paris", Utc(2026, 3, 29, 12), Hours(23)},
      {Type::kDay, "Europe/Paris", Utc(2026, 10, 25, 12), Hours(25)},
      {Type::kWeek, "Europe/Paris", Utc(2026, 3, 29, 12), Hours(7 * 24 - 1)},
      {Type::kMonth, "Europe/Paris", Utc(2026, 10, 25, 12), Hours(31 * 24 + 1)},
      {Type::kMonth, "Europe/Paris", Utc(2026, 3, 29, 12), Hours(31 * 24 - 1)},
      {Type::kMonth, "UTC", Utc(2024, 2, 10), Hours(29 * 24)},
      {Type::kMonth, "UTC", Utc(2026, 2, 10), Hours(28 * 24)},
      {Type::kMonth, "UTC", Utc(2100, 2, 10), Hours(28 * 24)},
  };
  for (const auto& c : kCases) {
    const TimeSpan span = WindowAt(Window(c.type, c.zone), c.at);
    EXPECT_EQ(span.end - span.start, c.length) << c.zone << " " << c.at.time_since_epoch().count();
  }
}

TEST(BudgetWindowTest, AChangedFormTakesEffectWhereTheLastWindowEnds) {
  const TimeSpan january{Utc(2026, 1, 1), Utc(2026, 2, 1)};
  EXPECT_EQ(WindowAfter(Window(Type::kMonth, "UTC"), january),
            (TimeSpan{Utc(2026, 2, 1), Utc(2026, 3, 1)}));
  EXPECT_EQ(WindowAfter(Window(Type::kWeek, "UTC"), january),  // 1 February 2026 is a Sunday
            (TimeSpan{Utc(2026, 2, 1), Utc(2026, 2, 2)}));
}

}  // namespace THIS_FILE
}  // namespace tranche
