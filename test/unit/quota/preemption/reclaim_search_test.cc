#include "quota/preemption/reclaim_search.h"

#include "test/unit/quota/preemption/reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using ReclaimSearchTest = ReclaimTest;

// One team borrows from another that wants its nominal back.
std::vector<QuotaNode> Lender(int64_t nominal) {
  return {Quota("org", "", 0), Quota("a", "org", 0), Quota("b", "org", nominal)};
}

TEST_F(ReclaimSearchTest, ExactBeatsGreedy) {
  Cluster(Lender(7), {{"t1", "a", 3, 2, 5}, {"t2", "a", 2, 2, 4}, {"t3", "a", 2, 2, 4}});
  Wants("b", 4, 2, {8});
  const ReclaimAnswer answer = Plan();
  EXPECT_EQ(Told(answer), "R1 n0: t2 t3");
  EXPECT_EQ(answer.plan->cost.lost_gpu_ms, 8);
  EXPECT_EQ(answer.plan->cost.surplus, 0);
  EXPECT_TRUE(answer.plan->optimal);
}

TEST_F(ReclaimSearchTest, LeastWorkIsLostAndNotTheNewestGoes) {
  // GPU-seconds as the model computes them for T1 with a checkpoint and a silent T2.
  Cluster(Lender(8), {{"t1", "a", 4, 2, 1'920'000}, {"t2", "a", 4, 2, 4'320'000}});
  Wants("b", 4, 2, {8});
  EXPECT_EQ(Planned(), "R1 n0: t1");
}

TEST_F(ReclaimSearchTest, CostIsComparedMemberByMember) {
  // "one" is taken unless the change makes it dearer than "two".
  const struct {
    const char* what;
    void (*change)(VictimUnit& one, VictimUnit& two);
    const char* planned;
  } kRows[] = {
      {"nothing", [](VictimUnit&, VictimUnit&) {}, "R1 n0: one"},
      {"a budget before rank and loss",
       [](VictimUnit& one, VictimUnit& two) {
         one.pods[0].budgets = {0};
         two.rank = 3;
         two.lost_gpu_ms = 99;
       },
       "R1 n0: two"},
      {"a budget that allows it", [](VictimUnit& one, VictimUnit&) { one.pods[0].budgets = {1}; },
       "R1 n0: one"},
      {"rank before loss",
       [](VictimUnit& one, VictimUnit& two) {
         one.rank = 3;
         two.lost_gpu_ms = 99;
       },
       "R1 n0: two"},
      {"a gang before loss",
       [](VictimUnit&, VictimUnit& two) {
         two.breaks = false;
         two.lost_gpu_ms = 99;
       },
       "R1 n0: two"},
      {"loss", [](VictimUnit& one, VictimUnit&) { one.lost_gpu_ms = 99; }, "R1 n0: two"},
      {"pods",
       [](VictimUnit& one, VictimUnit&) {
         one.pods.push_back({std::nullopt, {}});
       },
       "R1 n0: two"},
      {"newest", [](VictimUnit&, VictimUnit& two) { two.start = Instant(Millis(99)); },
       "R1 n0: two"},
      {"key", [](VictimUnit& one, VictimUnit& two) { one.start = two.start; }, "R1 n0: one"},
  };
  for (const auto& row : kRows) {
    Cluster(Lender(4), {{"two", "a", 2}, {"one", "a", 2}});
    Wants("b", 2, 2, {8});
    problem_.pdb_allowed = {0, 1};
    row.change(Unit("one"), Unit("two"));
    EXPECT_EQ(Planned(), row.planned) << row.what;
  }
}

TEST_F(ReclaimSearchTest, CostNumbersOfASet) {
  Cluster(Lender(8), {{"x", "a", 2, 1, 10, {0, 1, 1}}, {"y", "a", 1, 3, 5, {1}}});
  Wants("b", 4, 2, {0, 0});
  problem_.pdb_allowed = {1, 0};
  Unit("x").pods[0].budgets = {0};
  Unit("x").pods[1].budgets = {0};
  Unit("y").pods[0].budgets = {0, 1};
  Unit("y").marks = {};
  const PlanCost cost = CostOf(problem_, 0, std::vector<int>{0, 1});
  EXPECT_EQ(cost.pdb_violations, 2);  // the second pod of x, and y
  EXPECT_EQ(cost.rank, 3);
  EXPECT_EQ(cost.in_quota, kQuantaPerGpu);
  EXPECT_EQ(cost.gangs, 2);
  EXPECT_EQ(cost.collateral, 2);  // x's on the other node; y has none here
  EXPECT_EQ(cost.lost_gpu_ms, 15);
  EXPECT_EQ(cost.pods, 4);
  EXPECT_EQ(cost.surplus, 3 * kQuantaPerGpu);
  ASSERT_EQ(cost.order.size(), 2u);
  EXPECT_EQ(cost.order.front().second, "y");  // the newer
}

TEST_F(ReclaimSearchTest, FreeRoomNeedsNobodyAndOfEqualNodesTheFirstIsTaken) {
  Cluster(Lender(8), {{"x", "a", 2, 2, 1, {0}}, {"y", "a", 2, 2, 1, {1}}});
  Wants("b", 2, 2, {0, 0, 2});
  EXPECT_EQ(Planned(), "fits");
  nodes_.free = {0, 0, 1};
  EXPECT_EQ(Planned(), "R1 n1: y");  // the newer
  Unit("y").start = Unit("x").start;
  Unit("y").key = Unit("x").key;
  EXPECT_EQ(Plan().plan->region, 0u);
  EXPECT_EQ(PlanReclaimIn(problem_, 1, nodes_).plan->region, 1u);
  EXPECT_EQ(PlanReclaimIn(problem_, 2, nodes_).result, ReclaimAnswer::Result::kImpossible);
}

TEST_F(ReclaimSearchTest, CollateralIsAvoidedByGoingWhereTheGangIsNot) {
  Cluster(Lender(4), {{"x", "a", 1, 2, 1, {0, 1}}, {"y", "a", 1, 2, 9, {1, 2}}});
  Wants("b", 2, 2, {4, 4, 4});
  EXPECT_EQ(Planned(), "R1 n2: x");
}

TEST_F(ReclaimSearchTest, MuchLikeWorkIsStillAnsweredExactly) {
  std::vector<Work> works;
  for (int i = 0; i < 200; ++i)
    works.push_back({"w" + std::to_string(100 + i), "a", 1, 2, 200 - i});
  Cluster(Lender(200), works);
  Wants("b", 3, 2, {8});
  const ReclaimAnswer answer = Plan();
  EXPECT_EQ(Told(answer), "R1 n0: w297 w298 w299");
  EXPECT_TRUE(answer.plan->optimal);
}

TEST_F(ReclaimSearchTest, ManyUnlikeCandidatesGiveAPlanWithoutSuperfluousVictims) {
  std::vector<Work> works;
  for (int i = 0; i < 40; ++i) {
    works.push_back({"w" + std::to_string(i), "a", 1 + i % 7, 1 + i % 3, i * 37 % 41, {0}});
  }
  Cluster(Lender(400), works);
  Wants("b", 13, 2, {0});
  const ReclaimAnswer answer = Plan();
  ASSERT_EQ(answer.result, ReclaimAnswer::Result::kPlan);
  const std::vector<int>& victims = answer.plan->victims;
  EXPECT_TRUE(StillHolds(problem_, ReclaimRule::kR1, 0, victims, nodes_));
  for (const int dropped : victims) {
    std::vector<int> fewer = victims;
    std::erase(fewer, dropped);
    EXPECT_FALSE(StillHolds(problem_, ReclaimRule::kR1, 0, fewer, nodes_)) << dropped;
  }
}

TEST_F(ReclaimSearchTest, WithoutQuestionsLeftItSaysSo) {
  Cluster(Lender(8), {{"x", "a", 2, 2, 1, {0}}});
  Wants("b", 2, 2, {0});
  for (const int64_t evaluations : {0, 1}) {
    const ReclaimAnswer answer = PlanReclaim(problem_, nodes_, {evaluations});
    EXPECT_EQ(answer.result, ReclaimAnswer::Result::kUnresolved);
    EXPECT_EQ(answer.evaluations, evaluations);
  }
  EXPECT_EQ(PlanReclaim(problem_, nodes_, {2}).result, ReclaimAnswer::Result::kPlan);
}

TEST_F(ReclaimSearchTest, WhatMustBeFreedIsComparedBeforeAnyGeometry) {
  Cluster(Lender(8), {{"x", "a", 2, 2, 1, {0}}});
  Wants("b", 4, 2, {0});
  problem_.regions[0].short_by = Gpus(4);
  EXPECT_EQ(Planned(), "impossible");
  EXPECT_EQ(nodes_.asked, 0);
}

TEST_F(ReclaimSearchTest, APlanHoldsUntilTheWorldChanges) {
  Cluster(Lender(4), {{"x", "a", 2}, {"y", "a", 2}});
  Wants("b", 2, 2, {8});
  const std::vector<int> x = {Position("x")};
  EXPECT_TRUE(StillHolds(problem_, ReclaimRule::kR1, 0, x, nodes_));
  EXPECT_FALSE(StillHolds(problem_, ReclaimRule::kR2a, 0, x, nodes_));
  EXPECT_FALSE(StillHolds(problem_, ReclaimRule::kR1, 0, {}, nodes_));  // quota is short
  nodes_.free = {1};
  EXPECT_FALSE(StillHolds(problem_, ReclaimRule::kR1, 0, x, nodes_));
}

TEST(ReclaimRuleNameTest, NamesAreThoseOfTheModel) {
  EXPECT_EQ(ReclaimRuleName(ReclaimRule::kNone), "");
  EXPECT_EQ(ReclaimRuleName(ReclaimRule::kR2a), "R2a");
  EXPECT_EQ(ReclaimRuleName(ReclaimRule::kShrink), "Shrink");
}

}  // namespace THIS_FILE
}  // namespace tranche
