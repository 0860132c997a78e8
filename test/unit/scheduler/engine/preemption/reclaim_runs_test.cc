// Reclaims under way, eviction by eviction: from the parts left of them alone.
#include "scheduler/engine/preemption/reclaim_runs.h"

#include <functional>

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;

// A machine of 8; each team owns 4. Team a runs 4 of its own and lends to two pods of 2; team b
// wants its 4 back, and a plan for that has begun.
class ReclaimRunsTest : public testing::Test, protected test::PreemptionRoom {
 protected:
  ReclaimRunsTest() {
    Node(test::StockNode("n1", 8));
    Node(test::StockNode("n2", 8));
    Declare({.quotas = test::TwoTeams(), .classes = {Class("train", 2)}});
    Runs(TeamPod("a", "own", 4, "train"), "n1");
    now = At(60);
    Runs(one_, "n1");
    Runs(two_, "n1");
    Hungry(wants_);
  }
  Reclaim& Begin() {
    Reclaim reclaim;
    reclaim.name = "plan";
    reclaim.rule = ReclaimRule::kR1;
    reclaim.members.push_back({wants_.name, wants_.uid, NodeName("n1")});
    for (const PodRequest& victim : {one_, two_})
      reclaim.victims.push_back(runs_.VictimOf(victim.uid, 0, now));
    PodRecord& record = *cluster.Find(wants_.uid);
    preemptors.Forget(wants_.uid);
    Earmark kept_devices = DevicesOn(wants_, "n2");  // as many as on n1, where victims hold them
    kept_devices.node = NodeName("n1");
    for (std::size_t i = 0; i < 4; ++i)
      kept_devices.allocation.containers[0].devices[i].card = 4 + static_cast<int>(i);
    earmarks.PutEarmark(wants_.uid, record, kept_devices, now);
    runs_.Begin(std::move(reclaim), now);
    return reclaims.all.at("plan");
  }
  // Evictions asked of the API server since the last call, by pod.
  std::vector<std::string> Asked() {
    std::vector<std::string> names;
    for (const EvictionOrder& order : std::exchange(cluster.outbox.reclaims().evictions, {}))
      names.push_back(order.pod.name);
    return names;
  }
  void Settle(const PodRequest& victim, EvictionOutcome outcome) {
    if (outcome == EvictionOutcome::kAccepted)
      cluster.Find(victim.uid)->traits.leaves_at = now + Millis(30'000);
    runs_.Settle("plan", victim.uid, outcome, std::nullopt, now);
  }
  void Gone(const PodRequest& victim) {
    End(victim);
    runs_.NoteVictimGone(victim.uid, now);
  }
  void EvictBoth() {
    for (const PodRequest& victim : {one_, two_}) Settle(victim, EvictionOutcome::kAccepted);
    for (const PodRequest& victim : {one_, two_}) Gone(victim);
  }
  // The preemptor has come to a node, with whatever devices.
  void Binds(const std::string& node) {
    PodRecord& record = *cluster.Find(wants_.uid);
    record.node = NodeName(node);
    runs_.NoteMemberPlaced(wants_.uid, record.node, now);
    record.node = NodeName();
  }
  static std::string Phase(const Reclaim& reclaim) {
    return std::string(ReclaimPhaseName(reclaim.phase)) +
           (reclaim.reason.empty() ? "" : " " + reclaim.reason);
  }

  ReclaimRuns runs_{plan_parts, reclaims,    earmarks, kept,      rules,
                    requeue,    nominations, gangs,    preemptors};
  const PodRequest one_ = TeamPod("a", "one", 2, "train"), two_ = TeamPod("a", "two", 2, "train");
  const PodRequest wants_ = TeamPod("b", "wants", 4, "train");
};

TEST_F(ReclaimRunsTest, VictimsAreAskedOneByOneAndTheRoomIsReservedWhenAllAreGone) {
  const Reclaim& reclaim = Begin();
  EXPECT_THAT(Asked(), ElementsAre("one"));
  Settle(one_, EvictionOutcome::kAccepted);
  EXPECT_THAT(Asked(), ElementsAre("two"));
  Settle(two_, EvictionOutcome::kAccepted);
  EXPECT_THAT(Asked(), IsEmpty());
  Gone(one_);
  EXPECT_EQ(Phase(reclaim), "Evicting");
  EXPECT_THAT(Requeued(), IsEmpty());
  Gone(two_);
  EXPECT_EQ(Phase(reclaim), "Reserved");
  EXPECT_THAT(Requeued(), ElementsAre("wants"));
}

TEST_F(ReclaimRunsTest, HowAnEvictionEnds) {
  const struct {
    EvictionOutcome outcome;
    const char* phase;
    std::vector<std::string> asked;
  } cases[] = {
      {EvictionOutcome::kAccepted, "Evicting", {"two"}},
      {EvictionOutcome::kGone, "Evicting", {"two"}},
      {EvictionOutcome::kFailed, "Evicting", {}},
      {EvictionOutcome::kBlocked, "Aborted PDBBlocked", {}},
      {EvictionOutcome::kForbidden, "Aborted Forbidden", {}},
  };
  for (const auto& row : cases) {
    reclaims.all.clear();
    const Reclaim& reclaim = Begin();
    Asked();
    Settle(one_, row.outcome);
    EXPECT_EQ(Phase(reclaim), row.phase);
    EXPECT_EQ(Asked(), row.asked) << row.phase;
    EXPECT_EQ(cluster.Find(wants_.uid)->earmark == nullptr, reclaim.finished()) << row.phase;
    runs_.NoteMemberGone(wants_.uid, now);
    cluster.Find(one_.uid)->traits.leaves_at.reset();
    reclaims.history = {};
  }
}

TEST_F(ReclaimRunsTest, AnAnswerThatWasLostIsAskedForAgain) {
  Begin();
  Asked();
  Settle(one_, EvictionOutcome::kFailed);
  EXPECT_EQ(runs_.Due(now), now + Millis(1'000));
  runs_.Tend(now + Millis(999));
  EXPECT_THAT(Asked(), IsEmpty());
  now += Millis(1'000);
  runs_.Tend(now);
  EXPECT_THAT(Asked(), ElementsAre("one"));
  Settle(one_, EvictionOutcome::kFailed);
  EXPECT_EQ(runs_.Due(now), now + Millis(2'000)) << "more slowly";
}

TEST_F(ReclaimRunsTest, APlanIsLookedAtAgainBeforeEachEviction) {
  const Reclaim& reclaim = Begin();
  Asked();
  End(TeamPod("a", "own", 4, "train"));  // now 4 are free, and nobody else has to go
  Settle(one_, EvictionOutcome::kAccepted);
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_EQ(reclaim.victims.size(), 1U) << "the other one is spared";
  EXPECT_FALSE(reclaims.of_victim.contains(two_.uid));
}

// It may be leaving already: its owner is to find the plan that names it.
TEST_F(ReclaimRunsTest, WhoseEvictionMayHaveHappenedIsNotSpared) {
  const Reclaim& reclaim = Begin();
  Asked();
  Settle(one_, EvictionOutcome::kFailed);
  End(TeamPod("a", "own", 4, "train"));  // now 4 are free
  now += Millis(1'000);
  runs_.Tend(now);
  ASSERT_EQ(reclaim.victims.size(), 1U) << "the other one is spared";
  EXPECT_EQ(reclaim.victims[0].uid, one_.uid);
  EXPECT_THAT(Asked(), ElementsAre("one"));
  Settle(one_, EvictionOutcome::kAccepted);
  Gone(one_);
  EXPECT_EQ(Phase(reclaim), "Reserved");
}

TEST_F(ReclaimRunsTest, WhereThePodGoesEndsItsPlan) {
  const struct {
    const char* what;
    std::function<void()> happens;
    const char* phase;
  } cases[] = {
      {"bound where its room is", [this] { Binds("n1"); }, "Done"},
      {"bound elsewhere, with victims still there", [this] { Binds("n2"); },
       "Aborted PlacedElsewhere"},
      {"gone", [this] { runs_.NoteMemberGone(wants_.uid, now); }, "Aborted PreemptorGone"},
  };
  for (const auto& row : cases) {
    reclaims.all.clear();
    const Reclaim& reclaim = Begin();
    row.happens();
    EXPECT_EQ(Phase(reclaim), row.phase) << row.what;
    EXPECT_THAT(reclaims.runs, IsEmpty()) << row.what;
    EXPECT_EQ(cluster.Find(wants_.uid)->earmark, nullptr) << row.what;
  }
}

// Its bind elsewhere is refused: its room is kept again, or the record says that it is gone.
TEST_F(ReclaimRunsTest, APodThatComesBackHasItsRoomOrNoPlan) {
  for (const bool stranger : {false, true}) {
    reclaims.all.clear();
    const Reclaim& reclaim = Begin();
    EvictBoth();
    ASSERT_EQ(Phase(reclaim), "Reserved");
    PodRecord& record = *cluster.Find(wants_.uid);
    earmarks.DropEarmark(wants_.uid, record, now);  // reserved on n2 meanwhile
    if (stranger) Runs(test::WholePod("stranger", 2), "n1");
    runs_.NoteMemberReturned(wants_.uid, now);
    EXPECT_EQ(Phase(reclaim), stranger ? "Aborted Changed" : "Reserved");
    EXPECT_EQ(record.earmark != nullptr, !stranger);
    if (!stranger) {
      Binds("n1");
      Runs(one_, "n1");
      Runs(two_, "n1");
    }
  }
}

// Found by seed 76756: the plan ended with the next bind, and its room went to others.
TEST_F(ReclaimRunsTest, APodThatComesBackHasStillToComeToItsPlace) {
  const Reclaim& reclaim = Begin();
  EvictBoth();
  const PodRequest mate = TeamPod("b", "mate", 1, "train");
  Hungry(mate);
  reclaims.all.at("plan").members.push_back({mate.name, mate.uid, NodeName("n2")});
  reclaims.of_member[mate.uid] = "plan";
  Binds("n1");
  EXPECT_EQ(Phase(reclaim), "Reserved") << "the other one has still to come";
  runs_.NoteMemberReturned(wants_.uid, now);
  runs_.NoteMemberPlaced(mate.uid, NodeName("n2"), now);
  EXPECT_EQ(Phase(reclaim), "Reserved");
  EXPECT_NE(cluster.Find(wants_.uid)->earmark, nullptr);
  Binds("n1");
  EXPECT_EQ(Phase(reclaim), "Done");
}

TEST_F(ReclaimRunsTest, RoomThatIsNotComeForIsGivenBackAndItsNodeAvoided) {
  const Reclaim& reclaim = Begin();
  EvictBoth();
  runs_.Tend(now + Millis(119'999));
  EXPECT_EQ(Phase(reclaim), "Reserved");
  now += Millis(120'000);
  runs_.Tend(now);
  EXPECT_EQ(Phase(reclaim), "Aborted Unclaimed");
  EXPECT_EQ(reclaims.avoided.at(wants_.uid).at(NodeName("n1")).until, now + test::Minutes(5));
}

TEST_F(ReclaimRunsTest, AVictimThatDoesNotLeaveEndsThePlan) {
  const Reclaim& reclaim = Begin();
  Settle(one_, EvictionOutcome::kAccepted);
  runs_.Tend(now + Millis(90'000));
  EXPECT_EQ(Phase(reclaim), "Evicting");
  runs_.Tend(now + Millis(90'001));
  EXPECT_EQ(Phase(reclaim), "Aborted VictimStuck");
}

TEST_F(ReclaimRunsTest, ARestartGoesOnWithTheRecordThatWasWritten) {
  Begin();
  Settle(one_, EvictionOutcome::kAccepted);
  Reclaim written = reclaims.all.at("plan"), empty = written;
  empty.name = "empty";
  empty.victims.clear();
  PodRecord& record = *cluster.Find(wants_.uid);
  earmarks.DropEarmark(wants_.uid, record, now);
  reclaims = {};
  Asked();
  runs_.Restore({empty, written});
  EXPECT_EQ(reclaims.history.Evictions("a/one", now), 1);
  runs_.Continue(now);
  EXPECT_EQ(Phase(reclaims.all.at("plan")), "Evicting");
  EXPECT_EQ(Phase(reclaims.all.at("empty")), "Aborted Changed");
  EXPECT_THAT(Asked(), ElementsAre("two"));
}

}  // namespace THIS_FILE
}  // namespace tranche
