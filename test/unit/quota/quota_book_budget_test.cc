// Budgets in the quota book: whose hours count, what happens when they are used up, restarts.
#include "test/unit/quota/quota_book_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::DayBudget;
using test::Declare;
using test::GpuHours;
using test::Hours;
using test::Minutes;
using testing::IsEmpty;

TEST_F(QuotaBookTest, BudgetThatDemotesTakesNominalAwayUntilItsWindowEnds) {
  Set({.quotas = TwoTeams(), .budgets = {DayBudget("team-a", 5, OnExhaustion::kDemote)}});
  Hold("pod", "a", 2);
  const Instant used_up = now_ + Minutes(150);
  EXPECT_EQ(book_.NextChange(now_), used_up);
  EXPECT_FALSE(book_.Advance(used_up - Millis(1), closings_));
  EXPECT_FALSE(Report("team-a").suspended);
  EXPECT_EQ(book_.StateOf(PodUid("pod")), QuotaState::kInQuota);

  EXPECT_TRUE(book_.Advance(used_up, closings_)) << "those who wait should be asked again";
  now_ = used_up;
  EXPECT_TRUE(Report("team-a").suspended);
  EXPECT_EQ(book_.StateOf(PodUid("pod")), QuotaState::kBorrowed);
  const Admission more = Ask("a", 2);
  EXPECT_EQ(more.code, AdmissionCode::kAdmitted);
  EXPECT_TRUE(more.demoted);
  EXPECT_TRUE(more.borrows);
  EXPECT_EQ(Ask("a", 3).code, AdmissionCode::kBorrowLimit) << "all of it counts as borrowed";

  EXPECT_TRUE(book_.Advance(kMidnight, closings_));
  now_ = kMidnight;
  EXPECT_FALSE(Report("team-a").suspended);
  EXPECT_EQ(book_.StateOf(PodUid("pod")), QuotaState::kInQuota);
  ASSERT_EQ(closings_.size(), 1U);
  EXPECT_EQ(closings_[0].used, GpuHours(2 * 18));
}

// A day of 5 GPU-hours of which work that declares 4 hours of 2 GPUs is more than is left.
TEST_F(QuotaBookTest, WorkLetInBeyondABudgetHasItsRightAgainWithTheBudgetItLacked) {
  const GpuBudget budget = DayBudget("team-a", 5, OnExhaustion::kDemote);
  GpuBudget larger = budget;
  larger.milli_gpu_hours = 50'000;
  const GpuBudget other = DayBudget("team-b", 5, OnExhaustion::kDemote);
  const struct {
    const char* what;
    std::vector<GpuBudget> budgets;
    Millis later;
    QuotaState state;
  } rows[] = {
      {"nothing changes", {budget}, Minutes(1), QuotaState::kBorrowed},
      {"another team's budget goes", {budget}, Minutes(1), QuotaState::kBorrowed},
      {"its budget goes", {other}, Minutes(1), QuotaState::kInQuota},
      {"its budget grows", {larger, other}, Minutes(1), QuotaState::kInQuota},
      {"its window ends", {budget, other}, kMidnight - now_, QuotaState::kInQuota},
  };
  for (const auto& row : rows) {
    QuotaBook book;
    book.SetPolicies(Declare({.quotas = TwoTeams(), .budgets = {budget, other}}), now_);
    const QuotaMembership membership = book.MembershipOf("a", "");
    const Admission admission = book.Admit(membership, Parts(2), Hours(4), now_);
    ASSERT_TRUE(admission.demoted);
    ASSERT_EQ(book.set().budgets[admission.budget.value()].uid, budget.uid);
    HeldWork work;
    work.pod = {"a", "pod"};
    work.leaf = "team-a";
    work.parts = Parts(2);
    work.since = now_;
    work.demoted_by = budget.uid;
    book.Hold(PodUid("pod"), work);
    ASSERT_EQ(book.StateOf(PodUid("pod")), QuotaState::kBorrowed);
    const Instant then = now_ + row.later;
    std::vector<WindowClosing> closings;
    book.Advance(then, closings);
    book.SetPolicies(Declare({.quotas = TwoTeams(), .budgets = row.budgets}), then);
    EXPECT_EQ(book.StateOf(PodUid("pod")), row.state) << row.what;
  }
}

TEST_F(QuotaBookTest, BudgetThatBlocksSaysWhenAndOneThatWarnsLetsIn) {
  GpuBudget warning = DayBudget("org", 1, OnExhaustion::kWarn);
  Set({.quotas = TwoTeams(), .budgets = {DayBudget("team-a", 40), warning}});
  Hold("pod", "a", 4);
  // Work that declares no end is promised 15 minutes at a time.
  EXPECT_EQ(Ask("a", 8, "", Minutes(4 * 60 + 52)).code, AdmissionCode::kAdmitted);
  EXPECT_EQ(Ask("a", 8, "", Minutes(4 * 60 + 53)).code, AdmissionCode::kBudgetExhausted);
  Pass(Hours(3));
  // 12 are used, 1 is promised; today only less is left.
  const Admission refused = Ask("a", 8, "", Hours(4));
  ASSERT_EQ(refused.code, AdmissionCode::kBudgetExhausted);
  EXPECT_EQ(book_.set().budgets[refused.budget.value()].name, "team-a-day");
  EXPECT_EQ(refused.eligible_at, kMidnight);
  Pass(kMidnight - now_ - Millis(1));
  EXPECT_EQ(Ask("a", 8, "", Hours(4)).code, AdmissionCode::kBudgetExhausted);
  Pass(Millis(1));
  EXPECT_EQ(Ask("a", 8, "", Hours(4)).code, AdmissionCode::kAdmitted);
}

TEST_F(QuotaBookTest, WorkThatIsNeverPreemptedWaitsWhereOthersAreDemoted) {
  Set({.quotas = TwoTeams(),
       .budgets = {DayBudget("team-a", 1, OnExhaustion::kDemote)},
       .classes = {Class("serve", 3, Preemptible::kNever)}});
  Hold("pod", "a", 1);
  Pass(Hours(1));
  EXPECT_EQ(Ask("a", 1).code, AdmissionCode::kAdmitted);
  EXPECT_EQ(Ask("a", 1, "serve").code, AdmissionCode::kBudgetExhausted);
}

TEST_F(QuotaBookTest, EveryBudgetOnThePathCounts) {
  GpuBudget of_namespace = DayBudget("ns", 100);
  of_namespace.quota_ref = "";
  of_namespace.ns = "a";
  GpuBudget of_other = of_namespace;
  of_other.name = "other-day";
  of_other.uid = "other";
  of_other.ns = "b";
  Set({.quotas = TwoTeams(),
       .budgets = {DayBudget("team-a", 100), DayBudget("team-b", 100), DayBudget("org", 6),
                   of_namespace, of_other}});
  Hold("pod", "a", 2);
  Pass(Hours(2));
  EXPECT_EQ(UsedHours("team-a-day"), 4000);
  EXPECT_EQ(UsedHours("org-day"), 4000);
  EXPECT_EQ(UsedHours("ns-day"), 4000);
  EXPECT_EQ(UsedHours("team-b-day"), 0);
  EXPECT_EQ(UsedHours("other-day"), 0);
  // The strictest refuses, also those who used nothing of it.
  const Admission refused = Ask("b", 8, "", Hours(1));
  ASSERT_EQ(refused.code, AdmissionCode::kBudgetExhausted);
  EXPECT_EQ(book_.set().budgets[refused.budget.value()].name, "org-day");
}

TEST_F(QuotaBookTest, BudgetDeclaredLaterCountsWhatItsWindowUsedBefore) {
  Set({.quotas = TwoTeams()});
  book_.AddPast({"team-a", "a", "", Parts(3), now_ - Hours(2), std::nullopt, now_ - Hours(1), 1});
  book_.AddPast(
      {"team-a", "a", "", Parts(3), now_ - Hours(2), std::nullopt, now_ - Minutes(90), -1});
  book_.AddPast({"team-a", "a", "", Parts(5), now_ - Hours(30), std::nullopt, now_ - Hours(5), 1});
  Hold("ended", "a", 2);
  Hold("runs", "a", 1);
  Pass(Hours(1));
  Release("ended");
  Pass(Hours(1));
  Set({.quotas = TwoTeams(), .budgets = {DayBudget("team-a", 100), DayBudget("team-b", 100)}});
  // 3 h less half of it; 5 GPUs from midnight to one; 2 GPU-hours; 2 hours of what still runs.
  EXPECT_EQ(UsedHours("team-a-day"), 3000 - 1500 + 5000 + 2000 + 2000);
  EXPECT_EQ(UsedHours("team-b-day"), 0);
  Pass(Hours(1));
  EXPECT_EQ(UsedHours("team-a-day"), 11'500);
}

TEST_F(QuotaBookTest, RefundsGoBackToTheBudget) {
  GpuBudget from_running = DayBudget("org", 100);
  from_running.meter_from = MeterFrom::kRunning;
  Set({.quotas = TwoTeams(), .budgets = {DayBudget("team-a", 100), from_running}});
  Hold("pod", "a", 4);
  Pass(Hours(1));
  book_.Running(PodUid("pod"), now_);
  Pass(Hours(2));
  EXPECT_EQ(UsedHours("team-a-day"), 12'000);
  EXPECT_EQ(UsedHours("org-day"), 8000);
  book_.Refund(PodUid("pod"), {kMorning + Minutes(30), kMorning + Minutes(90)});
  EXPECT_EQ(UsedHours("team-a-day"), 8000);
  EXPECT_EQ(UsedHours("org-day"), 6000) << "only what was metered goes back";
  book_.Refund(PodUid("unknown"), {kMorning, now_});
  book_.Refund(PodUid("pod"), {now_, kMorning});
  EXPECT_EQ(UsedHours("team-a-day"), 8000);
}

TEST_F(QuotaBookTest, ClockSetForwardChargesNobody) {
  GpuBudget from_running = DayBudget("org", 100);
  from_running.meter_from = MeterFrom::kRunning;
  Set({.quotas = TwoTeams(), .budgets = {DayBudget("team-a", 100), from_running}});
  Hold("pod", "a", 2);
  Hold("waits", "a", 1);
  Pass(Hours(1));
  book_.Running(PodUid("pod"), now_);
  Pass(Hours(1));
  book_.Step(now_, now_ + Hours(5));
  now_ += Hours(5);
  Pass(Hours(1));
  EXPECT_EQ(UsedHours("team-a-day"), 9000);
  EXPECT_EQ(UsedHours("org-day"), 4000);
  EXPECT_NEAR(static_cast<double>(book_.DecayedMilliGpuHours("team-a", now_)), 9000, 300);
  Release("pod");
  Release("waits");
  // The same from the past alone.
  GpuBudget again = DayBudget("team-a", 100);
  again.name = again.uid = "again";
  Set({.quotas = TwoTeams(), .budgets = {again}});
  EXPECT_EQ(UsedHours("again"), 9000);
}

TEST_F(QuotaBookTest, ModelsAndClassesHaveTheirPrice) {
  GpuBudget budget = DayBudget("team-a", 100);
  budget.rates = {{"h100", 2000}, {"l4", 150}};
  GpuClass cheap = Class("cheap", 0);
  cheap.charge_factor = 250;
  GpuClass free_of_charge = Class("free", 0);
  free_of_charge.charge_factor = 0;
  Set({.quotas = TwoTeams(), .budgets = {budget}, .classes = {cheap, free_of_charge}});
  struct Row {
    const char* model;
    const char* workload_class;
    int64_t hours;  // milli GPU-hours of two GPUs in an hour
  };
  int64_t sum = 0;
  for (const Row& row : std::vector<Row>{{"h100", "", 4000},
                                         {"l4", "", 300},
                                         {"t4", "", 2000},
                                         {"h100", "cheap", 1000},
                                         {"l4", "cheap", 75},
                                         {"h100", "free", 0},
                                         {"t4", "unknown", 2000}}) {
    Hold("pod", "a", 2, row.workload_class, row.model);
    Pass(Hours(1));
    Release("pod");
    sum += row.hours;
    EXPECT_EQ(UsedHours("team-a-day"), sum) << row.model << " " << row.workload_class;
  }
  // What is free asks no budget.
  Hold("much", "a", 8, "", "h100");
  Pass(Hours(8));
  EXPECT_EQ(Ask("a", 1).code, AdmissionCode::kBudgetExhausted);
  EXPECT_EQ(Ask("a", 1, "free").code, AdmissionCode::kAdmitted);
}

// ---- after a restart

TEST_F(QuotaBookTest, WindowClosedInAnEarlierLifeIsNotChargedTwice) {
  const test::Objects objects = {.quotas = TwoTeams(), .budgets = {DayBudget("team-a", 200)}};
  Set(objects);
  Hold("runs", "a", 4);
  Pass(kMidnight + Hours(2) - now_);
  ASSERT_EQ(closings_.size(), 1U);
  EXPECT_EQ(closings_[0].used, GpuHours(4 * 18));

  QuotaBook next;
  next.Restore(closings_, book_.Decay());
  next.Hold(PodUid("runs"), *book_.Find(PodUid("runs")));
  next.SetPolicies(Declare(objects), now_);
  closings_.clear();
  next.Advance(now_, closings_);
  EXPECT_THAT(closings_, IsEmpty()) << "nothing new is known of the closed window";
  EXPECT_EQ(next.Budgets(now_)[0].view.used, GpuHours(8));
  next.DeclareRuntime(PodUid("runs"), Hours(30), now_);
  EXPECT_EQ(next.Budgets(now_)[0].view.used, GpuHours(8));
  EXPECT_EQ(next.Budgets(now_)[0].view.committed, GpuHours(4 * 10)) << "until 12:00";
}

TEST_F(QuotaBookTest, WindowThatEndedWhileNobodyRanIsClosedAndTold) {
  const test::Objects objects = {.quotas = TwoTeams(), .budgets = {DayBudget("team-a", 200)}};
  Set(objects);
  Pass(kMidnight - now_);
  ASSERT_EQ(closings_.size(), 1U);
  QuotaBook next;
  next.Restore(closings_, {});
  next.AddPast({"team-a", "a", "", Parts(3), now_ + Hours(1), std::nullopt, now_ + Hours(3), 1});
  closings_.clear();
  next.SetPolicies(Declare(objects), kMidnight + Hours(30));
  next.Advance(kMidnight + Hours(30), closings_);
  ASSERT_EQ(closings_.size(), 1U);
  EXPECT_EQ(closings_[0].span.start, kMidnight);
  EXPECT_EQ(closings_[0].used, GpuHours(6));
}

TEST_F(QuotaBookTest, PastUseOfWorkThatIsGoneOnlyFades) {
  Set({.quotas = TwoTeams()});
  Hold("pod", "a", 8);
  Pass(Hours(24));
  QuotaBook next;
  next.Restore({}, book_.Decay());
  next.SetPolicies(Declare({.quotas = TwoTeams()}), now_);
  const int64_t then = next.DecayedMilliGpuHours("team-a", now_);
  EXPECT_LE(next.DecayedMilliGpuHours("team-a", now_ + Hours(168)), then / 2 + 1);
}

}  // namespace THIS_FILE
}  // namespace tranche
