// How reclaims end: what is left behind for those who come after, and for kube-scheduler.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using std::chrono::seconds;
using test::Class;
using test::Minutes;
using test::Quota;
using test::StockNode;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// 8 H100, of which team a owns 2 and team b 6. One Deployment of a runs on all of them.
class ReclaimEnds : public EngineReclaimTest {
 protected:
  void SetUp() override {
    Nodes({StockNode("n1", 8)});
    Declare({.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "2"),
                        Quota("team-b").Under("org").Owns("b").Line("h100", "6")},
             .classes = {Class("train", 2)}});
    for (int i = 0; i < 8; ++i) {
      Run(Deployed(i), "n1", "a/web");
      Pass(seconds(1));
    }
    Pass(Minutes(10));
  }
  static PodRequest Deployed(int number) {
    return Pod("a", "web-" + std::to_string(number), 1, "train");
  }
  static PodRequest Wanted(int number) {
    return Pod("b", "wants-" + std::to_string(number), 1, "train");
  }
  void Want(int pods) {
    for (int i = 0; i < pods; ++i) EXPECT_EQ(Try(Wanted(i)), "WaitingForQuota");
  }
  void AllowToGo(int64_t pods) {
    DisruptionBudget budget;
    budget.ns = "a";
    budget.name = "pdb";
    budget.selector.emplace();
    budget.allowed = pods;
    engine_.SetDisruptionBudget(budget, now_);
  }
  std::vector<std::string> Phases() {
    std::vector<std::string> phases;
    for (const Reclaim& reclaim : engine_.Reclaims())
      phases.emplace_back(ReclaimPhaseName(reclaim.phase));
    return phases;
  }
};

TEST_F(ReclaimEnds, PlansOfOneRoundTakeFromOneOwnerAndDoNotUndoEachOther) {
  Want(6);
  EXPECT_EQ(Plan(), "plan plan plan plan plan plan");
  EXPECT_EQ(EvictAll(), "web-7 web-6 web-5 web-4 web-3 web-2")
      << "each waits for the answer to the one before, and no longer";
  Pass(seconds(1));
  Plan();
  EXPECT_EQ(Evict(), "nobody");
  EXPECT_THAT(Phases(), Each("Evicting"));
  for (int i = 2; i < 8; ++i) Leave(Deployed(i));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Place(Wanted(i), "n1")) << i;
  EXPECT_THAT(Phases(), Each("Done"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(ReclaimEnds, WhatTheOwnerStartsAgainIsLeftAloneForAWhile) {
  Want(1);
  Plan();
  EXPECT_EQ(EvictAll(), "web-7");
  Leave(Deployed(7));
  ASSERT_TRUE(Place(Wanted(0), "n1"));
  Pass(seconds(1));
  engine_.DeletePod(Wanted(0).uid, now_);
  Run(Deployed(9), "n1", "a/web");
  Pass(seconds(1));
  EXPECT_EQ(Try(Wanted(1)), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "web-6") << "web-9 is the newest";
}

TEST_F(ReclaimEnds, ABudgetIsPromisedOnce) {
  AllowToGo(1);
  Want(3);
  EXPECT_EQ(Plan(), "plan blocked");
  EXPECT_EQ(engine_.Explain(Wanted(2).name, now_)->blocked->reason, Reason::kPdbBlocked);
  EXPECT_THAT(engine_.Explain(Wanted(2).name, now_)->blocked->detail,
              HasSubstr("PodDisruptionBudget"));
  EXPECT_EQ(EvictAll(), "web-7");
  AllowToGo(0);
  Leave(Deployed(7));
  EXPECT_TRUE(Place(Wanted(0), "n1"));
  AllowToGo(1);
  Pass(seconds(1));
  EXPECT_EQ(Plan(), "plan blocked");
  EXPECT_EQ(EvictAll(), "web-6");
}

TEST_F(ReclaimEnds, KubeSchedulerIsToldWhenTheRoomIsOnItsWayAndToldAgainAtEveryEnd) {
  Want(2);
  Plan();
  EXPECT_THAT(nominated_, IsEmpty());
  EXPECT_EQ(Evict(), "web-7");
  EXPECT_THAT(nominated_, ElementsAre(std::pair("wants-0", "n1")));
  Pass(seconds(1));
  EXPECT_EQ(Evict(), "web-6");
  EXPECT_THAT(nominated_, ElementsAre(std::pair("wants-0", "n1"), std::pair("wants-1", "n1")));
  Leave(Deployed(7));
  EXPECT_EQ(nominated_["wants-1"], "")
      << "it would stand in the way of the one whose room is there";
  EXPECT_EQ(nominated_["wants-0"], "n1");
  EXPECT_TRUE(Place(Wanted(0), "n1"));
  Collect();
  EXPECT_EQ(nominated_["wants-1"], "n1");
  Leave(Deployed(6));
  Pass(Minutes(3));
  Collect();
  EXPECT_THAT(Phases(), UnorderedElementsAre("Done", "Aborted"));
  EXPECT_EQ(nominated_["wants-1"], "") << "it did not come";
  EXPECT_EQ(nominated_["wants-0"], "n1") << "it has come";
}

TEST_F(ReclaimEnds, NominationsThatNothingExplainsAreTakenBackAtAStart) {
  PodFacts stale = test::Pending(Wanted(0));
  stale.nominated = NodeName("n1");
  Engine after{EngineOptions{}};
  after.UpsertNode(StockNode("n1", 8), now_);
  after.SetPolicies(test::Declare({.classes = {Class("train", 2)}}), Defaults(), now_);
  for (const auto& [uid, pod] : running_) after.UpsertPod(pod, now_);
  after.UpsertPod(stale, now_);
  after.UpsertPod(test::Pending(Wanted(1)), now_);
  after.FinishRestore(now_);
  std::vector<Nomination> told = std::exchange(after.effects().reclaims, {}).nominations;
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].uid, Wanted(0).uid);
  EXPECT_TRUE(told[0].node.empty());
}

TEST_F(ReclaimEnds, RoomThatWasMadeIsGivenUpWithItsMachine) {
  Want(1);
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "web-7");
  Leave(Deployed(7));
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Reserved 1/1 for wants-0 from web-7"));
  EXPECT_EQ(nominated_["wants-0"], "n1");
  engine_.DeleteNode(NodeName("n1"), now_);
  Collect();
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Aborted(Changed) 1/1 for wants-0 from web-7"));
  EXPECT_EQ(nominated_["wants-0"], "");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
  // Those who ran there are not gone yet, and borrow as before.
  Nodes({StockNode("n2", 8)});
  EXPECT_EQ(Plan(), "fits");
  EXPECT_TRUE(Place(Wanted(0), "n2"));
}

TEST_F(ReclaimEnds, RoomThatIsMadeIsMadeAnewOnAnotherMachineOfThatName) {
  Want(1);
  EXPECT_EQ(Plan(), "plan");
  NodeFacts other = StockNode("n1", 8);
  other.uid = NodeUid("another");
  engine_.UpsertNode(other, now_);
  EXPECT_THAT(Phases(), ElementsAre("Aborted"));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Phases(), UnorderedElementsAre("Aborted", "Evicting"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(ReclaimEnds, RoomOfANominatedPodIsGivenUpWithItsMachine) {
  engine_.FinishRestore(now_);
  PodFacts leaves = running_.at(Deployed(7).uid);
  leaves.terminating = true;
  leaves.deletion_at = now_ + seconds(30);
  engine_.UpsertPod(leaves, now_);
  PodFacts waits = test::Pending(Wanted(0));
  waits.nominated = NodeName("n1");
  engine_.UpsertPod(waits, now_);
  Leave(Deployed(7));
  EXPECT_EQ(Try(Pod("c", "other", 1)), "NoRoom");
  NodeFacts other = StockNode("n1", 8);
  other.uid = NodeUid("another");
  engine_.UpsertNode(other, now_);
  EXPECT_EQ(Try(Pod("c", "other", 1)), "n1");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(ReclaimEnds, RoomThatIsKeptMovesToWhereItAppeared) {
  const PodRequest wants = Pod("b", "wants", 3, "train");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  ASSERT_EQ(engine_.Reclaims()[0].victims.size(), 3U);
  // The two oldest end while the first is asked: two others are spared, and keep their cards.
  Leave(Deployed(0));
  Leave(Deployed(1));
  const std::string first = EvictAll();
  Leave(Deployed(5));
  EXPECT_EQ(first, "web-5");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Reserved 1/1 for wants from web-5"));
  EXPECT_EQ(Try(Pod("c", "thief", 1)), "NoRoom");
  EXPECT_TRUE(Place(wants, "n1"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

// Two machines.
class Promises : public EngineReclaimTest {
 protected:
  void SetUp() override { Nodes({StockNode("n1", 8), StockNode("n2", 8)}); }
};

// Of the ten that team a owns "old" and "small" fill seven. "low" would be in quota in the place of
// "old" if "mid" were gone; as long as that is only planned nobody counts on it.
TEST_F(Promises, NobodyInQuotaGoesBecauseAnotherPlanIsToTakeSomebody) {
  Nodes({StockNode("n3", 8)});
  Declare({.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "10"),
                      Quota("team-b").Under("org").Owns("b").Line("h100", "9"),
                      Quota("team-c").Under("org").Owns("c").Line("h100", "8")},
           .classes = {Class("train", 2), Class("batch", 1)}});
  Run(Pod("c", "c1", 3, "train"), "n1");
  Run(Pod("c", "c2", 2, "train"), "n2");
  Run(Pod("c", "c3", 3, "train"), "n3");
  for (const auto& [pod, node] : {std::pair(Pod("a", "old", 5, "train"), "n1"),
                                  std::pair(Pod("a", "small", 2, "train"), "n2"),
                                  std::pair(Pod("a", "mid", 4, "train"), "n2"),
                                  std::pair(Pod("a", "low", 5, "batch"), "n3")}) {
    Run(pod, node);
    Pass(Minutes(1));
  }
  PodFacts& low = running_.at(Pod("a", "low", 5, "batch").uid);
  low.evictable = false;
  engine_.UpsertPod(low, now_);
  Pass(Minutes(30));
  Try(Pod("b", "first", 4, "train"));
  Pass(seconds(1));
  Try(Pod("b", "second", 5, "train"));
  EXPECT_EQ(Plan(), "plan impossible");
  EXPECT_EQ(Evict(EvictionOutcome::kBlocked), "mid");
  Pass(seconds(1));
  Plan();
  EXPECT_EQ(EvictAll(), "") << "mid stays";
  Pass(seconds(20));
  EXPECT_EQ(Plan(), "plan impossible");
  EXPECT_EQ(EvictAll(), "mid");
  Pass(seconds(1));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "old");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

// What is to start soon is no work yet: it stands for nobody who runs.
TEST_F(Promises, NobodyGoesForWhatATeamIsOnlyPromised) {
  const auto declare = [this](const char* of_b) {
    Declare({.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "2"),
                        Quota("team-b").Under("org").Owns("b").Line("h100", of_b),
                        Quota("team-c").Under("org").Owns("c").Line("h100", "10")},
             .classes = {Class("train", 2), Class("batch", 1)}});
  };
  declare("5");
  const PodRequest runs = Pod("b", "runs", 1, "train");
  Run(runs, "n1");
  Run(Pod("a", "has", 1, "train"), "n1");
  Run(Pod("c", "own", 6, "train"), "n1");
  Run(Pod("c", "more", 4, "train"), "n2");
  Pass(Minutes(1));
  Run(Pod("c", "borrowed", 4, "train"), "n2");
  Pass(Minutes(30));
  const PodRequest promised = Pod("b", "promised", 4, "batch");
  Try(promised);
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(Evict(EvictionOutcome::kAccepted, Minutes(10)), "borrowed");
  // Four are promised to the team and one runs, of four that it owns now.
  declare("4");
  Try(Pod("a", "wants", 1, "train"));
  Plan();
  EXPECT_EQ(EvictAll(), "") << "the one that runs is within what its team owns";
}

}  // namespace THIS_FILE
}  // namespace tranche
