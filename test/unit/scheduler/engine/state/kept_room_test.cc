// What plans under way keep for waiting pods, from a state and plans alone.
#include "scheduler/engine/state/kept_room.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class KeptRoomTest : public testing::Test, protected test::StateRoom {
 protected:
  KeptRoomTest() {
    for (const char* name : {"n1", "n2"}) Node(test::StockNode(name, 4));
  }
  // Waits for its own victim, and devices are kept for it.
  Reclaim& Plan(const PodRequest& request, const std::string& node, const PodRequest& victim) {
    PodRecord& record = Wait(request);
    earmarks.PutEarmark(request.uid, record, DevicesOn(request, node), now);
    return UnderWay("for-" + request.name.name, request, node, {victim});
  }

  const PodRequest pod_ = TeamPod("a", "pod", 2), other_ = TeamPod("b", "other", 2);
  const PodRequest victim_ = TeamPod("b", "victim", 2), second_ = TeamPod("b", "second", 2);
};

TEST_F(KeptRoomTest, APodAwaitsTheNodeOfItsPlanUntilItIsPlaced) {
  EXPECT_EQ(kept.AwaitedNode(pod_.uid), kNoNode);
  Reclaim& reclaim = Plan(pod_, "n2", victim_);
  EXPECT_EQ(kept.AwaitedNode(pod_.uid), IdOf("n2"));
  EXPECT_EQ(kept.AwaitedNode(victim_.uid), kNoNode);
  reclaim.members[0].placed = true;
  EXPECT_EQ(kept.AwaitedNode(pod_.uid), kNoNode);
}

TEST_F(KeptRoomTest, APodAwaitsTheNodeKubeSchedulerMakesRoomOn) {
  Wait(pod_).traits.nominated = NodeName("n1");
  EXPECT_EQ(kept.AwaitedNode(pod_.uid), kNoNode) << "a nomination alone keeps nothing";
  reclaims.nominated_until[pod_.uid] = now;
  EXPECT_EQ(kept.AwaitedNode(pod_.uid), IdOf("n1"));
}

TEST_F(KeptRoomTest, RoomIsReservedOnceEveryVictimIsGone) {
  Reclaim& reclaim = Plan(pod_, "n1", victim_);
  EXPECT_FALSE(kept.IsReserved(pod_.uid, NodeName("n1")));
  reclaim.phase = ReclaimPhase::kReserved;
  EXPECT_TRUE(kept.IsReserved(pod_.uid, NodeName("n1")));
  EXPECT_FALSE(kept.IsReserved(pod_.uid, NodeName("n2")));
  EXPECT_FALSE(kept.IsReserved(other_.uid, NodeName("n1")));
}

// Others whose victims have not left count on room that a pod without victims may take.
TEST_F(KeptRoomTest, PlansWhoseVictimsAreStillThereShareTheRoom) {
  Reclaim& own = Plan(pod_, "n1", victim_);
  Reclaim& others = Plan(other_, "n2", second_);
  EXPECT_THAT(kept.SharesWith(pod_.uid), IsEmpty()) << "its own victim is still there";
  own.victims[0].gone_at = now;
  EXPECT_THAT(kept.SharesWith(pod_.uid), ElementsAre(Pair(other_.uid, NodeName("n2"))));
  EXPECT_THAT(kept.SharesWith(victim_.uid), IsEmpty());
  others.phase = ReclaimPhase::kReserved;
  EXPECT_THAT(kept.SharesWith(pod_.uid), IsEmpty()) << "the room of the other one is its own";
}

TEST_F(KeptRoomTest, ATerminatingPodIsExpectedToLeaveForAMinuteAfterItsGrace) {
  PodRecord& record = Wait(victim_);
  EXPECT_FALSE(IsLeaving(record, now));
  record.traits.leaves_at = now + Millis(30'000);
  EXPECT_TRUE(IsLeaving(record, now));
  EXPECT_TRUE(IsLeaving(record, now + Millis(90'000)));
  EXPECT_FALSE(IsLeaving(record, now + Millis(90'001)));
}

}  // namespace THIS_FILE
}  // namespace tranche
