// Important work gets its GPUs: from a refusal over evictions to the pod on its devices.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::Hours;
using test::Minutes;
using test::Quota;
using test::StockNode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// One machine of 8: each team owns 4 and may borrow all.
std::vector<GpuQuota> TwoTeams() {
  return {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "4"),
          Quota("team-b").Under("org").Owns("b").Line("h100", "4")};
}

std::vector<GpuClass> Classes() {
  return {Class("serve", 3, Preemptible::kNever), Class("train", 2), Class("scavenge", 0)};
}

class Teams : public EngineReclaimTest {
 protected:
  void SetUp() override {
    Nodes({StockNode("n1", 8)});
    Declare({.quotas = TwoTeams(), .classes = Classes()});
  }
};

TEST_F(Teams, EntitledPodGetsItsNominalBackFromTheBorrower) {
  const PodRequest own = Pod("a", "own", 4, "train"), lent = Pod("a", "lent", 4, "train");
  Run(own, "n1");
  Pass(Minutes(1));
  Run(lent, "n1");
  const PodRequest wants = Pod("b", "wants", 4, "serve");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/1 for wants from lent"));
  EXPECT_EQ(nominated_["wants"], "") << "no room is coming yet";
  EXPECT_EQ(Why(wants), "PreemptionInProgress");
  EXPECT_EQ(EvictAll(), "lent");
  EXPECT_EQ(nominated_["wants"], "n1");
  EXPECT_EQ(Try(wants), "PreemptionInProgress") << "a deletion that has begun frees nothing";
  ASSERT_EQ(answer_.refused.size(), 1U);
  EXPECT_EQ(answer_.refused[0].second, Reason::kPreemptionInProgress);
  EXPECT_EQ(Plan(), "");
  Leave(lent);
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Reserved 1/1 for wants from lent"));
  EXPECT_THAT(Requeued(), testing::Contains("wants"));
  EXPECT_EQ(Try(wants), "n1");
  EXPECT_TRUE(Place(wants, "n1"));
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Done 1/1 for wants from lent"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(Teams, NobodyIsEvictedForAPodOfASchedulerThatDoesNotAsk) {
  Run(Pod("a", "lent", 8, "train"), "n1");
  PodRequest wants = Pod("b", "wants", 4, "train");
  wants.scheduler = "volcano";
  PodFacts waits = test::Pending(wants);
  waits.unschedulable = true;
  engine_.UpsertPod(waits, now_);
  EXPECT_EQ(Plan(), "");
  EXPECT_THAT(engine_.Explain(wants.name, now_)->advice,
              HasSubstr("the scheduler volcano, which has asked about none of its pods"));
  PodRequest other = Pod("x", "other", 9);
  other.scheduler = "volcano";
  Try(other);
  EXPECT_EQ(Plan(), "plan") << "it asks, if about another pod";
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/1 for wants from lent"));
}

TEST_F(Teams, NobodyElseIsGivenTheRoomMeanwhile) {
  const PodRequest lent = Pod("a", "lent", 8, "train");
  Run(lent, "n1");
  const PodRequest wants = Pod("b", "wants", 4, "train");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "lent");
  Leave(lent);
  // 8 are free and 4 of them are kept.
  EXPECT_EQ(Try(Pod("a", "greedy", 5, "train")), "WaitingForQuota");
  EXPECT_EQ(Try(Pod("x", "nobodys", 5)), "NoRoom") << "no quota owns it, the room is kept anyway";
  EXPECT_EQ(Try(Pod("a", "modest", 4, "train")), "n1");
  EXPECT_TRUE(Place(Pod("a", "modest", 4, "train"), "n1"));
  EXPECT_TRUE(Place(wants, "n1"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(Teams, BorrowedAndInQuotaAreTold) {
  Run(Pod("b", "b1", 4, "train"), "n1");
  Run(Pod("a", "a1", 4, "train"), "n1");
  EXPECT_EQ(Try(Pod("b", "b2", 1, "train")), "WaitingForQuota");
  EXPECT_EQ(Plan(), "impossible") << "it would borrow, and nobody below it runs";
  EXPECT_THAT(Reclaims(), IsEmpty());
}

TEST_F(Teams, OwnTeamsLowerRankGoesForWorkInQuota) {
  const PodRequest low = Pod("a", "low", 4, "scavenge"), theirs = Pod("b", "theirs", 4, "train");
  Run(low, "n1");
  Run(theirs, "n1");
  const PodRequest wants = Pod("a", "wants", 2, "train");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("R2a Evicting 0/1 for wants from low"));
}

TEST_F(Teams, WorkInQuotaThatIsEvictedGetsItsLostHoursBack) {
  std::vector<GpuClass> classes = Classes();
  classes.push_back(Class("low", 1));
  Declare({.quotas = TwoTeams(), .classes = classes});
  const PodRequest low = Pod("a", "low", 4, "low");
  Run(low, "n1");
  Run(Pod("b", "theirs", 4, "train"), "n1");
  Pass(Minutes(50));
  Checkpoint(low, now_ - Minutes(10));
  Metered();
  const PodRequest wants = Pod("a", "wants", 2, "train");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(engine_.Reclaims()[0].victims[0].state, QuotaState::kInQuota);
  EXPECT_EQ(EvictAll(), "low");
  Pass(std::chrono::seconds(30));
  Leave(low);
  // From the checkpoint to the end; the 30 s of its grace are lost as well.
  EXPECT_THAT(Metered(),
              ElementsAre("refund low.0 from 2400 to 3030 LostWork", "close low.0 at 3030"));
}

TEST_F(Teams, BorrowedWorkThatDoesNotSayWhenItSavedGetsNothingBack) {
  Run(Pod("a", "own", 4, "train"), "n1");
  Pass(Minutes(1));
  const PodRequest lent = Pod("a", "lent", 4, "train");
  Run(lent, "n1");
  Pass(Minutes(10));
  Metered();
  Try(Pod("b", "wants", 4, "train"));
  Plan();
  EXPECT_EQ(EvictAll(), "lent");
  Leave(lent);
  EXPECT_THAT(Metered(), ElementsAre("close lent.0 at 660"));
}

TEST_F(Teams, ACheckpointFromBeforeThePodRanGivesNothingBack) {
  Run(Pod("a", "own", 4, "train"), "n1");
  Pass(Minutes(1));
  const PodRequest lent = Pod("a", "lent", 4, "train");
  Run(lent, "n1", "", test::At(-1'000'000));
  Pass(Minutes(50));
  Metered();
  Try(Pod("b", "wants", 4, "train"));
  Plan();
  EXPECT_EQ(EvictAll(), "lent");
  Leave(lent);
  EXPECT_THAT(Metered(), ElementsAre("close lent.0 at 3060"));
}

TEST_F(Teams, AnEvictionThatWasTakenAndMovesNothingGivesItsRoomBack) {
  Run(Pod("a", "own", 4, "train"), "n1");
  Pass(Minutes(1));
  Run(Pod("a", "lent", 4, "train"), "n1");
  Try(Pod("b", "wants", 4, "train"));
  EXPECT_EQ(Plan(), "plan");
  Collect();
  ASSERT_EQ(evictions_.size(), 1U);
  const EvictionOrder order = evictions_[0];
  // The server says yes, and the pod is never seen to leave.
  engine_.SettleEviction(order.reclaim, order.uid, EvictionOutcome::kAccepted, std::nullopt, now_);
  Pass(Minutes(5));
  ASSERT_EQ(engine_.Reclaims().size(), 1U);
  EXPECT_EQ(engine_.Reclaims()[0].reason, "VictimStuck");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(Teams, LeastLostWorkGoes) {
  Pass(Hours(6));
  const PodRequest old = Pod("a", "old", 4, "train");
  Run(old, "n1", "", now_);
  Pass(Hours(5));
  Run(Pod("a", "young", 4, "train"), "n1");
  Pass(Minutes(40));
  Checkpoint(old, now_ - Minutes(5));
  // Marks: the older gang is in quota, so only the younger one may go, whatever it loses.
  EXPECT_EQ(Try(Pod("b", "wants", 4, "train")), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/1 for wants from young"));
}

TEST_F(Teams, PodsThatAreLeavingAnywayAreWaitedFor) {
  const PodRequest own = Pod("a", "own", 4, "train");
  Run(own, "n1");
  Run(Pod("a", "lent", 4, "train"), "n1");
  PodFacts leaving = running_.at(own.uid);
  leaving.terminating = true;
  leaving.deletion_at = now_ + std::chrono::seconds(30);
  engine_.UpsertPod(leaving, now_);
  const PodRequest wants = Pod("b", "wants", 4, "train");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "fits");
  EXPECT_THAT(Reclaims(), IsEmpty());
  const auto explained = engine_.Explain(wants.name, now_);
  ASSERT_TRUE(explained && explained->blocked);
  EXPECT_EQ(explained->blocked->reason, Reason::kPreemptionDelayed);
  Leave(own);
  EXPECT_EQ(Try(wants), "n1");
}

TEST_F(Teams, PreemptorThatIsDeletedGivesEverythingBack) {
  const PodRequest one = Pod("a", "one", 2, "train"), two = Pod("a", "two", 2, "train");
  Run(Pod("a", "own", 4, "train"), "n1");
  Pass(Minutes(1));
  Run(one, "n1");
  Run(two, "n1");
  const PodRequest wants = Pod("b", "wants", 4, "serve");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(Evict(), "one");
  ASSERT_EQ(evictions_.size(), 1U) << "the next is asked for when the first is answered";
  engine_.DeletePod(wants.uid, now_);
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Aborted(PreemptorGone) 0/2 for wants from one two"));
  // The answer to what was under way changes nothing more.
  engine_.SettleEviction(evictions_[0].reclaim, evictions_[0].uid, EvictionOutcome::kFailed, {},
                         now_);
  Leave(one);
  EXPECT_EQ(Try(Pod("a", "again", 2, "train")), "n1");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(Teams, PlanThatNoLongerHoldsIsGivenUpAndMadeAgain) {
  const PodRequest one = Pod("a", "one", 2, "train"), two = Pod("a", "two", 2, "train");
  const PodRequest own = Pod("a", "own", 4, "train");
  Run(own, "n1");
  Pass(Minutes(1));
  Run(one, "n1");
  Run(two, "n1");
  const PodRequest wants = Pod("b", "wants", 4, "train");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(evictions_.size(), 1U);
  // While the first eviction is asked for, older work of the lender ends: nobody else has to go.
  Leave(own);
  EXPECT_EQ(Evict(), "one");
  EXPECT_EQ(Evict(), "nobody");
  EXPECT_EQ(Reclaims()[0].substr(0, 11), "R1 Evicting");
  Leave(one);
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Reserved 1/1 for wants from one"));
  EXPECT_TRUE(Place(wants, "n1"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(Teams, ProtectedPodsAreNamedWithTheTimeAndTakenWhenItComes) {
  std::vector<GpuClass> classes = Classes();
  classes[1].min_runtime = Minutes(30);
  Declare({.quotas = TwoTeams(), .classes = classes});
  Run(Pod("a", "own", 4, "train"), "n1");
  Pass(Minutes(1));
  Run(Pod("a", "lent", 4, "train"), "n1");
  const PodRequest wants = Pod("b", "wants", 4, "train");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "blocked");
  EXPECT_EQ(View(wants).eligible_at, now_ + Minutes(30));
  EXPECT_THAT(View(wants).detail,
              HasSubstr("lent would have to go and is protected by its minimum"));
  const auto explained = engine_.Explain(wants.name, now_);
  ASSERT_TRUE(explained && explained->blocked);
  EXPECT_EQ(explained->blocked->reason, Reason::kVictimsProtected);
  EXPECT_EQ(Plan(), "");
  const std::optional<Instant> next = engine_.Tick(now_);
  ASSERT_TRUE(next);
  EXPECT_LE(*next, now_ + Minutes(30));
  Pass(Minutes(30));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/1 for wants from lent"));
}

TEST_F(Teams, ATeamLosesNoMorePodsInAnHourThanItMay) {
  std::vector<GpuQuota> teams = TwoTeams();
  teams[1].max_evictions_per_hour = 1;
  Declare({.quotas = teams, .classes = Classes()});
  const PodRequest one = Pod("a", "one", 2, "scavenge"), two = Pod("a", "two", 2, "scavenge");
  Run(one, "n1");
  Run(two, "n1");
  Run(Pod("b", "theirs", 4, "train"), "n1");
  const PodRequest first = Pod("a", "first", 2, "train"), second = Pod("a", "second", 2, "train");
  Try(first);
  EXPECT_EQ(Plan(), "plan");
  const std::string gone = EvictAll();
  Leave(gone == "one" ? one : two);
  ASSERT_TRUE(Place(first, "n1"));
  EXPECT_EQ(Try(second), "WaitingForQuota");
  EXPECT_EQ(Plan(), "blocked");
  const auto explained = engine_.Explain(second.name, now_);
  ASSERT_TRUE(explained && explained->blocked);
  EXPECT_EQ(explained->blocked->reason, Reason::kEvictionBudget);
  EXPECT_EQ(explained->blocked->until, now_ + Hours(1));
  Pass(Hours(1));
  EXPECT_EQ(Plan(), "plan");
}

TEST_F(Teams, DisruptionBudgetsHold) {
  Run(Pod("a", "own", 4, "train"), "n1");
  Pass(Minutes(1));
  Run(Pod("a", "kept", 2, "train"), "n1");
  Run(Pod("a", "loose", 2, "train"), "n1");
  DisruptionBudget budget;
  budget.ns = "a";
  budget.name = "pdb";
  budget.selector = LabelSelector{{{"app", "kept"}}, {}};
  engine_.SetDisruptionBudget(budget, now_);
  const PodRequest wants = Pod("b", "wants", 4, "train");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "blocked");
  EXPECT_EQ(engine_.Explain(wants.name, now_)->blocked->reason, Reason::kPdbBlocked);
  const PodRequest less = Pod("b", "less", 2, "train");
  EXPECT_EQ(Try(less), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan impossible") << "with less placed, the other would borrow";
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/1 for less from loose"));
}

TEST_F(Teams, RefusedEvictionsAreNotInsistedOn) {
  Run(Pod("a", "own", 4, "train"), "n1");
  Pass(Minutes(1));
  Run(Pod("a", "one", 4, "train"), "n1");
  const PodRequest wants = Pod("b", "wants", 4, "train");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(Evict(EvictionOutcome::kBlocked), "one");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Aborted(PDBBlocked) 0/1 for wants from one"));
  EXPECT_EQ(Plan(), "blocked");
  EXPECT_EQ(engine_.Explain(wants.name, now_)->blocked->reason, Reason::kPdbBlocked);
  Pass(std::chrono::seconds(11));
  EXPECT_EQ(Plan(), "plan") << "the budget is asked again";
  EXPECT_EQ(Evict(EvictionOutcome::kFailed), "one");
  EXPECT_EQ(Evict(), "nobody");
  Pass(std::chrono::seconds(2));
  Plan();
  EXPECT_EQ(Evict(), "one") << "a lost answer is asked for again";
}

TEST_F(Teams, ReservationThatNobodyComesForEnds) {
  const PodRequest lent = Pod("a", "lent", 8, "train");
  Run(lent, "n1");
  const PodRequest wants = Pod("b", "wants", 4, "train");
  Try(wants);
  EXPECT_EQ(Plan(), "plan");
  EvictAll();
  Leave(lent);
  EXPECT_EQ(Try(Pod("a", "again", 8, "train")), "WaitingForQuota");
  Pass(Minutes(3));
  Plan();
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Aborted(Unclaimed) 1/1 for wants from lent"));
  EXPECT_EQ(Try(Pod("a", "again", 8, "train")), "n1");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(Teams, OwnerThatWasEvictedComesBackFirst) {
  Run(Pod("a", "own", 4, "train"), "n1");
  Pass(Minutes(1));
  const PodRequest lent = Pod("a", "lent", 4, "train");
  Run(lent, "n1", "job-1");
  const PodRequest wants = Pod("b", "wants", 4, "train");
  Try(wants);
  Plan();
  EXPECT_EQ(EvictAll(), "lent");
  Leave(lent);
  ASSERT_TRUE(Place(wants, "n1"));
  const PodRequest rival = Pod("a", "rival", 4, "train"), back = Pod("a", "back", 4, "train");
  EXPECT_EQ(Try(rival), "WaitingForQuota");
  Pass(Minutes(1));
  PodFacts pod = test::Pending(back);
  pod.owner = "job-1";
  engine_.UpsertPod(pod, now_);
  EXPECT_EQ(Filter(back).size(), 0U);
  engine_.DeletePod(wants.uid, now_);
  EXPECT_THAT(Requeued(), testing::Contains("back"));
  EXPECT_EQ(Try(rival), "YieldingTo");
  engine_.UpsertPod(pod, now_);
  EXPECT_EQ(Filter(back).size(), 1U);
}

}  // namespace THIS_FILE
}  // namespace tranche
