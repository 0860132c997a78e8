// Which nodes could be emptied, for small fleets written as what is where.
#include "scheduler/advice/emptying.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/builders/cluster.h"
#include "test/builders/defrag_case.h"

namespace tranche {
namespace THIS_FILE {

using test::DefragCase;
using test::FractionPod;
using test::StockNode;
using test::WholePod;
using testing::ElementsAre;
using testing::IsEmpty;

std::string Text(const EmptiedNode& entry) {
  std::string text = entry.node.str() + ":";
  for (const DefragMove& move : entry.moves) {
    text += fmt::format(" {}->{}", move.pod.name, move.to.str());
  }
  return text + fmt::format(" ({} GPUs for {})", entry.gpus, entry.lost_gpu_ms);
}

std::vector<std::string> Texts(const AdviceCase& fleet, const EmptyingLimits& limits = {}) {
  std::vector<std::string> texts;
  for (const EmptiedNode& entry : PlanConsolidation(fleet, limits)) texts.push_back(Text(entry));
  return texts;
}

void Movable(AdvicePod& pod) {
  pod.moves_to_consolidate = true;
  pod.moves_for_layout = true;
}

// Four nodes of four GPUs, the last of which nobody works on.
class EmptyingTest : public testing::Test {
 protected:
  EmptyingTest() {
    for (const char* name : {"a", "b", "c", "d"}) fleet.Node(StockNode(name, 4));
  }
  void Put(const std::string& pod, int gpus, const std::string& node, int64_t lost = 1000) {
    Movable(fleet.Pod(WholePod(pod, gpus), node, lost));
  }
  DefragCase fleet;
};

TEST_F(EmptyingTest, TheLeastIsLostFirstAndTheFullestNodeTakesIt) {
  Put("a1", 1, "a", 9000);
  Put("b1", 1, "b", 400);
  Put("c1", 2, "c");
  Put("c2", 1, "c");
  EXPECT_THAT(Texts(fleet.Build()), ElementsAre("b: b1->c (4 GPUs for 400)"))
      << "then c is full, and a would have to go to a node nobody works on";
}

TEST_F(EmptyingTest, WhoStaysKeepsTheNode) {
  Put("a1", 1, "a");
  Put("b1", 1, "b");
  fleet.Pod(WholePod("b2", 1), "b", 0);
  Put("c1", 3, "c");
  EXPECT_THAT(Texts(fleet.Build()), ElementsAre("a: a1->c (4 GPUs for 1000)"));
}

TEST_F(EmptyingTest, WhatCameFromAnotherNodeStaysThere) {
  Put("a1", 1, "a", 100);
  Put("b1", 1, "b", 200);
  EXPECT_THAT(Texts(fleet.Build()), ElementsAre("a: a1->b (4 GPUs for 100)"));
}

TEST_F(EmptyingTest, MoreThanHalfIsNotLittle) {
  Put("a1", 2, "a");
  Put("a2", 1, "a");
  Put("b1", 3, "b");
  EXPECT_THAT(Texts(fleet.Build()), IsEmpty());
}

TEST_F(EmptyingTest, TooMuchIsNotLostForIt) {
  constexpr int64_t kMost = 4 * 900'000;
  Put("b1", 3, "b");
  Put("a1", 1, "a", kMost + 4);
  EXPECT_THAT(Texts(fleet.Build()), IsEmpty());
  Put("c1", 1, "c", kMost);
  EXPECT_THAT(Texts(fleet.Build()), ElementsAre(fmt::format("c: c1->b (4 GPUs for {})", kMost)));
}

TEST_F(EmptyingTest, PartsGoToOpenedGpusAndModelsStay) {
  NodeFacts other = StockNode("e", 4);
  other.product = "NVIDIA-A100-SXM4-80GB";
  fleet.Node(other);
  Put("e1", 2, "e");
  Movable(fleet.Pod(FractionPod("a1", 300), "a", 10));
  Movable(fleet.Pod(FractionPod("b1", 600), "b", 20));
  EXPECT_THAT(Texts(fleet.Build()), ElementsAre("a: a1->b (4 GPUs for 10)"));
}

TEST_F(EmptyingTest, ClosedNodesAreNeitherEmptiedNorPlaces) {
  Put("a1", 1, "a", 1);
  Put("b1", 1, "b", 2);
  Put("c1", 1, "c", 3);
  AdviceCase built = fleet.Build();
  built.nodes[0].open = false;
  EXPECT_THAT(Texts(built), ElementsAre("b: b1->c (4 GPUs for 2)"));
}

TEST_F(EmptyingTest, OneUnderWayIsJudgedThoughItIsClosed) {
  Put("a1", 1, "a");
  Put("b1", 3, "b");
  AdviceCase built = fleet.Build();
  built.nodes[0].open = false;
  const auto goes_on = PlanEmptying(built, NodeName("a"), EmptyFor::kConsolidation, {});
  ASSERT_TRUE(goes_on.has_value());
  EXPECT_EQ(Text(*goes_on), "a: a1->b (4 GPUs for 1000)");
  built.nodes[1].open = false;
  EXPECT_FALSE(PlanEmptying(built, NodeName("a"), EmptyFor::kConsolidation, {}))
      << "nobody works on the others";
  const auto for_layout = PlanEmptying(built, NodeName("a"), EmptyFor::kLayout, {});
  ASSERT_TRUE(for_layout.has_value());
  EXPECT_EQ(for_layout->moves[0].to, NodeName("c")) << "it is one for the sake of a layout";
  EXPECT_FALSE(PlanEmptying(built, NodeName("nowhere"), EmptyFor::kLayout, {}));
}

TEST_F(EmptyingTest, ANodeThatShowsNoDevicesForAMomentIsLeftAlone) {
  Put("a1", 1, "a");
  Put("b1", 3, "b");
  AdviceCase built = fleet.Build();
  built.nodes[0].inventory = Inventory();
  built.nodes[0].load.Reset(built.nodes[0].inventory);
  built.pods[0].use = {};
  EXPECT_THAT(Texts(built), IsEmpty());
}

TEST_F(EmptyingTest, WhatLeavesNeedsNoPlaceAndHoldsNothingUp) {
  Put("a1", 1, "a");
  AdvicePod& gone = fleet.Pod(WholePod("a2", 1), "a", 0);
  gone.leaves = true;
  Put("b1", 3, "b");
  const auto entry =
      PlanEmptying(fleet.Build(), NodeName("a"), EmptyFor::kConsolidation, EmptyingLimits{});
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(Text(*entry), "a: a1->b (4 GPUs for 1000)");
}

TEST_F(EmptyingTest, APodMayBeMovedForOneAndNotForTheOther) {
  AdvicePod& pod = fleet.Pod(WholePod("a1", 1), "a", 0);
  pod.moves_to_consolidate = true;
  Put("b1", 3, "b");
  const AdviceCase built = fleet.Build();
  EXPECT_TRUE(PlanEmptying(built, NodeName("a"), EmptyFor::kConsolidation, {}));
  EXPECT_FALSE(PlanEmptying(built, NodeName("a"), EmptyFor::kLayout, {}));
}

TEST_F(EmptyingTest, AFleetWithoutItsWork) {
  Put("a1", 1, "a");
  Put("b1", 1, "b");
  const AdviceCase built = fleet.Build();
  EXPECT_FALSE(NobodyHolds(built, built.nodes[0]));
  EXPECT_TRUE(NobodyHolds(built, built.nodes[3]));
  const AdviceCase without = WithoutWorkOn(built, NodeName("a"));
  EXPECT_TRUE(NobodyHolds(without, without.nodes[0]));
  EXPECT_FALSE(NobodyHolds(without, without.nodes[1]));
}

TEST_F(EmptyingTest, SomebodyWaitsForTheNode) {
  Put("a1", 1, "a");
  fleet.Waits(WholePod("five", 5));
  fleet.Waits(WholePod("poor", 1), false);
  AdviceCase built = fleet.Build();
  built.now = Instant(std::chrono::minutes(1));
  EXPECT_EQ(WaiterFor(built, built.nodes[0], Millis(0)), nullptr)
      << "one is too large for it, quota keeps the other";
  fleet.Waits(WholePod("four", 4));
  built = fleet.Build();
  built.now = Instant(std::chrono::minutes(1));
  const AdviceWaiter* const waiter = WaiterFor(built, built.nodes[0], std::chrono::minutes(1));
  ASSERT_NE(waiter, nullptr);
  EXPECT_EQ(waiter->name.name, "four");
  EXPECT_EQ(WaiterFor(built, built.nodes[0], std::chrono::minutes(2)), nullptr);
}

}  // namespace THIS_FILE
}  // namespace tranche
