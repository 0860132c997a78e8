// Nodes with rules of their own: GPUPolicies that select nodes.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::FractionPod;
using test::StockNode;
using test::WholePod;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

NodeFacts InPool(const std::string& name, const std::string& pool) {
  NodeFacts node = StockNode(name, 1);
  node.labels = LabelText({{"pool", pool}});
  return node;
}

// `most`: pods on a card; 0: nothing is said of it.
NodeRules Sharing(Permission unenforced, int most = 0) {
  NodeRules rules;
  rules.unenforced_sharing = unenforced;
  if (most > 0) rules.sharing_limits = std::vector<SharingLimit>{{"any", most}};
  return rules;
}

GpuPolicy ForPool(const std::string& pool, NodeRules rules) {
  GpuPolicy policy;
  policy.name = "pool-" + pool;
  policy.nodes = LabelSelector{{{"pool", pool}}, {}};
  policy.own = std::move(rules);
  return policy;
}

// Machines that are alike but for the pool. Nobody may share GPUs but where a pool says so.
class NodeRulesTest : public EngineReclaimTest {
 protected:
  NodeRulesTest() { Nodes({InPool("a", "plain"), InPool("b", "shared"), InPool("c", "shared")}); }
  void Rule(std::vector<GpuPolicy> policies) { Declare({.policies = std::move(policies)}, {}); }
  static GpuPolicy Shared(int most = 0) {
    return ForPool("shared", Sharing(Permission::kAllow, most));
  }
};

TEST_F(NodeRulesTest, APoolMayShareWhatOthersMayNot) {
  Rule({});
  EXPECT_THAT(Filter(FractionPod("p", 500)), IsEmpty());
  Rule({Shared()});
  EXPECT_THAT(Filter(FractionPod("p", 500)), UnorderedElementsAre("b", "c"));
  EXPECT_EQ(ReasonOn(FractionPod("p", 500), "a"), "NoAgent");
  EXPECT_TRUE(Place(FractionPod("p", 500), "b"));
  EXPECT_FALSE(Place(FractionPod("q", 500), "a"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(NodeRulesTest, APoolMayForbidWhatOthersMay) {
  GpuPolicy all;
  all.unenforced_sharing = Permission::kAllow;
  Rule({ForPool("plain", Sharing(Permission::kRefuse)), all});
  EXPECT_THAT(Filter(FractionPod("p", 500)), UnorderedElementsAre("b", "c"));
}

TEST_F(NodeRulesTest, ALimitOfAPoolStandsForThoseOfThePodsPolicy) {
  GpuPolicy all;
  all.unenforced_sharing = Permission::kAllow;
  all.sharing_limits = {{"any", 1}};
  Rule({Shared(2), all});
  for (const char* name : {"p1", "p2"}) EXPECT_TRUE(Place(FractionPod(name, 100), "b"));
  EXPECT_FALSE(Place(FractionPod("p3", 100), "b")) << "two on a card of the pool";
  EXPECT_TRUE(Place(FractionPod("p4", 100), "a"));
  EXPECT_FALSE(Place(FractionPod("p5", 100), "a")) << "one elsewhere";
}

TEST_F(NodeRulesTest, EditsAndOtherLabelsCountAtOnce) {
  Rule({Shared()});
  EXPECT_THAT(Filter(FractionPod("p", 500)), UnorderedElementsAre("b", "c"));
  Nodes({InPool("c", "plain")});
  EXPECT_THAT(Filter(FractionPod("p", 500)), ElementsAre("b"));
  Rule({ForPool("plain", Sharing(Permission::kAllow))});
  EXPECT_THAT(Filter(FractionPod("p", 500)), UnorderedElementsAre("a", "c"));
  Rule({});
  EXPECT_THAT(Filter(FractionPod("p", 500)), IsEmpty());
}

// What runs there was allowed when it came: it is counted, and takes nothing from others.
TEST_F(NodeRulesTest, WhatRunsStaysWhereItIsForbiddenNow) {
  Rule({Shared()});
  const PodRequest runs = FractionPod("runs", 500);
  ASSERT_TRUE(Place(runs, "b"));
  engine_.UpsertPod(BoundFacts(runs, "b"), now_);
  Rule({ForPool("shared", Sharing(Permission::kRefuse, 1))});
  EXPECT_EQ(ReasonOn(WholePod("whole", 1), "b"), "NoRoom");
  EXPECT_THAT(Filter(WholePod("whole", 1)), UnorderedElementsAre("a", "c"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
