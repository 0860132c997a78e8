// Nodes whose agent an object beside the Node tells of, Koordinator's Device; and tranche-node.
#include "test/unit/scheduler/engine/engine_fixture.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;

class NodeAgentTest : public EngineTest {
 protected:
  static AgentRegister Cards(int gpus) {
    return *test::AgentNode(AgentKind::kKoordinator, "a", gpus, 16000).agent;
  }
  static PodRequest Half(const std::string& name) {
    return test::SharePod(name, RequestStyle::kKoordinator, "", 0, {MemoryNeed::Kind::kMib, 8000},
                          50);
  }
  std::string KnowledgeOf(const std::string& node) {
    for (const NodeView& view : engine_.Nodes(NodeName(), 100, now_)) {
      if (view.name.str() == node) return view.knowledge == Knowledge::kExact ? "exact" : "counts";
    }
    return "";
  }
};

TEST_F(NodeAgentTest, TheObjectMakesTheNodeServeItsStyle) {
  Nodes({test::StockNode("a", 2, "Tesla-V100-SXM2-16GB", 16000)});
  EXPECT_EQ(ReasonOn(Half("p"), "a"), "NoAgent");
  engine_.SetNodeAgent(NodeName("a"), Cards(2), now_);
  EXPECT_EQ(KnowledgeOf("a"), "exact");
  EXPECT_TRUE(Place(Half("p"), "a"));
  EXPECT_TRUE(Place(Half("q"), "a"));
  EXPECT_EQ(FreeMilli("a"), 1000) << "both on one card";
  engine_.SetNodeAgent(NodeName("a"), std::nullopt, now_);
  EXPECT_EQ(ReasonOn(Half("r"), "a"), "NoAgent");
}

TEST_F(NodeAgentTest, TheObjectMayComeBeforeTheNode) {
  engine_.SetNodeAgent(NodeName("a"), Cards(2), now_);
  Nodes({test::StockNode("a", 2, "Tesla-V100-SXM2-16GB", 16000)});
  EXPECT_EQ(ReasonOn(Half("p"), "a"), "");
  // The node is told again, without what others say of it.
  engine_.UpsertNode(test::StockNode("a", 2, "Tesla-V100-SXM2-16GB", 16000), now_);
  EXPECT_EQ(ReasonOn(Half("p"), "a"), "");
}

TEST_F(NodeAgentTest, WhatTheNodeItselfShowsCountsMore) {
  Nodes({test::AgentNode(AgentKind::kHami, "a", 1, 16000)});
  engine_.SetNodeAgent(NodeName("a"), Cards(2), now_);
  EXPECT_EQ(ReasonOn(Half("p"), "a"), "NoAgent");
  EXPECT_EQ(ReasonOn(test::HamiPod("q", 1, 1000), "a"), "");
}

TEST_F(NodeAgentTest, SaysWhatAPartOfTrancheNodesNeeds) {
  NodeFacts facts = test::AgentNode(AgentKind::kTranche, "a", 1, 80'000);
  facts.gpu = ResourceCount{8, 8};
  const auto told = [&](const PodRequest& part) {
    Nodes({facts});
    engine_.UpsertPod(test::Pending(part), now_);
    return engine_.Explain(part.name, now_)->nodes.at(0).detail;
  };
  const PodRequest part = test::FractionPod("part", 250);
  EXPECT_THAT(told(part), testing::HasSubstr("tranche-node gives whole GPUs there"));
  facts.agent->devices[0].mode = "mps";
  facts.agent->devices[0].slots = 8;
  EXPECT_THAT(told(part), testing::HasSubstr("the container has to limit nvidia.com/gpu"));
  PodRequest right = test::FractionPod("right", 250);
  right.containers.at(0).plugin_count = 1;
  EXPECT_TRUE(Place(right, "a"));
  const NodeView view = engine_.Nodes(NodeName(), 1, now_).at(0);
  EXPECT_EQ(view.gpus.at(0).enforced_by, "mps");
}

TEST_F(NodeAgentTest, AnIllCardIsNotGiven) {
  AgentRegister cards = Cards(2);
  cards.devices[0].healthy = false;
  engine_.SetNodeAgent(NodeName("a"), cards, now_);
  Nodes({test::StockNode("a", 2, "Tesla-V100-SXM2-16GB", 16000)});
  const BindPlan plan = Bind(Half("p"), "a");
  ASSERT_EQ(plan.kind, BindPlan::Kind::kWrite);
  EXPECT_THAT(Devices(plan.allocation), ElementsAre("1:500"));
}

}  // namespace THIS_FILE
}  // namespace tranche
