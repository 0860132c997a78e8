// The state alone: no verb, no team, no plan.
#include "scheduler/engine/state/cluster_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "scheduler/engine/state/earmarks.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using testing::ElementsAre;
using testing::IsEmpty;

class ClusterStateTest : public testing::Test {
 protected:
  ClusterStateTest() : state_(EngineOptions{}), node_(state_.InternNode(NodeName("n"))) {
    state_.nodes[node_]->state.SetFacts(test::StockNode("n", 2), 0, &state_.machines);
    state_.Refresh(node_, At(0));
  }

  // The pod, with devices of the node kept for it.
  PodRecord& Earmarked(const PodRequest& request) {
    PodRecord& record = state_.Touch(request);
    Picks picks(1);
    picks[0].milli = kWholeGpu;
    earmarks_.PutEarmark(request.uid, record,
                         earmarks_.EarmarkOf(node_, request, QuotaMembership(), picks, At(0)),
                         At(0));
    return record;
  }
  const Holding* Held(const PodRequest& request) const {
    return state_.nodes[node_]->state.Find(request.uid);
  }

  ClusterState state_;
  NodeId node_;
  Earmarks earmarks_{state_};
  const PodRequest pod_ = test::WholePod("pod", 1);
};

TEST_F(ClusterStateTest, RefreshRaisesTheVersionOnlyWhenTheNodeChanged) {
  const uint64_t before = state_.version();
  state_.Refresh(node_, At(1));
  EXPECT_EQ(state_.version(), before);
  NodeFacts cordoned = test::StockNode("n", 2);
  cordoned.cordoned = true;
  state_.nodes[node_]->state.SetFacts(cordoned, 0, &state_.machines);
  state_.Refresh(node_, At(2));
  EXPECT_GT(state_.version(), before);
  EXPECT_EQ(state_.hot[node_].closed, Reason::kNodeCordoned);
}

TEST_F(ClusterStateTest, RefreshedNodesAreHandedOutOnce) {
  state_.TakeRefreshed();
  state_.Refresh(node_, At(1));
  state_.Refresh(node_, At(1));
  EXPECT_THAT(state_.TakeRefreshed(), ElementsAre(node_));
  EXPECT_THAT(state_.TakeRefreshed(), IsEmpty());
}

TEST_F(ClusterStateTest, NodeThatIsGoneAndHoldsNothingIsForgotten) {
  state_.nodes[node_]->state.SetFacts(std::nullopt, 0);
  state_.Refresh(node_, At(1));
  EXPECT_EQ(state_.nodes[node_], nullptr);
  EXPECT_EQ(state_.names.Find("n"), kNoNode);
  EXPECT_EQ(state_.hot[node_].closed, Reason::kUnknownNode);
}

TEST_F(ClusterStateTest, ThreeRefusalsCloseTheNodeForAWhile) {
  for (int i = 0; i < 3; ++i) state_.NoteRefusal(NodeName("n"), At(i));
  EXPECT_EQ(state_.hot[node_].closed, Reason::kNodeRefusing);
  EXPECT_EQ(state_.reopenings.size(), 1u);
}

TEST_F(ClusterStateTest, PodIsKnownByUidAndNameUntilItIsErased) {
  PodRecord& record = state_.Touch(pod_);
  EXPECT_EQ(&record, &state_.Touch(pod_));
  record.seen = true;
  state_.NotePending(pod_.uid, record);
  EXPECT_THAT(state_.pending, ElementsAre(pod_.uid));
  state_.ErasePod(pod_.uid);
  EXPECT_EQ(state_.Find(pod_.uid), nullptr);
  EXPECT_THAT(state_.pods_by_name, IsEmpty());
  EXPECT_THAT(state_.pending, IsEmpty());
}

TEST_F(ClusterStateTest, EarmarkIsAHoldingUntilItIsDropped) {
  PodRecord& record = Earmarked(pod_);
  ASSERT_NE(Held(pod_), nullptr);
  EXPECT_EQ(Held(pod_)->kind, HoldingKind::kEarmark);
  earmarks_.DropEarmark(pod_.uid, record, At(1));
  EXPECT_EQ(Held(pod_), nullptr);
  EXPECT_EQ(record.earmark, nullptr);
}

TEST_F(ClusterStateTest, ScopedRemovalPutsTheEarmarkAndTheVersionBack) {
  const PodRecord& record = Earmarked(pod_);
  const uint64_t before = state_.version();
  {
    const ScopedRemoval removal(state_, pod_.uid, At(1), {});
    EXPECT_EQ(Held(pod_), nullptr);
    ASSERT_NE(removal.earmark(), nullptr);
    EXPECT_EQ(removal.earmark()->node, NodeName("n"));
  }
  EXPECT_NE(Held(pod_), nullptr);
  EXPECT_NE(record.earmark, nullptr);
  EXPECT_EQ(state_.version(), before);
}

TEST_F(ClusterStateTest, DiscardedEarmarkStaysAway) {
  const PodRecord& record = Earmarked(pod_);
  {
    ScopedRemoval removal(state_, pod_.uid, At(1), {});
    removal.Discard();
  }
  EXPECT_EQ(Held(pod_), nullptr);
  EXPECT_EQ(record.earmark, nullptr);
}

// A gang that loses its seats while one of its pods is asked about.
TEST_F(ClusterStateTest, AnEarmarkDroppedWhileItIsLiftedDoesNotComeBack) {
  PodRecord& record = Earmarked(pod_);
  {
    const ScopedRemoval removal(state_, pod_.uid, At(1), {});
    earmarks_.DropEarmark(pod_.uid, record, At(1));
  }
  EXPECT_EQ(Held(pod_), nullptr);
  EXPECT_EQ(record.earmark, nullptr);
  EXPECT_THAT(state_.book.earmarks(), IsEmpty());
  EXPECT_THAT(state_.lifted, IsEmpty());
}

TEST_F(ClusterStateTest, AnEarmarkPutWhileTheOldOneIsLiftedStays) {
  PodRecord& record = Earmarked(pod_);
  Earmark other = *record.earmark;
  other.node = NodeName("m");
  {
    const ScopedRemoval removal(state_, pod_.uid, At(1), {});
    earmarks_.PutEarmark(pod_.uid, record, other, At(1));
  }
  EXPECT_EQ(record.earmark->node, NodeName("m"));
  EXPECT_EQ(Held(pod_), nullptr) << "on n";
}

}  // namespace THIS_FILE
}  // namespace tranche
