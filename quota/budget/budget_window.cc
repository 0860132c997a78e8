#include "quota/budget/budget.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

// The days a window of `day` starts on, and the next one.
std::pair<CivilDay, CivilDay> Bounds(BudgetWindow::Type type, const CivilDay& day) {
  CivilDay first = day;
  CivilDay next = day;
  switch (type) {
    case BudgetWindow::Type::kDay:
      next.day += 1;
      break;
    case BudgetWindow::Type::kWeek:
      first.day -= TimeZone::Weekday(day);
      next.day = first.day + 7;
      break;
    case BudgetWindow::Type::kMonth:
      first.day = 1;
      next = {day.year, day.month + 1, 1};
      break;
    case BudgetWindow::Type::kRolling:
      TRANCHE_CHECK(false);
  }
  return {first, next};
}

}  // namespace

TimeSpan WindowAt(const BudgetWindow& window, Instant at) {
  const auto [first, next] = Bounds(window.type, window.zone.DayOf(at));
  const TimeSpan span{window.zone.StartOf(first), window.zone.StartOf(next)};
  // Clocks put back from just after midnight return to a day whose window has ended already.
  return at < span.end ? span : WindowAt(window, span.end);
}

TimeSpan WindowAfter(const BudgetWindow& window, const TimeSpan& span) {
  return {span.end, WindowAt(window, span.end).end};
}

}  // namespace tranche
