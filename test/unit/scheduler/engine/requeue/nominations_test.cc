// Room for pods that kube-scheduler nominated, from the parts left of it alone.
#include "scheduler/engine/requeue/nominations.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::TeamPod;
using testing::ElementsAre;

// n1 is full; its pod may leave.
class NominationsTest : public testing::Test, protected test::SelectionRoom {
 protected:
  NominationsTest() {
    Node(test::StockNode("n1", 4));
    Node(test::StockNode("n2", 4));
    Runs(runs_, "n1");
    Wait(pod_, Reason::kNoRoom);
    cluster.cluster_complete = true;
  }
  PodRecord& Pod() { return *cluster.Find(pod_.uid); }
  void Leaves(Instant at) { cluster.Find(runs_.uid)->traits.leaves_at = at; }
  void Nominate(const std::string& node) {
    nominations_.Note(pod_.uid, Pod(), NodeName(node), now);
  }

  Requeuer requeue_{cluster, namespaces, rules, team_queue, selection, foreseen, kept};
  EarlyNominations early_{cluster, reclaims, rules, selection};
  Nominations nominations_{cluster, earmarks, reclaims, rules, requeue_, early_};
  const PodRequest runs_ = TeamPod("a", "runs", 4), pod_ = TeamPod("b", "pod", 4);
};

TEST_F(NominationsTest, RoomIsKeptOnlyWhereSomebodyLeaves) {
  Nominate("n1");
  EXPECT_EQ(Pod().earmark, nullptr);
  Leaves(At(30));
  nominations_.Keep(NodeName("n1"), now);
  ASSERT_NE(Pod().earmark, nullptr);
  EXPECT_EQ(Pod().earmark->node, NodeName("n1"));
  EXPECT_TRUE(Pod().earmark->work.parts.empty()) << "devices alone: bind asks quota";
  EXPECT_EQ(reclaims.nominated_until.at(pod_.uid), At(30) + cluster.options.reservation_ttl);
}

TEST_F(NominationsTest, NothingIsKeptBeforeEverybodyWasSeen) {
  cluster.cluster_complete = false;
  Leaves(At(30));
  Nominate("n1");
  EXPECT_EQ(Pod().earmark, nullptr);
  cluster.cluster_complete = true;
  nominations_.KeepAll(now);
  EXPECT_NE(Pod().earmark, nullptr);
}

TEST_F(NominationsTest, WhatIsTooLargeEvenThenKeepsNothing) {
  Leaves(At(30));
  const PodRequest large = TeamPod("b", "large", 5);
  PodRecord& record = Wait(large);
  nominations_.Note(large.uid, record, NodeName("n1"), now);
  EXPECT_EQ(record.earmark, nullptr);
}

TEST_F(NominationsTest, ANominationElsewhereGivesTheRoomToOthers) {
  Leaves(At(30));
  Nominate("n1");
  ASSERT_NE(Pod().earmark, nullptr);
  End(runs_);
  const PodRequest other = TeamPod("c", "other", 4);
  Wait(other, Reason::kNoRoom);
  requeue_.NoteRefused(other.uid, now);
  requeue_.NoteRoom(IdOf("n1"), now);
  EXPECT_THAT(Requeued(), testing::IsEmpty()) << "it is kept";
  Nominate("n2");
  EXPECT_EQ(Pod().earmark, nullptr) << "nobody leaves n2";
  EXPECT_FALSE(reclaims.nominated_until.contains(pod_.uid));
  EXPECT_FALSE(reclaims.nominated.contains(NodeName("n1")));
  EXPECT_THAT(Requeued(), ElementsAre("other"));
}

TEST_F(NominationsTest, NodesOfAPlanOfOursAreKeptByThePlan) {
  Leaves(At(30));
  UnderWay("plan", pod_, "n1", {runs_});
  Nominate("n1");
  EXPECT_EQ(Pod().earmark, nullptr);
  EXPECT_EQ(Pod().traits.nominated, NodeName("n1"));
  EXPECT_FALSE(reclaims.nominated.contains(NodeName("n1")));
}

}  // namespace THIS_FILE
}  // namespace tranche
