// Where gangs go, on small clusters that are written as domains and free GPUs.
#include "scheduler/gangs/gang_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "test/unit/scheduler/gangs/gpu_room.h"

namespace tranche {
namespace THIS_FILE {

using test::GpuRoom;
using testing::Each;
using testing::ElementsAre;
using testing::Optional;

constexpr int kNone = kNoDomain;

struct Cluster {
  std::vector<GangNode> nodes;
  std::vector<int> free;

  // {clique, rack, block, zone}, and the free GPUs of each node there.
  Cluster& Add(std::array<int, kGangLevels> domain, const std::vector<int>& gpus) {
    for (const int count : gpus) {
      nodes.push_back({.domain = domain, .cost = 0});
      free.push_back(count);
    }
    return *this;
  }
};

struct Gang {
  std::vector<int> asks;  // GPUs, by kind
  std::vector<GangMember> members;
  std::optional<GangLevel> within = {};
  std::array<int, kGangLevels> settled = {kNone, kNone, kNone, kNone};
};

// So many members that ask for so many GPUs each; ranks from 0.
Gang Equal(int members, int gpus) {
  Gang gang{.asks = {gpus}, .members = {}};
  for (int rank = 0; rank < members; ++rank) gang.members.push_back({.kind = 0, .rank = rank});
  return gang;
}

Gang Within(Gang gang, GangLevel level) {
  gang.within = level;
  return gang;
}

Gang Settled(Gang gang, std::array<int, kGangLevels> domains) {
  gang.settled = domains;
  return gang;
}

std::optional<GangPlan> Plan(const Cluster& cluster, const Gang& gang) {
  GpuRoom room(cluster.free, gang.asks);
  const GangQuestion question = {.nodes = cluster.nodes,
                                 .members = gang.members,
                                 .kinds = static_cast<int>(gang.asks.size()),
                                 .within = gang.within,
                                 .settled = gang.settled};
  std::optional<GangPlan> plan = PlanGang(question, room);
  if (!plan) return plan;
  std::vector<int> left = cluster.free;
  for (std::size_t i = 0; i < gang.members.size(); ++i) {
    left[plan->node_of[i]] -= gang.asks[static_cast<std::size_t>(gang.members[i].kind)];
  }
  EXPECT_EQ(room.left(), left) << "the room holds what was planned";
  EXPECT_THAT(left, Each(testing::Ge(0)));
  return plan;
}

// The nodes in the order of the members.
std::vector<std::size_t> Nodes(const std::optional<GangPlan>& plan) {
  return plan ? plan->node_of : std::vector<std::size_t>{};
}

TEST(GangPlan, OfTwoCliquesTheOneThatIsFilledExactlyIsTaken) {
  Cluster cluster;
  cluster.Add({0, 0, 0, 0}, std::vector<int>(18, 4));
  cluster.Add({1, 1, 0, 0}, {0, 4, 4, 0, 4, 4});
  const auto plan = Plan(cluster, Equal(4, 4));
  EXPECT_THAT(Nodes(plan), ElementsAre(19, 20, 22, 23));
  EXPECT_EQ(plan->level, GangLevel::kClique);
  EXPECT_THAT(plan->spans, ElementsAre(1, 1, 1, 1));
}

TEST(GangPlan, ANarrowDomainWithMuchRoomGoesBeforeAWideOneThatWouldBeFilledExactly) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {8});
  cluster.Add({kNone, 1, 0, 0}, {8});
  cluster.Add({kNone, 2, 1, 0}, {8, 8, 8, 8});
  const auto plan = Plan(cluster, Equal(2, 8));
  EXPECT_THAT(Nodes(plan), ElementsAre(2, 3));
  EXPECT_EQ(plan->level, GangLevel::kRack);
}

TEST(GangPlan, WhereNoRackIsEnoughAsFewRacksAsPossibleOfOneBlock) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {8}).Add({kNone, 1, 0, 0}, {8}).Add({kNone, 2, 0, 0}, {8, 0});
  cluster.Add({kNone, 3, 1, 0}, {8}).Add({kNone, 4, 1, 0}, {8, 8}).Add({kNone, 5, 1, 0}, {8, 0, 8});
  const auto plan = Plan(cluster, Equal(3, 8));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->level, GangLevel::kBlock);
  EXPECT_THAT(plan->spans, ElementsAre(3, 2, 1, 1));
  EXPECT_THAT(Nodes(plan), ElementsAre(4, 5, 6)) << "the second rack is the one with one node";
}

TEST(GangPlan, TheLastRackIsTheOneThatHoldsTheRestOnTheFewestNodesNotTheTightest) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {8, 8, 8});
  cluster.Add({kNone, 1, 0, 0}, {4, 4});  // 8 GPUs, on two nodes
  cluster.Add({kNone, 2, 0, 0}, {8, 4});  // 12, one node is enough
  const auto plan = Plan(cluster, Equal(8, 4));
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->spans, ElementsAre(4, 2, 1, 1));
  EXPECT_THAT(Nodes(plan), ElementsAre(0, 0, 1, 1, 2, 2, 5, 5));
}

TEST(GangPlan, OfRacksWithAsManySeatsTheOneWithFewerNodesIsFilled) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {4, 4}).Add({kNone, 1, 0, 0}, {8}).Add({kNone, 2, 0, 0}, {4});
  EXPECT_THAT(Nodes(Plan(cluster, Equal(3, 4))), ElementsAre(2, 2, 3));
}

TEST(GangPlan, OfEqualRacksTheOneInTheBlockWithLessRoom) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {8, 8}).Add({kNone, 1, 0, 0}, {8, 8});
  cluster.Add({kNone, 2, 1, 0}, {8, 8}).Add({kNone, 3, 1, 0}, {0, 8});
  EXPECT_THAT(Nodes(Plan(cluster, Equal(2, 8))), ElementsAre(4, 5));
}

TEST(GangPlan, WhereNoZoneIsEnoughAsFewZonesAsPossible) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {8}).Add({kNone, 1, 1, 1}, {8, 8}).Add({kNone, 2, 2, 2}, {8, 8, 8});
  const auto plan = Plan(cluster, Equal(4, 8));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->level, std::nullopt);
  EXPECT_THAT(plan->spans, ElementsAre(4, 2, 2, 2));
  EXPECT_THAT(Nodes(plan), ElementsAre(0, 3, 4, 5));
}

TEST(GangPlan, ARequiredLevelIsKeptOrThereIsNoPlan) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {8, 8}).Add({kNone, 1, 0, 0}, {8, 8}).Add({kNone, 2, 1, 0}, {8});
  EXPECT_FALSE(Plan(cluster, Within(Equal(3, 8), GangLevel::kRack)));
  EXPECT_FALSE(Plan(cluster, Within(Equal(5, 8), GangLevel::kBlock)));
  EXPECT_THAT(Nodes(Plan(cluster, Within(Equal(3, 8), GangLevel::kBlock))), ElementsAre(0, 1, 2));
  const auto narrower = Plan(cluster, Within(Equal(2, 8), GangLevel::kZone));
  ASSERT_TRUE(narrower);
  EXPECT_EQ(narrower->level, GangLevel::kRack);
}

TEST(GangPlan, ANodeWithoutTheLabelOfARequiredLevelIsOut) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {8}).Add({kNone, kNone, 0, 0}, {8, 8});
  EXPECT_FALSE(Plan(cluster, Within(Equal(2, 8), GangLevel::kRack)));
  EXPECT_FALSE(Plan(cluster, Within(Equal(1, 8), GangLevel::kClique)));
  EXPECT_THAT(Nodes(Plan(cluster, Within(Equal(1, 8), GangLevel::kRack))), ElementsAre(0));
  EXPECT_THAT(Nodes(Plan(cluster, Within(Equal(2, 8), GangLevel::kBlock))), ElementsAre(0, 1));
}

TEST(GangPlan, CliquesCountWhereRacksHaveNoLabels) {
  Cluster cluster;
  for (const int clique : {0, 1, 2}) cluster.Add({clique, kNone, kNone, 0}, {4});
  for (const int clique : {0, 1, 2}) cluster.Add({clique, kNone, kNone, 0}, {4, 4});
  const auto plan = Plan(cluster, Equal(6, 4));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->level, GangLevel::kZone);
  EXPECT_THAT(plan->spans, ElementsAre(2, 2, 2, 1));
}

TEST(GangPlan, WithoutAnyLabelsAsFewNodesAsPossible) {
  Cluster cluster;
  cluster.Add({kNone, kNone, kNone, kNone}, {2, 8, 3, 4, 8});
  const auto plan = Plan(cluster, Equal(9, 2));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->level, std::nullopt);
  EXPECT_THAT(Nodes(plan), ElementsAre(0, 1, 1, 1, 1, 4, 4, 4, 4));
}

TEST(GangPlan, DomainsNeedNotBeNested) {
  Cluster cluster;  // rack 7 lies in two blocks
  cluster.Add({kNone, 7, 0, 0}, {8}).Add({kNone, 7, 1, 0}, {8}).Add({kNone, 8, 1, 0}, {8});
  const auto rack = Plan(cluster, Equal(2, 8));
  ASSERT_TRUE(rack);
  EXPECT_EQ(rack->level, GangLevel::kRack);
  EXPECT_THAT(rack->spans, ElementsAre(2, 1, 2, 1));
  EXPECT_THAT(Nodes(Plan(cluster, Within(Equal(2, 8), GangLevel::kBlock))), ElementsAre(0, 1))
      << "one rack is narrower than the block that was asked for";
}

TEST(GangPlan, NeighboursByRankShareNodesAndRacksWhateverTheirOrder) {
  Cluster cluster;  // nodes of the two racks alternate
  for (int i = 0; i < 2; ++i) cluster.Add({kNone, 1, 0, 0}, {8}).Add({kNone, 0, 0, 0}, {8});
  Gang gang = Equal(8, 4);
  std::reverse(gang.members.begin(), gang.members.end());
  EXPECT_THAT(Nodes(Plan(cluster, gang)), ElementsAre(2, 2, 0, 0, 3, 3, 1, 1));
  gang = Equal(4, 4);
  gang.members[1].rank = -1;
  EXPECT_THAT(Nodes(Plan(cluster, gang)), ElementsAre(0, 2, 0, 2)) << "no rank: after all others";
}

TEST(GangPlan, ALauncherOfOneGpuSitsInTheRackOfItsWorkers) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {1, 1}).Add({kNone, 1, 0, 0}, {8, 8, 2}).Add({kNone, 2, 0, 0}, {8});
  const Gang gang{.asks = {1, 8}, .members = {{0, 0}, {1, 1}, {1, 2}}};
  const auto plan = Plan(cluster, gang);
  EXPECT_THAT(Nodes(plan), ElementsAre(4, 2, 3));
  EXPECT_EQ(plan->level, GangLevel::kRack);
}

TEST(GangPlan, ALauncherAddsNoRackWhereTheWorkersNeedTwo) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {1});
  cluster.Add({kNone, 1, 0, 0}, {8, 8}).Add({kNone, 2, 0, 0}, {8, 3}).Add({kNone, 3, 0, 0}, {6});
  const Gang gang{.asks = {8, 1}, .members = {{1, 0}, {0, 1}, {0, 2}, {0, 3}}};
  const auto plan = Plan(cluster, gang);
  EXPECT_THAT(Nodes(plan), ElementsAre(4, 1, 2, 3));
  EXPECT_THAT(plan->spans, ElementsAre(4, 2, 1, 1));
}

TEST(GangPlan, GangsOfSeveralKindsTakeTheBlockWhereTheyNeedFewerRacks) {
  Cluster cluster;
  for (const int rack : {0, 1, 2}) cluster.Add({kNone, rack, 0, 0}, {8, 1});
  cluster.Add({kNone, 3, 1, 0}, {8, 8}).Add({kNone, 4, 1, 0}, {8, 8, 1});
  const Gang gang{.asks = {8, 1}, .members = {{0, 0}, {0, 1}, {0, 2}, {1, 3}}};
  EXPECT_THAT(Nodes(Plan(cluster, gang)), ElementsAre(6, 7, 8, 10));
}

TEST(GangPlan, EveryKindGetsItsPlacesOrNoneDoes) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {8, 8});
  EXPECT_TRUE(Plan(cluster, {.asks = {8, 4}, .members = {{1, 0}, {0, 1}, {1, 2}}}));
  EXPECT_FALSE(Plan(cluster, {.asks = {8, 4}, .members = {{1, 0}, {0, 1}, {1, 2}, {1, 3}}}));
}

TEST(GangPlan, MembersThatComeLaterGoWhereTheOthersRun) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {8}).Add({kNone, 1, 1, 0}, {8, 8}).Add({kNone, 2, 1, 0}, {8});
  const std::array<int, kGangLevels> in_rack_1 = {kNone, 1, 1, 0};
  const auto joined = Plan(cluster, Settled(Equal(1, 8), in_rack_1));
  EXPECT_THAT(Nodes(joined), ElementsAre(1));
  const auto beside = Plan(cluster, Settled(Equal(3, 8), in_rack_1));
  EXPECT_THAT(Nodes(beside), ElementsAre(1, 2, 3));
  EXPECT_EQ(beside->level, GangLevel::kBlock);
  EXPECT_FALSE(Plan(cluster, Within(Settled(Equal(3, 8), in_rack_1), GangLevel::kRack)));
  cluster.free = {8, 0, 0, 8};
  const auto next_door = Plan(cluster, Settled(Equal(1, 8), in_rack_1));
  EXPECT_THAT(Nodes(next_door), ElementsAre(3));
  EXPECT_EQ(next_door->level, GangLevel::kBlock) << "of all of them";
  cluster.free = {8, 8, 8, 8};
  EXPECT_FALSE(Plan(cluster, Within(Settled(Equal(4, 8), in_rack_1), GangLevel::kBlock)));
  EXPECT_TRUE(Plan(cluster, Within(Settled(Equal(4, 8), in_rack_1), GangLevel::kZone)));
}

TEST(GangPlan, MembersThatRunInSeveralRacksOfABlockAreJoinedInThatBlock) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {8, 8}).Add({kNone, 1, 1, 0}, {8}).Add({kNone, 2, 1, 0}, {8});
  const auto plan = Plan(cluster, Settled(Equal(2, 8), {kNone, kNone, 1, 0}));
  EXPECT_THAT(Nodes(plan), ElementsAre(2, 3));
  EXPECT_EQ(plan->level, GangLevel::kBlock);
}

TEST(GangPlan, AmongDomainsThatAreElseAlikeTheCostDecidesThenThePosition) {
  Cluster cluster;
  cluster.Add({kNone, 0, 0, 0}, {8, 8}).Add({kNone, 1, 0, 0}, {8, 8}).Add({kNone, 2, 0, 0}, {8, 8});
  EXPECT_THAT(Nodes(Plan(cluster, Equal(2, 8))), ElementsAre(0, 1));
  for (const std::size_t node : {0, 1, 3, 4}) cluster.nodes[node].cost = 5;
  cluster.nodes[4].cost = -1;
  EXPECT_THAT(Nodes(Plan(cluster, Equal(2, 8))), ElementsAre(4, 5));
  EXPECT_THAT(Nodes(Plan(cluster, Equal(1, 8))), ElementsAre(4));

  Cluster rack;
  rack.Add({kNone, 0, 0, 0}, {8, 8, 8, 8});
  for (const std::size_t node : {0, 1, 2, 3}) rack.nodes[node].cost = node == 1 ? 9 : -1;
  EXPECT_THAT(Nodes(Plan(rack, Equal(3, 8))), ElementsAre(0, 2, 3));
}

TEST(GangPlan, ASmallGangLeavesIdleNodesWhole) {
  Cluster cluster;
  for (const int clique : {0, 1, 2}) cluster.Add({clique, 0, 0, 0}, {clique == 1 ? 2 : 8});
  EXPECT_THAT(Nodes(Plan(cluster, Equal(2, 1))), ElementsAre(1, 1));
}

TEST(GangPlan, NobodyNeedsNoPlace) {
  Cluster cluster;
  const auto plan = Plan(cluster, Gang{.asks = {1}, .members = {}});
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->node_of.empty());
  EXPECT_FALSE(Plan(cluster, Equal(1, 1)));
}

}  // namespace THIS_FILE
}  // namespace tranche
