// Planning rounds, from the parts left of them alone.
#include "scheduler/engine/preemption/reclaim_planner.h"

#include <functional>

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::TeamPod;
using testing::IsEmpty;
using testing::SizeIs;

// A machine of 8; each team owns 4. Team a runs 4 of its own and, a minute later, 4 that it lends.
class ReclaimPlannerTest : public testing::Test, protected test::PreemptionRoom {
 protected:
  using Result = PlanOutcome::Result;

  ReclaimPlannerTest() {
    Node(test::StockNode("n1", 8));
    Declare({.quotas = test::TwoTeams(), .classes = {Class("top", 3), Class("train", 2)}});
    Runs(own_, "n1");
    now = At(60);
    Runs(lent_, "n1").traits.labels = std::make_shared<const Labels>(Labels{{"app", "lent"}});
  }
  PodRecord& Lent() { return *cluster.Find(lent_.uid); }
  void NobodyMayBeEvicted() {
    for (const PodRequest& pod : {own_, lent_}) cluster.Find(pod.uid)->traits.evictable = false;
  }
  PlanOutcome PlanFor(const PodUid& uid) {
    PlanWalk walk;
    walk.uid = uid;
    while (!walk.done()) planner_.Step(walk, now);
    return *walk.outcome;
  }
  Result Plan() { return PlanFor(Hungry(wants_)).result; }
  std::optional<PlanBlock> Block() const { return preemptors.BlockOf(wants_.uid); }

  ReclaimRuns runs_{plan_parts, reclaims,    earmarks, kept,      rules,
                    requeue,    nominations, gangs,    preemptors};
  ReclaimPlanner planner_{plan_parts, earmarks, nominations, preemptors, awaited, runs_};
  const PodRequest own_ = TeamPod("a", "own", 4, "train");
  const PodRequest lent_ = TeamPod("a", "lent", 4, "train");
  const PodRequest wants_ = TeamPod("b", "wants", 4, "train");
};

TEST_F(ReclaimPlannerTest, APlanKeepsTheRoomAndAsksTheVictimToLeave) {
  const PlanOutcome outcome = PlanFor(Hungry(wants_));
  EXPECT_EQ(outcome.result, Result::kPlan);
  EXPECT_EQ(outcome.rule, ReclaimRule::kR1);
  ASSERT_THAT(reclaims.all, SizeIs(1));
  const Reclaim& reclaim = reclaims.all.begin()->second;
  EXPECT_EQ(reclaim.leaf, "team-b");
  EXPECT_EQ(reclaim.victims[0].state, QuotaState::kBorrowed);
  EXPECT_EQ(cluster.Find(wants_.uid)->earmark->node, NodeName("n1"));
  EXPECT_FALSE(preemptors.Has(wants_.uid)) << "it needs no other plan";
  ASSERT_THAT(cluster.outbox.reclaims().evictions, SizeIs(1));
  EXPECT_EQ(cluster.outbox.reclaims().evictions[0].uid, lent_.uid);
}

TEST_F(ReclaimPlannerTest, NothingIsPlannedForAPodThatFitsOrWillWhenOthersHaveLeft) {
  Lent().traits.leaves_at = now + Millis(30'000);
  cluster.terminating.insert(lent_.uid);
  EXPECT_EQ(Plan(), Result::kFits);
  EXPECT_EQ(Block()->reason, Reason::kPreemptionDelayed);
  End(lent_);
  EXPECT_EQ(Plan(), Result::kFits);
  EXPECT_EQ(Block(), std::nullopt);
  EXPECT_THAT(reclaims.all, IsEmpty());
}

// The team has 4 in quota either way; what only rests for a while is waited for.
TEST_F(ReclaimPlannerTest, WhereWhatIsLentCannotLeaveItIsChosenAnew) {
  reclaims.refused_until[lent_.uid] = now + Millis(10'000);
  EXPECT_EQ(Plan(), Result::kBlocked);
  Lent().traits.evictable = false;
  EXPECT_EQ(Plan(), Result::kPlan);
  ASSERT_THAT(cluster.outbox.reclaims().evictions, SizeIs(1));
  EXPECT_EQ(cluster.outbox.reclaims().evictions[0].uid, own_.uid);
  const Reclaim& reclaim = reclaims.all.begin()->second;
  EXPECT_EQ(reclaim.rule, ReclaimRule::kR1);
  EXPECT_EQ(reclaim.victims[0].state, QuotaState::kInQuota);
}

TEST_F(ReclaimPlannerTest, WhatNoRuleTakesMakesAPlanImpossible) {
  NobodyMayBeEvicted();
  EXPECT_EQ(Plan(), Result::kImpossible);
  EXPECT_EQ(Block(), std::nullopt);
  EXPECT_EQ(cluster.Find(wants_.uid)->earmark, nullptr);
}

TEST_F(ReclaimPlannerTest, AGuardThatStandsInTheWayIsTold) {
  const struct {
    const char* what;
    std::function<void()> guard;
    Reason reason;
    std::optional<Instant> until;
    const char* detail;
  } cases[] = {
      {"it came by a plan itself", [this] { Lent().traits.settled_until = At(900); },
       Reason::kVictimsProtected, At(900), "a/lent would have to go and is protected"},
      {"a PodDisruptionBudget",
       [this] {
         DisruptionBudget budget;
         budget.ns = "a";
         budget.name = "pdb";
         budget.selector.emplace();
         reclaims.disruption_budgets[{"a", "pdb"}] = budget;
       },
       Reason::kPdbBlocked, std::nullopt, "a/lent would have to go and is protected"},
  };
  for (const auto& row : cases) {
    row.guard();
    EXPECT_EQ(Plan(), Result::kBlocked) << row.what;
    ASSERT_TRUE(Block()) << row.what;
    EXPECT_EQ(Block()->reason, row.reason) << row.what;
    EXPECT_EQ(Block()->until, row.until) << row.what;
    EXPECT_THAT(Block()->detail, testing::HasSubstr(row.detail)) << row.what;
    Lent().traits.settled_until.reset();
    reclaims.disruption_budgets.clear();
  }
}

TEST_F(ReclaimPlannerTest, APlanWaitsForACheckpointThatIsWorthIt) {
  PodTraits& lent = Lent().traits;
  lent.checkpoint = At(60);
  lent.checkpoint_gap = Millis(1'200'000);
  now = At(660);  // ten minutes of work, written down in ten more
  EXPECT_EQ(Plan(), Result::kBlocked);
  ASSERT_TRUE(Block());
  EXPECT_EQ(Block()->reason, Reason::kVictimsProtected);
  EXPECT_EQ(Block()->until, At(1'260));
  EXPECT_EQ(Block()->detail, "a/lent would have to go and is about to write a checkpoint");
  EXPECT_EQ(cluster.Find(wants_.uid)->earmark, nullptr);
  EXPECT_EQ(preemptors.DueAt(now), At(1'260));
  now = At(1'260);
  lent.checkpoint = now;
  EXPECT_EQ(Plan(), Result::kPlan);
}

TEST_F(ReclaimPlannerTest, WhoIsWaitedForIsNamedAlsoWhereALaterCheckpointIsMeant) {
  const PodRequest other = TeamPod("a", "other", 2, "train");
  End(lent_);
  const PodRequest half = TeamPod("a", "half", 2, "train");
  for (const PodRequest& pod : {half, other}) {
    PodTraits& traits = Runs(pod, "n1").traits;
    traits.checkpoint = At(60);
    traits.checkpoint_gap = pod.name == half.name ? Millis(400'000) : Millis(700'000);
  }
  now = At(450);
  EXPECT_EQ(Plan(), Result::kBlocked);
  ASSERT_TRUE(Block());
  EXPECT_THAT(Block()->detail, testing::HasSubstr("is about to write a checkpoint"));
}

// A victim that says each time that its next one is about to come holds nobody up for long.
TEST_F(ReclaimPlannerTest, PatienceEnds) {
  PodTraits& lent = Lent().traits;
  lent.checkpoint_gap = Millis(1'200'000);
  const struct {
    int64_t now, checkpoint;
    Result result;
  } looks[] = {
      {660, 60, Result::kBlocked}, {1'260, 1'000, Result::kBlocked}, {2'200, 1'900, Result::kPlan}};
  for (const auto& look : looks) {
    now = At(look.now);
    lent.checkpoint = At(look.checkpoint);
    EXPECT_EQ(Plan(), look.result) << look.now;
  }
}

TEST_F(ReclaimPlannerTest, AClassWithoutPatienceDoesNotWait) {
  GpuClass hasty = Class("train", 2);
  hasty.patience = Millis(0);
  Declare({.quotas = test::TwoTeams(), .classes = {hasty}});
  Lent().traits.checkpoint = At(60);
  Lent().traits.checkpoint_gap = Millis(1'200'000);
  now = At(660);
  EXPECT_EQ(Plan(), Result::kPlan);
}

TEST_F(ReclaimPlannerTest, NobodyIsEvictedWhileANodeIsOnItsWay) {
  awaited.Note(wants_.uid, now, now);
  EXPECT_EQ(PlanFor(Hungry(wants_, Reason::kNoRoom)).result, Result::kBlocked);
  ASSERT_TRUE(Block());
  EXPECT_EQ(Block()->reason, Reason::kNodeExpected);
  const Instant over = now + Millis(180'000);
  EXPECT_EQ(preemptors.DueAt(now), over);
  now = over;
  EXPECT_EQ(preemptors.Next(now), wants_.uid);
  EXPECT_EQ(PlanFor(Hungry(wants_, Reason::kNoRoom)).result, Result::kPlan) << "it did not come";
}

TEST_F(ReclaimPlannerTest, WhereTheNodeComesNobodyGoes) {
  Declare({.quotas = {test::Quota("org"),
                      test::Quota("team-a").Under("org").Owns("a").Line("h100", "4"),
                      test::Quota("team-b").Under("org").Owns("b").Line("h100", "12")},
           .classes = {Class("top", 3), Class("train", 2)}});
  awaited.Note(wants_.uid, now, now);
  EXPECT_EQ(PlanFor(Hungry(wants_, Reason::kNoRoom)).result, Result::kBlocked);
  Node(test::StockNode("n2", 8));
  EXPECT_EQ(PlanFor(Hungry(wants_, Reason::kNoRoom)).result, Result::kFits);
  EXPECT_EQ(Block(), std::nullopt);
}

TEST_F(ReclaimPlannerTest, WhoLacksQuotaDoesNotWaitForANode) {
  awaited.Note(wants_.uid, now, now);
  EXPECT_EQ(PlanFor(Hungry(wants_, Reason::kWaitingForQuota)).result, Result::kPlan);
}

// What autoscalers said, at seconds; the pod waits since 60.
TEST_F(ReclaimPlannerTest, ANodeOnItsWayIsWaitedForSoLong) {
  const Millis minute{60'000};
  struct Row {
    const char* what;
    std::vector<std::pair<const char*, int64_t>> told;
    Millis policy, patience;
    int64_t now;
    std::optional<int64_t> until;  // nullopt: the plan begins
  };
  const Row rows[] = {
      {"of it", {{"wants", 70}}, 3 * minute, 30 * minute, 80, 250},
      {"its time is over", {{"wants", 70}}, 3 * minute, 30 * minute, 250, {}},
      {"said again, which counts no more",
       {{"wants", 70}, {"wants", 200}},
       3 * minute,
       30 * minute,
       250,
       {}},
      {"by a clock that is ahead", {{"wants", 9'000}}, 3 * minute, 30 * minute, 80, 260},
      {"of another, and of it not yet", {{"other", 62}}, 3 * minute, 30 * minute, 70, 75},
      {"of another, and of it nothing", {{"other", 62}}, 3 * minute, 30 * minute, 75, {}},
      {"of another an hour ago", {{"other", -3'540}}, 3 * minute, 30 * minute, 62, {}},
      {"no longer than the class is patient", {{"wants", 70}}, 3 * minute, minute, 80, 130},
      {"the class does not wait", {{"wants", 70}}, 3 * minute, Millis(0), 80, {}},
      {"the policy does not wait", {{"wants", 70}}, Millis(0), 30 * minute, 80, {}},
      {"a moment", {{"other", 62}}, Millis(5'000), 30 * minute, 62, 65},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    GpuClass train = Class("train", 2);
    train.patience = row.patience;
    GpuPolicy policy;
    policy.wait_for_nodes = row.policy;
    Declare({.quotas = test::TwoTeams(), .classes = {train}}, policy);
    AwaitedNodes words(cluster);
    for (const auto& [name, at] : row.told) {
      words.Note(PodUid(std::string("uid-") + name), At(at), At(std::min(at, row.now)));
    }
    const PodUid uid = Hungry(wants_, Reason::kNoRoom);
    cluster.Find(uid)->waits_since = At(60);
    const std::optional<PlanBlock> hold = words.HoldOf(*preemptors.Of(uid), At(row.now));
    EXPECT_EQ(hold.has_value(), row.until.has_value());
    if (!hold || !row.until) continue;
    EXPECT_EQ(hold->until, At(*row.until));
    EXPECT_EQ(hold->reason, Reason::kNodeExpected);
  }
}

TEST_F(ReclaimPlannerTest, OfAutoscalersOnlyTheLastHourIsKept) {
  for (int i = 0; i < 100; ++i) awaited.Note(PodUid(fmt::format("u{}", i)), At(i), At(i));
  EXPECT_EQ(awaited.size(), 100U);
  awaited.Forget(PodUid("u7"));
  awaited.Forget(PodUid("nobody"));
  awaited.Note(PodUid("late"), At(3'649), At(3'649));
  EXPECT_EQ(awaited.size(), 51U) << "u0 to u49 were said an hour ago";
  awaited.Note(PodUid("old"), At(40), At(3'649));
  EXPECT_EQ(awaited.size(), 51U);
}

TEST_F(ReclaimPlannerTest, TheHourlyLimitOfATeamKeepsItsWorkFromItsOwnHigherClass) {
  for (int i = 0; i < 20; ++i)
    reclaims.history.Note(fmt::format("a/other-{}", i), "team-a", 1, At(0));
  const PodRequest high = TeamPod("a", "high", 4, "top");
  EXPECT_EQ(PlanFor(Hungry(high)).result, Result::kBlocked);
  const std::optional<PlanBlock> block = preemptors.BlockOf(high.uid);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->reason, Reason::kEvictionBudget);
  EXPECT_EQ(block->until, At(3'600));
  EXPECT_THAT(block->detail, testing::HasSubstr("the hourly limit of its team"));
  EXPECT_EQ(Plan(), Result::kPlan) << "what another team is entitled to has no such limit";
}

TEST_F(ReclaimPlannerTest, FruitlessLooksAreTakenAtGrowingIntervals) {
  NobodyMayBeEvicted();
  for (const int64_t gap : {250, 500, 1'000, 1'000}) {
    EXPECT_EQ(Plan(), Result::kImpossible);
    const PlanMemory& memory = preemptors.MemoryOf(*preemptors.Of(wants_.uid));
    EXPECT_EQ((memory.not_before - now).count(), gap);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
