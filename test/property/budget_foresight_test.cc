// What budgets promise of the future, tried out (quota-model section 9):
//   11  work admitted safely, with honest runtimes, never exhausts a window;
//   31  eligible_at is the first moment admission succeeds;
// and exhaustion and changes of state come just when they were foretold. One printed seed replays:
//   TRANCHE_SEED=7 TRANCHE_STEPS=2000 property_tests --gtest_filter='BudgetForesight*'
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "quota/budget/budget.h"
#include "test/builders/budget_history.h"

namespace tranche {
namespace THIS_FILE {

using test::BudgetProperty;
using test::EventsOf;
using test::Hours;
using test::kBegin;
using test::Minutes;
using test::Piece;
using test::Tell;
using test::WorkEvent;
using Type = BudgetWindow::Type;

// A meter in the midst of things, and what its running work is expected to do.
struct Scene {
  BudgetMeter meter;
  std::vector<Piece> running;
  Instant now;

  // Other work unchanged: what has declared its end ends then, the rest runs on.
  BudgetMeter At(Instant later) const {
    BudgetMeter meter_then = meter;
    std::map<Instant, std::vector<std::string>> ends;
    for (const Piece& piece : running) {
      if (piece.declared && *piece.declared > now && *piece.declared <= later) {
        ends[*piece.declared].push_back(piece.key);
      }
    }
    for (const auto& [at, keys] : ends) {
      for (const std::string& key : keys) meter_then.Stop(key, at);
    }
    meter_then.Advance(later);
    return meter_then;
  }
};

class BudgetForesight : public BudgetProperty {
 protected:
  Scene SomeScene() {
    Scene scene{BudgetMeter(AnyBudget(500), kBegin), {}, kBegin + Hours(Between(0, 90))};
    const std::vector<Piece> pieces = SomePieces(8, kBegin, kBegin + Hours(100));
    for (const WorkEvent& event : EventsOf(pieces)) {
      if (event.at > scene.now) continue;
      Tell(scene.meter, event);
      if (event.starts && event.piece->end > scene.now) scene.running.push_back(*event.piece);
    }
    scene.meter.Advance(scene.now);
    return scene;
  }
  static Millis Horizon(const BudgetMeter& meter, int windows) {
    const BudgetWindow& window = meter.spec().window;
    if (window.type == Type::kRolling) return window.duration * windows;
    return (window.type == Type::kDay ? Hours(23) : Hours(7 * 24 - 1)) * windows;
  }
};

TEST_F(BudgetForesight, WorkAdmittedSafelyWithHonestRuntimesNeverExhaustsAWindow) {
  int64_t admitted = 0;
  int64_t refused = 0;
  for (int64_t step = 0; step < steps_; ++step) {
    BudgetMeter meter(AnyBudget(300), kBegin);
    const bool rolling = meter.spec().window.type == Type::kRolling;
    std::multimap<Instant, std::string> ends;
    Instant now = kBegin;
    // What earlier windows let run into this one was admitted there.
    Int128 inherited = 0;
    TimeSpan window = meter.View(now).window;
    const auto pass = [&](Instant to) {
      meter.Advance(to);
      now = to;
      const BudgetView view = meter.View(now);
      if (!rolling && view.window != window) {
        window = view.window;
        inherited = view.used + view.committed;
      }
      ASSERT_TRUE(view.used <= std::max(view.effective, inherited)) << step;
    };
    for (int i = 0; i < 30; ++i) {
      const Instant next = Moment(now, now + Hours(5));
      while (!ends.empty() && ends.begin()->first <= next) {
        // Windows are looked at where they begin, before anything in them ends.
        while (!rolling && window.end <= ends.begin()->first) pass(window.end);
        pass(ends.begin()->first);
        meter.Stop(ends.begin()->second, now);
        ends.erase(ends.begin());
      }
      while (!rolling && window.end <= next) pass(window.end);
      pass(next);
      const Charge charge = SomeCharge();
      const int64_t weight = SomeWeight();
      const Millis runtime = Minutes(Between(1, 1500));
      if (meter.Admit(charge, weight, runtime, now).fits) {
        meter.Start(std::to_string(i), charge, weight, now, now + runtime);
        ends.emplace(now + runtime, std::to_string(i));
        ++admitted;
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(admitted, steps_);
  EXPECT_GT(refused, steps_);
}

TEST_F(BudgetForesight, EligibleAtIsTheFirstMomentAdmissionSucceeds) {
  std::map<std::string, int64_t> seen;
  for (int64_t step = 0; step < steps_ * 3; ++step) {
    const Scene scene = SomeScene();
    const Charge charge = SomeCharge();
    const int64_t weight = kUnitWeight;
    const std::optional<Millis> runtime =
        Between(0, 3) > 0 ? std::optional(Minutes(Between(1, 2500))) : std::nullopt;
    const auto fits_at = [&](Instant at) {
      return scene.At(at).Admit(charge, weight, runtime, at).fits;
    };
    const BudgetVerdict verdict = scene.meter.Admit(charge, weight, runtime, scene.now);
    ASSERT_EQ(verdict.fits,
              verdict.used + verdict.committed + verdict.request <= verdict.effective);
    ++seen[verdict.fits ? "fits" : verdict.eligible_at ? "later" : "never"];
    if (verdict.fits) {
      ASSERT_EQ(verdict.eligible_at, scene.now);
      continue;
    }
    const Instant until =
        verdict.eligible_at.value_or(scene.now + Horizon(scene.meter, 12)) - Millis(1);
    if (verdict.eligible_at) {
      ASSERT_TRUE(fits_at(*verdict.eligible_at)) << step;
    }
    ASSERT_FALSE(fits_at(until)) << step;
    for (int i = 0; i < 10; ++i) ASSERT_FALSE(fits_at(Moment(scene.now, until))) << step;
  }
  for (const char* outcome : {"fits", "later", "never"}) EXPECT_GT(seen[outcome], steps_ / 10);
}

TEST_F(BudgetForesight, WhatIsUsedAndPromisedIsTheSumOfItsParts) {
  for (int64_t step = 0; step < steps_; ++step) {
    const Scene scene = SomeScene();
    const bool rolling = scene.meter.spec().window.type == Type::kRolling;
    const BudgetView view = scene.meter.View(scene.now);
    GpuTime committed;
    for (const Piece& piece : scene.running) {
      Millis rest = kBudgetLease;
      if (piece.declared && *piece.declared > scene.now) rest = *piece.declared - scene.now;
      const Millis most =
          rolling ? scene.meter.spec().window.duration : view.window.end - scene.now;
      committed += RateOf(piece.charge, piece.weight) * std::min(rest, most);
    }
    ASSERT_TRUE(view.committed == Larger(committed)) << step;
  }
}

TEST_F(BudgetForesight, ExhaustionComesWhenItWasForetold) {
  int64_t foretold = 0;
  for (int64_t step = 0; step < steps_; ++step) {
    const Scene scene = SomeScene();
    const BudgetView view = scene.meter.View(scene.now);
    const auto exhausted_at = [&](Instant at) { return scene.At(at).Exhausted(at); };
    const Instant until = view.exhausts_at.value_or(scene.now + Horizon(scene.meter, 1));
    if (view.exhausts_at) {
      ASSERT_TRUE(exhausted_at(until)) << step;
      if (until > scene.now) ++foretold;
    }
    for (int i = 0; i < 10 && until > scene.now; ++i) {
      const Instant before = i == 0 ? until - Millis(1) : Moment(scene.now, until - Millis(1));
      const bool same_window = scene.meter.View(before).window.end == view.window.end;
      const bool rolling = scene.meter.spec().window.type == Type::kRolling;
      if (same_window || rolling) {
        ASSERT_FALSE(exhausted_at(before)) << step;
      }
    }
  }
  EXPECT_GT(foretold, steps_ / 20);
}

TEST_F(BudgetForesight, NothingChangesBeforeTheNextChangeAndSomethingDoesThen) {
  for (int64_t step = 0; step < steps_; ++step) {
    const Scene scene = SomeScene();
    const bool rolling = scene.meter.spec().window.type == Type::kRolling;
    const auto face = [&](Instant at) {
      const BudgetView view = scene.meter.View(at);
      return std::tuple(view.state, view.notified_percent, rolling ? Instant() : view.window.start);
    };
    const auto now = face(scene.now);
    const std::optional<Instant> next = scene.meter.NextChange(scene.now);
    const Instant until = next.value_or(scene.now + Hours(24 * 10));
    if (next) {
      ASSERT_NE(face(*next), now) << step;
    }
    ASSERT_EQ(face(until - Millis(1)), now) << step;
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(face(Moment(scene.now, until - Millis(1))), now) << step;
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
