// Use that ended counts the same for a budget that is told of it at once, in any order, as for one
// that saw its events. One printed seed replays:
//   TRANCHE_SEED=7 TRANCHE_STEPS=2000 property_tests --gtest_filter='PastUses*'
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "quota/quota_book.h"
#include "test/builders/budget_history.h"
#include "test/builders/policies.h"

namespace tranche {
namespace THIS_FILE {

using test::BudgetProperty;
using test::Hours;
using test::kBegin;
using test::Minutes;
using test::Piece;
using test::Tell;

class PastUsesProperty : public BudgetProperty {
 protected:
  // What somebody can ask a meter, as far as `now`.
  static void ExpectSame(BudgetMeter& left, BudgetMeter& right, Instant now) {
    ASSERT_EQ(left.Advance(now), right.Advance(now));
    const BudgetView one = left.View(now);
    const BudgetView other = right.View(now);
    EXPECT_EQ(one.used, other.used);
    EXPECT_EQ(one.committed, other.committed);
    EXPECT_EQ(one.effective, other.effective);
    EXPECT_EQ(one.carried_in, other.carried_in);
    EXPECT_EQ(one.debt_in, other.debt_in);
    EXPECT_EQ(one.exhausts_at, other.exhausts_at);
    EXPECT_EQ(left.NextChange(now), right.NextChange(now));
    EXPECT_EQ(left.Stand(now), right.Stand(now));
    const Charge charge = test::Gpus(3);
    const BudgetVerdict admitted = left.Admit(charge, kUnitWeight, Hours(2), now);
    const BudgetVerdict asked = right.Admit(charge, kUnitWeight, Hours(2), now);
    EXPECT_EQ(admitted.fits, asked.fits);
    EXPECT_EQ(admitted.used, asked.used);
    EXPECT_EQ(admitted.eligible_at, asked.eligible_at);
  }

  // A meter with some life before: windows that were closed, or a stand it goes on from.
  BudgetMeter SomeMeter() {
    const GpuBudget budget = AnyBudget(300);
    BudgetMeter earlier(budget, kBegin);
    for (const Piece& piece : SomePieces(5, kBegin, kBegin + Hours(60))) {
      test::Ran(earlier, piece.key, piece.charge, piece.start, piece.end);
    }
    const std::vector<WindowClosing> closings = earlier.Advance(kBegin + Hours(70));
    BudgetMeter meter(budget, closings.empty() ? kBegin : closings.front().span.start);
    for (const WindowClosing& closing : closings) meter.Restore(closing);
    if (Between(0, 3) == 0) meter.Resume(earlier.Stand(kBegin + Hours(70)));
    return meter;
  }
};

TEST_F(PastUsesProperty, ToldAtOnceCountsAsToldByItsEvents) {
  for (int64_t step = 0; step < steps_ && !HasFailure(); ++step) {
    const BudgetMeter fresh = SomeMeter();
    const std::vector<Piece> pieces = SomePieces(20, kBegin, kBegin + Hours(130));
    std::vector<int> signs;
    Instant newest = Instant::min();
    for (const Piece& piece : pieces) {
      signs.push_back(Between(0, 4) == 0 ? -1 : 1);
      newest = std::max(newest, piece.end);
    }
    BudgetMeter by_events = fresh;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Piece& piece = pieces[i];
      if (signs[i] < 0) {
        by_events.Adjust(piece.charge, piece.weight, {piece.start, piece.end}, -1);
        continue;
      }
      by_events.Start(piece.key, piece.charge, piece.weight, piece.start, std::nullopt);
      by_events.Stop(piece.key, piece.end);
    }
    std::vector<std::size_t> order(pieces.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<std::size_t>(Between(0, int64_t(i) - 1))]);
    }
    BudgetMeter at_once = fresh;
    at_once.LoadPast(newest, [&](const BudgetMeter::PastSink& count) {
      for (const std::size_t i : order) {
        const Piece& piece = pieces[i];
        if (piece.start < piece.end) {
          count(piece.charge, piece.weight, {piece.start, piece.end}, signs[i]);
        }
      }
    });
    // Work goes on from there, and windows pass.
    Instant now = kBegin + Hours(130);
    for (int turn = 0; turn < 4 && !HasFailure(); ++turn) {
      ExpectSame(by_events, at_once, now);
      for (BudgetMeter* meter : {&by_events, &at_once}) {
        meter->Start(std::to_string(turn), test::Gpus(turn + 1), kUnitWeight, now, std::nullopt);
        if (turn > 1) meter->Stop(std::to_string(turn - 2), now - Minutes(5));
      }
      now += Hours(7 * turn);
    }
    if (HasFailure()) ADD_FAILURE() << "step " << step;
  }
}

// A book whose budgets were there all the time, and one in which they are declared at the end.
TEST_F(PastUsesProperty, BudgetsThatAreDeclaredLaterCountTheSame) {
  for (int64_t step = 0; step < steps_ / 4 && !HasFailure(); ++step) {
    std::vector<GpuBudget> budgets;
    for (const char* name : {"all", "team-a", "team-b", "ns"}) {
      GpuBudget budget = test::RollingBudget(Minutes(Between(60, 4'000)), Between(1, 400));
      budget.name = budget.uid = name;
      budget.quota_ref = std::string_view(name) == "all" ? "org" : name;
      if (std::string_view(name) == "ns") {
        budget.quota_ref = "";
        budget.ns = "a";
      }
      budget.meter_from = Between(0, 1) == 0 ? MeterFrom::kBind : MeterFrom::kRunning;
      budget.rates = {{"h100", Between(0, 3) * 500}};
      budgets.push_back(budget);
    }
    const std::vector<GpuQuota> quotas = {test::Quota("org").Line("h100", "20"),
                                          test::Quota("team-a").Under("org").Owns("a"),
                                          test::Quota("team-b").Under("org").Owns("b")};
    QuotaBook seen;
    QuotaBook later;
    Instant now = kBegin;
    seen.SetPolicies(test::Declare({.quotas = quotas, .budgets = budgets}), now);
    later.SetPolicies(test::Declare({.quotas = quotas}), now);
    std::vector<WindowClosing> closings;
    for (int event = 0; event < 60; ++event) {
      now += Minutes(Between(0, 60));
      const int64_t pod = Between(0, 5);
      const PodUid uid(std::to_string(pod));
      const int64_t what = Between(0, 3);
      const int64_t gpus = Between(1, 3);
      const TimeSpan refund{now - Minutes(Between(1, 50)), now};
      for (QuotaBook* book : {&seen, &later}) {
        book->Advance(now, closings);
        if (book->Find(uid) == nullptr) {
          HeldWork work;
          work.leaf = pod % 2 == 0 ? "team-a" : "team-b";
          work.pod.ns = pod % 2 == 0 ? "a" : "b";
          work.parts = {{pod % 3 == 0 ? "l4" : "h100", test::Gpus(gpus)}};
          work.since = now;
          book->Hold(uid, std::move(work));
        } else if (what == 0) {
          book->Running(uid, now);
        } else if (what == 1) {
          const Instant since = book->Find(uid)->since;
          book->Refund(uid, {std::max(refund.start, since), refund.end});
        } else if (what == 2) {
          book->Release(uid, now);
        }
      }
    }
    later.SetPolicies(test::Declare({.quotas = quotas, .budgets = budgets}), now);
    for (int turn = 0; turn < 4; ++turn) {
      EXPECT_EQ(seen.BudgetStands(now), later.BudgetStands(now)) << "step " << step;
      EXPECT_EQ(seen.NextChange(now), later.NextChange(now)) << "step " << step;
      now += Minutes(Between(10, 900));
      seen.Advance(now, closings);
      later.Advance(now, closings);
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
