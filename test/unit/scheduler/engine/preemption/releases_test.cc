// Giving back without anybody who waits: from the parts left of it alone.
#include "scheduler/engine/preemption/releases.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::DayBudget;
using test::Quota;
using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;

class ReleasesTest : public testing::Test, protected test::PreemptionRoom {
 protected:
  ReleasesTest() { Node(test::StockNode("n1", 8)); }
  // Team a owns that many and runs two pods of 2.
  void Owns(const std::string& gpus, OnShrink on_shrink = OnShrink::kReclaim) {
    const std::shared_ptr<const PolicySet> before = cluster.set;
    Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", gpus).OnShrunk(on_shrink)},
             .classes = {Class("serve", 3, Preemptible::kNever)}});
    rules.ForgetPolicies();
    releases_.NoteShrunk(*before);
  }
  std::vector<std::string> Asked() {
    std::vector<std::string> names;
    for (const EvictionOrder& order : std::exchange(cluster.outbox.reclaims().evictions, {}))
      names.push_back(order.pod.name);
    return names;
  }

  ReclaimRuns runs_{plan_parts, reclaims,    earmarks, kept,      rules,
                    requeue,    nominations, gangs,    preemptors};
  ReclaimPlanner planner_{plan_parts, earmarks, nominations, preemptors, awaited, runs_};
  RunLimits limits_{cluster, claim_books, claim_holders};
  Releases releases_{plan_parts, reclaims, rules, gangs, preemptors, planner_, runs_, limits_};
};

TEST_F(ReleasesTest, ATeamWhoseQuotaWasLoweredGivesBackWhatIsTooMuch) {
  Owns("4");
  for (const char* name : {"one", "two"}) Runs(TeamPod("a", name, 2), "n1");
  EXPECT_EQ(releases_.Plan(now), std::nullopt);
  Owns("2");
  EXPECT_THAT(reclaims.shrinking, ElementsAre("team-a"));
  const std::optional<PlanOutcome> outcome = releases_.Plan(now);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->rule, ReclaimRule::kShrink);
  EXPECT_EQ(Asked().size(), 1U);
  EXPECT_EQ(releases_.Plan(now), std::nullopt) << "one at a time";
}

TEST_F(ReleasesTest, OnlyAnEditThatIsToTakeBackShrinks) {
  Owns("4");
  Owns("2", OnShrink::kKeep);
  EXPECT_THAT(reclaims.shrinking, IsEmpty());
  Owns("2");
  EXPECT_THAT(reclaims.shrinking, IsEmpty()) << "the amounts are as they were";
  Owns("1");
  EXPECT_THAT(reclaims.shrinking, ElementsAre("team-a"));
  releases_.Plan(now);
  EXPECT_THAT(reclaims.shrinking, IsEmpty()) << "the team holds nothing";
}

TEST_F(ReleasesTest, WorkThatIsProtectedIsLookedAtAgainLater) {
  Owns("4");
  Runs(TeamPod("a", "one", 4), "n1").traits.settled_until = At(60);
  Owns("2");
  EXPECT_EQ(releases_.Plan(now)->result, PlanOutcome::Result::kBlocked);
  EXPECT_EQ(releases_.Plan(At(9)), std::nullopt);
  EXPECT_EQ(releases_.DueAt(At(9)), At(10));
  EXPECT_EQ(releases_.Plan(At(60))->result, PlanOutcome::Result::kPlan);
  EXPECT_THAT(Asked(), ElementsAre("one"));
}

TEST_F(ReleasesTest, ABudgetThatIsUsedUpDrainsTheWorkItMeters) {
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "8"),
                      Quota("team-b").Owns("b").Line("h100", "8")},
           .budgets = {DayBudget("team-a", 1, OnExhaustion::kDrain)},
           .classes = {Class("serve", 3, Preemptible::kNever)}});
  Runs(TeamPod("a", "spends", 2), "n1");
  Runs(TeamPod("a", "serves", 1, "serve"), "n1");
  Runs(TeamPod("b", "others", 2), "n1");
  EXPECT_EQ(releases_.Plan(now), std::nullopt);
  now += test::Hours(1);
  std::vector<WindowClosing> closings;
  cluster.book.Advance(now, closings);
  const std::optional<PlanOutcome> outcome = releases_.Plan(now);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->rule, ReclaimRule::kDrain);
  EXPECT_THAT(Asked(), ElementsAre("spends"));
  EXPECT_EQ(reclaims.all.begin()->second.source, "team-a-day");
}

TEST_F(ReleasesTest, WorkWhoseTimeIsOverAndThatHoldsNothingIsForgotten) {
  GpuClass notebook = Class("notebook", 1);
  notebook.max_runtime = test::Hours(1);
  Declare({.classes = {notebook}});
  const PodRequest one = TeamPod("a", "one", 1, "notebook");
  Runs(one, "n1");
  limits_.Note(one.uid);
  limits_.Tend(At(3'240));
  cluster.book.Release(one.uid, At(3'300));
  EXPECT_EQ(releases_.Plan(At(3'600))->result, PlanOutcome::Result::kImpossible);
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_EQ(limits_.Due(), std::nullopt);
}

TEST_F(ReleasesTest, APartOfAGangGivesBackWhatWeGaveIt) {
  Declare({.classes = {Class("serve", 3, Preemptible::kNever)}});
  const char* names[] = {"g-0", "g-1", "g-2", "g-3"};
  for (int i = 0; i < 4; ++i) {
    PodRequest member = test::Member("a", "g", i, 5, 1);
    if (i == 1) member.priority_class = "serve";
    PodRecord& record = Runs(member, "n1");
    if (i == 2) record.traits.evictable = false;
    if (i == 3) record.traits.leaves_at = At(30);
    gangs.Join(member.uid, record, now);
    EXPECT_EQ(record.request->name.name, names[i]);
  }
  releases_.EvictPart("a/g", now);
  EXPECT_THAT(Asked(), ElementsAre("g-0"))
      << "not what is never preempted, made by nobody, or leaving";
  EXPECT_EQ(reclaims.all.begin()->second.rule, ReclaimRule::kGang);
}

TEST_F(ReleasesTest, ALargeDrainGoesInRecordsOfAHundredPods) {
  constexpr int kPods = 230;
  for (int i = 0; i < kPods; ++i) Node(test::StockNode(fmt::format("d{}", i), 1));
  GpuBudget budget = DayBudget("team-a", 1, OnExhaustion::kDrain);
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "999")}, .budgets = {budget}});
  for (int i = 0; i < kPods; ++i)
    Runs(TeamPod("a", fmt::format("p{:03}", i), 1), fmt::format("d{}", i));
  now += test::Hours(1);
  std::vector<WindowClosing> closings;
  cluster.book.Advance(now, closings);
  std::vector<std::size_t> sizes;
  for (;;) {
    const std::optional<PlanOutcome> outcome = releases_.Plan(now);
    if (!outcome || outcome->result != PlanOutcome::Result::kPlan) break;
    const Reclaim& reclaim = reclaims.all.at(reclaims.runs.rbegin()->first);
    sizes.push_back(reclaim.victims.size());
    EXPECT_EQ(releases_.Plan(now), std::nullopt) << "not before these were asked";
    for (const ReclaimVictim& victim : std::vector<ReclaimVictim>(reclaim.victims))
      runs_.Settle(reclaim.name, victim.uid, EvictionOutcome::kAccepted, std::nullopt, now);
  }
  EXPECT_THAT(sizes, ElementsAre(100, 100, 30));
}

TEST_F(ReleasesTest, ADrainThatRunsIsNotDue) {
  GpuBudget budget = DayBudget("team-a", 1, OnExhaustion::kDrain);
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "8")}, .budgets = {budget}});
  Runs(TeamPod("a", "one", 2), "n1");
  now += test::Hours(1);
  std::vector<WindowClosing> closings;
  cluster.book.Advance(now, closings);
  ASSERT_TRUE(releases_.Plan(now));
  EXPECT_EQ(releases_.DueAt(now + Millis(60'000)), std::nullopt);
}

}  // namespace THIS_FILE
}  // namespace tranche
