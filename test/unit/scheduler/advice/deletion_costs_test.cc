// Which pods of a ReplicaSet are to go first, for small fleets written as what is where. The costs
// are carried out by a model of the ReplicaSet controller.
#include "scheduler/advice/deletion_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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
using By = DeletionCostMark::By;

// Four nodes of four GPUs.
class DeletionCostsTest : public testing::Test {
 protected:
  DeletionCostsTest() {
    for (const char* name : {"a", "b", "c", "d"}) fleet.Node(StockNode(name, 4));
  }
  AdvicePod& Put(const std::string& pod, int gpus, const std::string& node,
                 const std::string& replica_set = "web") {
    return Of(fleet.Pod(WholePod(pod, gpus), node, 0), replica_set);
  }
  static AdvicePod& Of(AdvicePod& pod, const std::string& replica_set) {
    pod.replica_set = replica_set;
    return pod;
  }
  // What is to be written, as "pod cost"; and the case as it is once it was.
  std::vector<std::string> Written() {
    AdviceCase now = fleet.Build();
    std::vector<std::string> texts;
    for (const ReplicaSetCosts& set : PlanDeletionCosts(now)) {
      for (const CostChange& change : set.changes) {
        texts.push_back(change.pod.name + " " +
                        (change.cost ? std::to_string(*change.cost) : "none"));
        const auto pod = std::ranges::find(now.pods, change.uid, &AdvicePod::uid);
        EXPECT_EQ(change.had, pod->deletion_cost);
        pod->deletion_cost =
            change.cost ? DeletionCostMark{By::kUs, *change.cost} : DeletionCostMark{};
      }
    }
    after = std::move(now);
    return texts;
  }
  // A scale-down by so many takes these, all running and ready: the lower cost first, of equal ones
  // by other rules, here the name. pkg/controller/controller_utils.go, ActivePodsWithRanks.Less:
  // the cost comes after node, phase and readiness, and before everything else.
  std::vector<std::string> Taken(std::size_t count, const std::string& replica_set = "web") {
    std::vector<std::pair<int32_t, std::string>> order;
    for (const AdvicePod& pod : after.pods) {
      if (pod.replica_set == replica_set) order.emplace_back(pod.deletion_cost.cost, pod.name.name);
    }
    std::ranges::sort(order);
    std::vector<std::string> taken;
    for (std::size_t i = 0; i < count && i < order.size(); ++i) taken.push_back(order[i].second);
    return taken;
  }
  DefragCase fleet;
  AdviceCase after;
};

TEST_F(DeletionCostsTest, NodesOfWhichLittleIsUsedComeFirstThoseThatGetFreeBeforeOthers) {
  Put("a1", 1, "a");
  Put("b1", 1, "b");
  Put("other", 1, "b", "");
  Put("c1", 3, "c");
  EXPECT_THAT(Written(), ElementsAre("a1 -310", "b1 -210", "c1 -10"));
  EXPECT_THAT(Taken(2), ElementsAre("a1", "b1"));
}

TEST_F(DeletionCostsTest, WhereAllAreAlikeNothingIsWritten) {
  Put("a1", 4, "a");
  Put("b1", 4, "b");
  Put("c1", 4, "c");
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(DeletionCostsTest, OfOnePodThereIsNoOrderAndOfOthersThanReplicaSetsNeither) {
  Put("a1", 1, "a", "one");
  Put("b1", 1, "b", "");
  Put("c1", 4, "c", "");
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(DeletionCostsTest, WhoWasAskedToLeaveGoesFirstThenWhoseNodeIsToBeEmptied) {
  Put("a1", 1, "a");
  AdvicePod& moves = Put("b1", 1, "b");
  moves.moves_to_consolidate = true;
  Put("c1", 4, "c").leaves = true;
  // Room for b1, so that b could be emptied.
  Put("d1", 3, "d");
  EXPECT_THAT(Written(), ElementsAre("c1 -1010", "b1 -510", "a1 -310", "d1 -10"));
  EXPECT_THAT(Taken(4), ElementsAre("c1", "b1", "a1", "d1"));
}

TEST_F(DeletionCostsTest, ANodeThatTakesNoNewPodsIsLeftBeforeOthers) {
  fleet = DefragCase();
  fleet.Node(StockNode("a", 4)).open = false;
  fleet.Node(StockNode("b", 4));
  Put("a1", 4, "a");
  Put("b1", 1, "b");
  EXPECT_THAT(Written(), ElementsAre("a1 -510", "b1 -310"));
}

TEST_F(DeletionCostsTest, OfEqualNodesBorrowedPodsGoFirst) {
  Put("a1", 4, "a");
  Put("b1", 4, "b").borrowed = true;
  EXPECT_THAT(Written(), ElementsAre("b1 -30", "a1 -10"));
}

TEST_F(DeletionCostsTest, OfSharedGpusThoseThatGetFreeComeFirst) {
  Put("a1", 3, "a", "");
  Put("b1", 3, "b", "");
  Of(fleet.Pod(FractionPod("half", 500), "a", 0), "web");
  fleet.Pod(FractionPod("beside", 500), "a", 0, 3);
  Of(fleet.Pod(FractionPod("alone", 500), "b", 0), "web");
  EXPECT_THAT(Written(), ElementsAre("alone -10"));
  EXPECT_THAT(Taken(1), ElementsAre("alone"));
}

TEST_F(DeletionCostsTest, WhatIsInOrderIsLeftAsItIs) {
  Put("a1", 1, "a").deletion_cost = {By::kUs, -7};
  Put("b1", 3, "b");
  EXPECT_THAT(Written(), IsEmpty()) << "other numbers, the same order";
}

TEST_F(DeletionCostsTest, WhatIsNotIsWrittenAndTheRestOfTheSetStays) {
  Put("a1", 1, "a").deletion_cost = {By::kUs, -310};
  Put("b1", 1, "b");  // came here since
  Put("c1", 3, "c").deletion_cost = {By::kUs, -310};
  EXPECT_THAT(Written(), ElementsAre("b1 -310", "c1 -10"));
  EXPECT_THAT(Written(), ElementsAre("b1 -310", "c1 -10")) << "the case is what is asked";
}

TEST_F(DeletionCostsTest, WhereSomebodyElseWroteACostOursAreTakenBack) {
  Put("a1", 1, "a").deletion_cost = {By::kUs, -310};
  Put("b1", 1, "b").deletion_cost = {By::kOthers, 0};
  Put("c1", 3, "c");
  Put("d1", 1, "d", "theirs").deletion_cost = {By::kOthers, 0};
  Put("d2", 1, "d", "theirs");
  EXPECT_THAT(Written(), ElementsAre("a1 none"));
}

TEST_F(DeletionCostsTest, OursAreFoundWhateverTheyAreOf) {
  Put("a1", 1, "a", "").deletion_cost = {By::kUs, -310};
  Put("b1", 1, "b").deletion_cost = {By::kOthers, 0};
  Put("c1", 1, "c");
  const std::vector<CostChange> ours = OurDeletionCosts(fleet.Build());
  ASSERT_EQ(ours.size(), 1U);
  EXPECT_EQ(ours[0].pod.name, "a1");
  EXPECT_EQ(ours[0].cost, std::nullopt);
}

// Whatever the fleet: once it is written nothing is to be written, and a scale-down takes nobody
// before another who would have been worth more.
TEST_F(DeletionCostsTest, OneRoundOfWritingIsEnough) {
  uint64_t seed = 12345;
  const auto below = [&seed](uint64_t most) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return (seed >> 33U) % most;
  };
  for (int round = 0; round < 200; ++round) {
    DefragCase some;
    for (const char* name : {"a", "b", "c", "d"}) some.Node(StockNode(name, 4)).open = below(8) > 0;
    std::map<std::string, uint64_t> used;
    for (int i = 0; i < 9; ++i) {
      const std::string node(1, static_cast<char>('a' + below(4)));
      if (used[node] == 4) continue;
      ++used[node];
      AdvicePod& pod = some.Pod(WholePod("p" + std::to_string(i), 1), node, 0);
      pod.replica_set = below(3) == 0 ? "web" : "api";
      pod.borrowed = below(3) == 0;
      pod.leaves = below(8) == 0;
      pod.moves_to_consolidate = below(2) == 0;
      if (below(3) == 0) pod.deletion_cost = {By::kUs, -10 * static_cast<int32_t>(below(40))};
    }
    fleet = some;
    Written();
    fleet = DefragCase();
    EXPECT_THAT(PlanDeletionCosts(after), IsEmpty()) << "round " << round;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
