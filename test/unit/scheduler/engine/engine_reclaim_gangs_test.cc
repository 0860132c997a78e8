// A gang is one victim: evicted whole or not at all, whatever happens between two of its pods.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using std::chrono::seconds;
using test::Class;
using test::DayBudget;
using test::Minutes;
using test::Quota;
using test::StockNode;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

// 16 H100, each team owns 8. Team a runs 8 of its own, 4 of them beside a gang that it borrows for;
// team b runs 4, and wants 4 more.
class GangVictims : public EngineReclaimTest {
 protected:
  void SetUp() override {
    Nodes({StockNode("n1", 8), StockNode("n2", 8)});
    Declare({.quotas = Teams(), .classes = Classes()});
    Run(own_, "n1");
    Run(Pod("b", "theirs", 4, "train"), "n1");
    Run(beside_, "n2");
    Pass(Minutes(1));
  }
  static std::vector<GpuQuota> Teams() {
    return {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "8"),
            Quota("team-b").Under("org").Owns("b").Line("h100", "8")};
  }
  static std::vector<GpuClass> Classes() {
    return {Class("serve", 3, Preemptible::kNever), Class("high", 3), Class("train", 2),
            Class("low", 1)};
  }
  static PodRequest Member(const std::string& gang, int number, int size, int64_t gpus = 1) {
    PodRequest request = Pod("a", gang + "-" + std::to_string(number), gpus, "train");
    request.gang = gang;
    request.gang_size = size;
    return request;
  }
  void RunGang(const std::vector<PodRequest>& members, const std::string& node = "n2") {
    for (const PodRequest& member : members) engine_.UpsertPod(test::Pending(member), now_);
    for (const PodRequest& member : members) Run(member, node);
  }
  void PlanFor(const PodRequest& wants) {
    EXPECT_EQ(Try(wants), "WaitingForQuota");
    EXPECT_EQ(Plan(), "plan");
  }
  // g of 2 x 2 GPUs on n2, and a plan for a pod of 4.
  void PlanToTakeThePair() {
    RunGang(pair_);
    PlanFor(wants_);
    ASSERT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/2 for wants from g-1 g-2"));
  }
  void KeepFromGoing(const std::string& pod) {
    DisruptionBudget budget;
    budget.ns = "a";
    budget.name = "pdb";
    budget.selector = LabelSelector{{{"app", pod}}, {}};
    engine_.SetDisruptionBudget(budget, now_);
  }
  // The server as it is, read by a process that starts now.
  std::unique_ptr<Engine> Restarted(const std::vector<Reclaim>& records) {
    auto engine = std::make_unique<Engine>(EngineOptions{});
    for (const auto& node : {StockNode("n1", 8), StockNode("n2", 8)})
      engine->UpsertNode(node, now_);
    engine->SetPolicies(test::Declare({.quotas = Teams(), .classes = Classes()}), Defaults(), now_);
    for (const auto& [uid, pod] : running_) engine->UpsertPod(pod, now_);
    engine->UpsertPod(test::Pending(wants_), now_);
    engine->RestoreReclaims(records);
    engine->FinishRestore(now_);
    return engine;
  }
  static std::vector<std::string> AskedBy(Engine& engine) {
    std::vector<std::string> names;
    for (const EvictionOrder& order : std::exchange(engine.effects().reclaims, {}).evictions)
      names.push_back(order.pod.name);
    return names;
  }

  const PodRequest own_ = Pod("a", "own", 4, "train"), beside_ = Pod("a", "beside", 4, "train");
  const PodRequest wants_ = Pod("b", "wants", 4, "train");
  const std::vector<PodRequest> pair_ = {Member("g", 1, 2, 2), Member("g", 2, 2, 2)};
};

TEST_F(GangVictims, RoomThatAppearsAfterTheFirstEvictionSparesNoneOfTheGang) {
  PlanToTakeThePair();
  Leave(beside_);
  EXPECT_EQ(EvictAll(), "g-1 g-2");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

// With no time to end its removal may be heard of before the answer to its eviction.
TEST_F(GangVictims, OneThatIsGoneBeforeTheAnswerTakesTheRestAlong) {
  PlanToTakeThePair();
  Leave(beside_);
  const EvictionOrder order = evictions_.front();
  evictions_.erase(evictions_.begin());
  Leave(pair_[0]);
  engine_.SettleEviction(order.reclaim, order.uid, EvictionOutcome::kAccepted, std::nullopt, now_);
  EXPECT_EQ(EvictAll(), "g-2");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(GangVictims, ASecondGangIsSparedWhole) {
  RunGang({Member("g", 1, 2), Member("g", 2, 2)});
  RunGang({Member("h", 1, 2), Member("h", 2, 2)});
  PlanFor(wants_);
  ASSERT_EQ(engine_.Reclaims()[0].victims.size(), 4U);
  Leave(beside_);
  EXPECT_EQ(EvictAll(), "g-1 g-2");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/2 for wants from g-1 g-2"));
}

TEST_F(GangVictims, PodsThatAGangCanDoWithoutAreSparedOneByOne) {
  std::vector<PodRequest> elastic;
  for (int i = 1; i <= 4; ++i) elastic.push_back(Member("g", i, 1));
  RunGang(elastic);
  const PodRequest wants = Pod("b", "wants", 3, "train");
  PlanFor(wants);
  ASSERT_EQ(engine_.Reclaims()[0].victims.size(), 3U);
  Leave(beside_);
  EXPECT_EQ(EvictAll(), "g-1");
}

TEST_F(GangVictims, AGangThatEndsByItselfIsWaitedForNoLonger) {
  PlanToTakeThePair();
  EXPECT_EQ(Evict(), "g-1");
  Leave(pair_[1]);
  Leave(pair_[0]);
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Reserved 2/2 for wants from g-1 g-2"));
}

TEST_F(GangVictims, TheRestGoesWhenTheWaitingPodIsGone) {
  PlanToTakeThePair();
  EXPECT_EQ(Evict(), "g-1");
  engine_.DeletePod(wants_.uid, now_);
  EXPECT_THAT(Reclaims(), Contains("R1 Aborted(PreemptorGone) 0/2 for wants from g-1 g-2"));
  EXPECT_THAT(Reclaims(), Contains("Gang Evicting 0/1 for a/g from g-2"));
  evictions_.erase(evictions_.begin());  // asked before, of a plan that is no more
  EXPECT_EQ(EvictAll(), "g-2");
  for (const PodRequest& member : pair_) Leave(member);
  EXPECT_THAT(Reclaims(), Contains("Gang Done 1/1 for a/g from g-2"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(GangVictims, AnEvictionThatWasUnderWayWhenThePlanEndedTakesTheRestAlong) {
  PlanToTakeThePair();
  engine_.DeletePod(wants_.uid, now_);
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Aborted(PreemptorGone) 0/2 for wants from g-1 g-2"));
  EXPECT_EQ(EvictAll(), "g-1 g-2");
}

// No plan would have taken the gang with it.
TEST_F(GangVictims, AMemberThatIsNeverPreemptedAndCameMeanwhileStays) {
  const PodRequest one = Member("g", 1, 0, 2), two = Member("g", 2, 0, 2);
  RunGang({one, two});
  PlanFor(wants_);
  engine_.DeletePod(wants_.uid, now_);  // g-1 was asked before
  Leave(own_);
  PodRequest serves = Member("g", 3, 0, 1);
  serves.priority_class = "serve";
  Run(serves, "n1");
  Pass(seconds(1));
  EXPECT_EQ(EvictAll(), "g-1 g-2");
}

TEST_F(GangVictims, WhoseClassIsMadeOneThatIsNeverPreemptedIsAskedNoMore) {
  std::vector<PodRequest> members = {Member("g", 1, 3, 2), Member("g", 2, 3), Member("g", 3, 3)};
  members[1].priority_class = "low";
  RunGang(members);
  PlanFor(wants_);
  EXPECT_EQ(Evict(), "g-1");
  EXPECT_EQ(Evict(EvictionOutcome::kBlocked), "g-2");
  Declare(
      {.quotas = Teams(), .classes = {Class("train", 2), Class("low", 1, Preemptible::kNever)}});
  Pass(seconds(10));
  EXPECT_EQ(EvictAll(), "g-3");
}

TEST_F(GangVictims, NobodyIsAskedAnyMoreWhereTheFirstOneWasNotTaken) {
  PlanToTakeThePair();
  EXPECT_EQ(Evict(EvictionOutcome::kBlocked), "g-1");
  EXPECT_EQ(Evict(), "nobody");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Aborted(PDBBlocked) 0/2 for wants from g-1 g-2"));
}

TEST_F(GangVictims, ABudgetThatRefusesTheSecondIsAskedAgain) {
  PlanToTakeThePair();
  EXPECT_EQ(Evict(), "g-1");
  EXPECT_EQ(Evict(EvictionOutcome::kBlocked), "g-2");
  EXPECT_EQ(Evict(), "nobody");
  EXPECT_EQ(engine_.Tick(now_), now_ + seconds(10));
  Pass(seconds(10));
  EXPECT_EQ(Evict(), "g-2");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Evicting 0/2 for wants from g-1 g-2"));
}

TEST_F(GangVictims, WhereItGoesOnRefusingTheRoomIsGivenBackAndTheRestGoesWhenItMay) {
  PlanToTakeThePair();
  EXPECT_EQ(Evict(), "g-1");
  Leave(pair_[0]);
  for (Millis waited{0}; waited < Minutes(10); waited += seconds(10)) {
    EXPECT_EQ(Evict(EvictionOutcome::kBlocked), "g-2");
    Pass(seconds(10));
  }
  EXPECT_EQ(Evict(EvictionOutcome::kBlocked), "g-2");
  EXPECT_THAT(Reclaims(), Contains("R1 Aborted(PDBBlocked) 1/2 for wants from g-1 g-2"));
  EXPECT_EQ(Evict(EvictionOutcome::kForbidden), "g-2");
  Pass(Minutes(1));
  EXPECT_EQ(EvictAll(), "g-2");
  EXPECT_THAT(Reclaims(), Contains("Gang Evicting 0/1 for a/g from g-2"));
}

TEST_F(GangVictims, NoGangIsBegunWhoseBudgetsDoNotAllowAllOfIt) {
  RunGang({Member("g", 1, 2), Member("g", 2, 2)});
  RunGang({Member("h", 1, 2), Member("h", 2, 2)});
  PlanFor(wants_);
  EXPECT_EQ(Evict(), "g-1");
  EXPECT_EQ(Evict(), "g-2");
  ASSERT_EQ(evictions_.size(), 1U);
  EXPECT_EQ(evictions_[0].pod.name, "h-1") << "asked while nothing stood in the way";

  KeepFromGoing("h-1");
  EXPECT_EQ(Evict(EvictionOutcome::kFailed), "h-1");
  Pass(seconds(1));
  EXPECT_EQ(Evict(EvictionOutcome::kBlocked), "h-1") << "it may have gone: that is to be known";
  EXPECT_EQ(Evict(), "nobody");
  EXPECT_THAT(Reclaims(), ElementsAre("R1 Aborted(PDBBlocked) 0/4 for wants from g-1 g-2 h-1 h-2"));
}

TEST_F(GangVictims, ARestartBetweenTwoOfThemGoesOn) {
  PlanToTakeThePair();
  EXPECT_EQ(Evict(), "g-1");
  running_.erase(beside_.uid);  // room enough without the second
  const auto after = Restarted(engine_.Reclaims());
  EXPECT_THAT(AskedBy(*after), ElementsAre("g-2"));
}

TEST_F(GangVictims, ARestartRightAfterAPlanWasGivenUpGoesOnWithTheRest) {
  PlanToTakeThePair();
  EXPECT_EQ(Evict(), "g-1");
  engine_.DeletePod(wants_.uid, now_);
  std::vector<Reclaim> records = engine_.Reclaims();
  std::erase_if(records, [](const Reclaim& one) { return one.rule == ReclaimRule::kGang; });
  Pass(seconds(20));
  EXPECT_THAT(AskedBy(*Restarted(records)), ElementsAre("g-2"));
  running_.erase(pair_[1].uid);
  PodFacts again = running_.at(pair_[0].uid);
  again.request = Member("g", 3, 2, 2);
  again.bound_at = now_;
  again.terminating = false;
  running_[again.request.uid] = again;
  EXPECT_THAT(AskedBy(*Restarted(records)), IsEmpty()) << "one that came in its place";
}

TEST_F(GangVictims, WhoComesInPlaceOfOneWaitsUntilAllHaveGone) {
  PlanToTakeThePair();
  EXPECT_EQ(Evict(), "g-1");
  EXPECT_EQ(Try(Member("g", 3, 2, 2)), "GangIncomplete");
  EXPECT_THAT(View(Member("g", 3, 2, 2)).detail, testing::HasSubstr("being evicted"));
  EXPECT_EQ(Bind(Member("g", 3, 2, 2), "n1").reason, Reason::kGangIncomplete);
  EXPECT_EQ(EvictAll(), "g-2");
  for (const PodRequest& member : pair_) Leave(member);
  EXPECT_TRUE(Place(wants_, "n2"));
  EXPECT_EQ(Try(Member("g", 3, 2, 2)), "GangIncomplete");
  engine_.UpsertPod(test::Pending(Member("g", 4, 2, 2)), now_);
  Leave(beside_);
  EXPECT_EQ(Try(Member("g", 3, 2, 2)), "n2") << "it comes back whole";
}

// One pod that no rule may take keeps all of its gang.
TEST_F(GangVictims, AGangOfSeveralRanksGoesForNoneBetweenThem) {
  PodRequest driver = Member("g", 1, 2, 2), worker = Member("g", 2, 2, 2);
  driver.priority_class = "high";
  worker.priority_class = "low";
  RunGang({driver, worker});
  EXPECT_EQ(Try(Pod("a", "wants-too", 2, "train")), "WaitingForQuota");
  EXPECT_EQ(Plan(), "impossible");
}

TEST_F(GangVictims, ABudgetDrainsWholeGangs) {
  Declare({.quotas = Teams(),
           .budgets = {DayBudget("team-a", 4, OnExhaustion::kDrain)},
           .classes = Classes()});
  RunGang(pair_);
  KeepFromGoing("g-2");
  Pass(Minutes(70));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "beside own") << "one of the pair is protected, and so is the other";
  engine_.RemoveDisruptionBudget({"a", "pdb"});
  Pass(seconds(10));
  Plan();
  EXPECT_EQ(EvictAll(), "g-1 g-2");
}

}  // namespace THIS_FILE
}  // namespace tranche
