// Budgets against slow sums over random histories (quota-model section 9):
//   8   consumption of a window is the sum over any partition of it, in both dimensions;
//   9   without an adjustment it never falls;          14  nor is it ever negative;
//   10  carry and debt stay between zero and their caps;
//   12  windows tile time;                             13  a restart changes no closed window;
// and the order in which events are told does not matter. One printed seed replays a run:
//   TRANCHE_SEED=7 TRANCHE_STEPS=2000 property_tests --gtest_filter='BudgetProperty*'
#include "quota/budget/budget.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <utility>

#include "test/builders/budget_history.h"

namespace tranche {
namespace THIS_FILE {

using test::BudgetProperty;
using test::EventsOf;
using test::Hours;
using test::kBegin;
using test::Minutes;
using test::Piece;
using test::SlowSum;
using test::Tell;
using test::Utc;
using test::WorkEvent;
using Type = BudgetWindow::Type;

TEST_F(BudgetProperty, WindowsTileTimeInEveryZone) {
  static constexpr const char* kZones[] = {
      "UTC",          "Europe/Paris",   "America/Sao_Paulo", "America/St_Johns",    "Pacific/Apia",
      "Asia/Tehran",  "America/Havana", "Africa/Cairo",      "Australia/Lord_Howe", "Asia/Gaza",
      "Asia/Kolkata", "Atlantic/Azores"};
  for (int64_t step = 0; step < steps_ * 5; ++step) {
    BudgetWindow window;
    window.zone = TimeZone::Load(kZones[Between(0, std::size(kZones) - 1)]).value();
    window.type = static_cast<Type>(Between(0, 2));
    const Instant at = Moment(Utc(1971, 1, 1), Utc(2060, 1, 1));
    const TimeSpan span = WindowAt(window, at);
    SCOPED_TRACE(window.zone.name() + " " + std::to_string(at.time_since_epoch().count()));
    ASSERT_LE(span.start, at);
    ASSERT_LT(at, span.end);
    for (const Instant inside : {span.start, span.end - Millis(1), Moment(span.start, at)}) {
      ASSERT_EQ(WindowAt(window, inside), span);
    }
    ASSERT_EQ(WindowAfter(window, span), WindowAt(window, span.end));
    ASSERT_EQ(WindowAt(window, span.end).start, span.end);
    ASSERT_EQ(WindowAt(window, span.start - Millis(1)).end, span.start);
  }
}

TEST_F(BudgetProperty, ConsumptionIsTheSumOverAnyPartitionAndNeverFalls) {
  for (int64_t step = 0; step < steps_; ++step) {
    const std::vector<Piece> pieces = SomePieces(12, kBegin, kBegin + Hours(24 * 9));
    BudgetMeter meter(SomeBudget(SomeCalendar(), 1000), kBegin - Hours(1));
    const BudgetWindow window = meter.spec().window;
    TimeSpan part{WindowAt(window, kBegin).start, kBegin};
    GpuTime until_part;
    for (const WorkEvent& event : EventsOf(pieces)) {
      for (const Instant cut : {Moment(std::max(part.start, kBegin), event.at), event.at}) {
        part.end = std::max(part.start, cut);
        if (WindowAt(window, part.end).start > part.start) {
          part.start = WindowAt(window, part.end).start;
          until_part = {};
        }
        meter.Advance(part.end);
        const GpuTime used = meter.UsedOf(WindowAt(window, part.end), part.end).value();
        ASSERT_TRUE(used == until_part + SlowSum(pieces, part)) << step;
        ASSERT_TRUE(used.compute >= until_part.compute && used.memory >= until_part.memory);
        until_part = used;
        part.start = part.end;
      }
      Tell(meter, event);
    }
  }
}

TEST_F(BudgetProperty, ARollingWindowHoldsTheSumOverItsDuration) {
  for (int64_t step = 0; step < steps_; ++step) {
    const Millis duration = Minutes(Between(60, 5000));
    const std::vector<Piece> pieces = SomePieces(12, kBegin, kBegin + Hours(24 * 9));
    BudgetMeter meter(test::RollingBudget(duration, 100), kBegin);
    Instant now = kBegin;
    for (const WorkEvent& event : EventsOf(pieces)) {
      now = Moment(now, event.at);
      ASSERT_TRUE(meter.View(now).used == Larger(SlowSum(pieces, {now - duration, now}))) << step;
      if (Between(0, 1) == 0) meter.Advance(now);
      Tell(meter, event);
      now = event.at;
    }
  }
}

TEST_F(BudgetProperty, CarryAndDebtStayWithinTheirCapsAndAreHandedOnWhole) {
  for (int64_t step = 0; step < steps_; ++step) {
    const GpuBudget budget = SomeBudget(SomeCalendar(), 600);
    const RolloverTerms terms = TermsOf(budget, BaseOf(budget));
    BudgetMeter meter(budget, kBegin);
    for (const Piece& piece : SomePieces(20, kBegin, kBegin + Hours(24 * 20))) {
      Tell(meter, {piece.start, &piece, true});
      Tell(meter, {piece.end, &piece, false});
    }
    WindowClosing last;
    for (const WindowClosing& closing : meter.Advance(kBegin + Hours(24 * 70))) {
      Int128 carried = 0;
      for (const Int128 amount : closing.carried_out) {
        ASSERT_TRUE(amount >= 0);
        carried += amount;
      }
      ASSERT_LE(closing.carried_out.size(), terms.carry_windows);
      ASSERT_TRUE(carried <= terms.most_carried);
      ASSERT_TRUE(closing.debt_out >= 0 && closing.debt_out <= terms.most_debt);
      ASSERT_TRUE(carried == 0 || closing.debt_out == 0);
      ASSERT_TRUE(closing.used >= 0);
      Int128 handed_on = 0;
      for (const Int128 amount : last.carried_out) handed_on += amount;
      ASSERT_TRUE(closing.carried_in == handed_on && closing.debt_in == last.debt_out);
      last = closing;
    }
  }
}

// The newest version of every closing, as a ledger keeps them.
using Closings = std::map<Instant, WindowClosing>;

void Keep(Closings& closings, const std::vector<WindowClosing>& news) {
  for (const WindowClosing& closing : news) {
    closings.insert_or_assign(closing.span.start, closing);
  }
}

void ExpectSameView(const BudgetMeter& left, const BudgetMeter& right, Instant now) {
  const BudgetView a = left.View(now);
  const BudgetView b = right.View(now);
  ASSERT_TRUE(a.used == b.used);
  ASSERT_TRUE(a.committed == b.committed);
  ASSERT_TRUE(a.effective == b.effective);
  ASSERT_EQ(a.window, b.window);
  ASSERT_EQ(a.exhausts_at, b.exhausts_at);
}

TEST_F(BudgetProperty, TheOrderInWhichEventsAreToldDoesNotMatter) {
  for (int64_t step = 0; step < steps_; ++step) {
    const GpuBudget budget = AnyBudget(200);
    const Instant begin = kBegin + Hours(12);
    // Within three windows of the shortest kind, the current one included: all are still kept.
    const Instant end = begin + Hours(48);
    const std::vector<Piece> pieces = SomePieces(10, begin, end);
    BudgetMeter in_order(budget, begin);
    BudgetMeter shuffled(budget, begin);
    Closings closings;
    Closings shuffled_closings;
    for (const WorkEvent& event : EventsOf(pieces)) {
      Tell(in_order, event);
      Keep(closings, in_order.Advance(event.at));
    }
    std::vector<WorkEvent> events = EventsOf(pieces);
    for (std::size_t i = events.size(); i > 1; --i) {
      std::swap(events[i - 1], events[static_cast<std::size_t>(Between(0, int64_t(i) - 1))]);
    }
    // Of one piece the start comes first: the earlier of its two places is its start's.
    std::map<std::string, bool> told;
    for (WorkEvent& event : events) {
      event.starts = !std::exchange(told[event.piece->key], true);
      Tell(shuffled, event);
      if (Between(0, 3) == 0) Keep(shuffled_closings, shuffled.Advance(event.at));
    }
    Keep(closings, in_order.Advance(end));
    Keep(shuffled_closings, shuffled.Advance(end));
    ASSERT_TRUE(closings == shuffled_closings) << step;
    ExpectSameView(in_order, shuffled, end);
    const GpuTime slow = SlowSum(pieces, in_order.View(end).window);
    ASSERT_TRUE(in_order.View(end).used == Larger(slow)) << step;
  }
}

TEST_F(BudgetProperty, ARestartChangesNoClosedWindowAndNothingAfterIt) {
  for (int64_t step = 0; step < steps_; ++step) {
    const GpuBudget budget = AnyBudget(400);
    const std::vector<Piece> pieces = SomePieces(20, kBegin, kBegin + Hours(24 * 12));
    const std::vector<WorkEvent> events = EventsOf(pieces);
    const auto crash = events.begin() + Between(0, static_cast<int64_t>(events.size()));
    BudgetMeter first(budget, kBegin);
    Closings closings;
    for (auto event = events.begin(); event != crash; ++event) {
      Tell(first, *event);
      Keep(closings, first.Advance(event->at));
    }
    BudgetMeter second(budget, kBegin);
    for (const auto& [start, closing] : closings) {
      if (Between(0, 1) == 0) second.Restore(closing);
    }
    for (const auto& [start, closing] : closings) second.Restore(closing);
    for (auto event = events.begin(); event != crash; ++event) Tell(second, *event);
    for (auto event = crash; event != events.end(); ++event) {
      ASSERT_TRUE(first.Advance(event->at) == second.Advance(event->at)) << step;
      ExpectSameView(first, second, event->at);
      Tell(first, *event);
      Tell(second, *event);
    }
    const Instant end = kBegin + Hours(24 * 20);
    ASSERT_TRUE(first.Advance(end) == second.Advance(end)) << step;
    ExpectSameView(first, second, end);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
