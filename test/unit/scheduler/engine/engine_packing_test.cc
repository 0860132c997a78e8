// Packing: what the mix and the CPU of nodes make of the order of nodes, pods without GPUs, nodes
// that are held, and the cluster as values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/unit/scheduler/engine/engine_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;

NodeFacts NodeWithCpu(const std::string& name, int gpus, int64_t cpus) {
  NodeFacts node = test::StockNode(name, gpus);
  node.cpu = MilliCpu::Of(cpus * 1000);
  return node;
}

PodRequest WithCpu(PodRequest request, int64_t milli) {
  request.cpu = MilliCpu::Of(milli);
  return request;
}

class PackingTest : public ::testing::Test {
 protected:
  PackingTest() : engine_(EngineOptions{}) {
    GpuPolicy policy;
    policy.unenforced_sharing = Permission::kAllow;
    policy.plain_pods = PlainPods::kRank;
    test::SetPolicy(engine_, policy);
  }
  // So many pods of a kind were asked for, and went away again.
  void Learn(const PodRequest& like, int times) {
    for (int i = 0; i < times; ++i) {
      PodRequest request = like;
      request.uid = PodUid(fmt::format("{}-{}", like.uid.str(), learned_++));
      Ask(request);
      engine_.DeletePod(request.uid, At(0));
    }
  }
  std::string Ask(const PodRequest& request) {
    const std::vector<std::string_view> names(names_.begin(), names_.end());
    engine_.Filter(request, names, At(0), answer_);
    return answer_.chosen.empty() ? "" : names_[answer_.chosen[0]];
  }
  void Add(const NodeFacts& node) {
    names_.push_back(node.name.str());
    engine_.UpsertNode(node, At(0));
  }
  void Run(const PodRequest& request, const std::string& node) {
    engine_.UpsertPod(test::Bound(request, node), At(0));
  }

  Engine engine_;
  std::vector<std::string> names_;
  FilterAnswer answer_;
  int learned_ = 0;
};

TEST_F(PackingTest, ASmallPodGoesWhereTheCpuForLargeOnesIsGone) {
  Add(NodeWithCpu("a", 2, 64));
  Add(NodeWithCpu("b", 2, 64));
  Learn(WithCpu(test::WholePod("large", 1), 16'000), 40);
  // Of b's CPU 8 are left: no pod of the mix will ever use its GPUs.
  Run(WithCpu(test::EmptyRequest("web"), 56'000), "b");
  EXPECT_EQ(Ask(WithCpu(test::WholePod("small", 1), 4'000)), "b");
  // Once it is gone the two are alike again, and the first by name is taken.
  engine_.DeletePod(PodUid("uid-web"), At(1));
  EXPECT_EQ(Ask(WithCpu(test::WholePod("small", 1), 4'000)), "a");
}

TEST_F(PackingTest, AShareFillsACardThatNothingElseOfTheMixCouldUse) {
  Add(NodeWithCpu("a", 1, 64));
  Add(NodeWithCpu("b", 1, 64));
  Add(NodeWithCpu("c", 1, 64));
  Learn(test::WholePod("whole", 1), 40);
  Run(test::FractionPod("half", 500), "c");
  EXPECT_EQ(Ask(test::FractionPod("quarter", 250)), "c");
}

TEST_F(PackingTest, ModelsThatOthersAreBoundToAreLeftToThem) {
  Add(NodeWithCpu("a", 1, 96));
  NodeFacts scarce = test::StockNode("b", 1, "Tesla-T4", 15109);
  scarce.cpu = MilliCpu::Of(96'000);
  Add(scarce);
  names_ = {"b", "a"};
  PodRequest bound = test::WholePod("bound", 1);
  bound.models_any = {"t4"};
  Learn(bound, 40);
  Learn(test::WholePod("any", 1), 10);
  EXPECT_EQ(Ask(test::WholePod("next", 1)), "a");
  EXPECT_EQ(Ask(bound), "b");
}

TEST_F(PackingTest, RoomForEightIsLeftToThoseWhoNeedIt) {
  Add(NodeWithCpu("a", 8, 96));
  Add(NodeWithCpu("b", 4, 96));
  Learn(test::WholePod("eight", 8), 30);
  Learn(test::WholePod("one", 1), 30);
  EXPECT_EQ(Ask(test::WholePod("next", 1)), "b");
  EXPECT_EQ(Ask(test::WholePod("wide", 8)), "a");
}

TEST_F(PackingTest, PodsWithoutGpusAreRankedAwayFromIdleGpusOnlyWherePolicySaysSo) {
  Add(NodeWithCpu("a", 8, 64));
  NodeFacts plain;
  plain.name = NodeName("b");
  plain.cpu = MilliCpu::Of(64'000);
  Add(plain);
  Learn(WithCpu(test::WholePod("one", 1), 8'000), 40);
  const PodRequest web = WithCpu(test::EmptyRequest("web"), 32'000);
  const std::vector<std::string_view> names(names_.begin(), names_.end());
  FilterAnswer answer;
  engine_.Filter(web, names, At(0), answer);
  EXPECT_TRUE(answer.untouched);
  std::vector<int> ranks;
  engine_.Prioritize(web, names, At(0), ranks);
  EXPECT_EQ(ranks, (std::vector<int>{9, 10}));
  test::SetPolicy(engine_, GpuPolicy());
  engine_.Prioritize(web, names, At(0), ranks);
  EXPECT_EQ(ranks, (std::vector<int>{0, 0}));
}

TEST_F(PackingTest, ANodeThatIsHeldTakesNoNewPods) {
  Add(NodeWithCpu("a", 8, 64));
  engine_.SetHeld(NodeName("a"), "MIG layout is being changed", At(0));
  EXPECT_EQ(Ask(test::WholePod("one", 1)), "");
  EXPECT_EQ(answer_.refused[0].second, Reason::kOperatorBusy);
  EXPECT_EQ(engine_.Nodes(NodeName(), 1, At(0))[0].closed_detail, "MIG layout is being changed");
  engine_.SetHeld(NodeName("a"), "", At(1));
  EXPECT_EQ(Ask(test::WholePod("one", 1)), "a");
}

TEST_F(PackingTest, TheClusterAsValuesHasNodesPodsWaitersAndDemand) {
  Add(NodeWithCpu("a", 2, 64));
  Run(WithCpu(test::WholePod("runs", 1), 8'000), "a");
  Run(WithCpu(test::EmptyRequest("web"), 10'000), "a");
  engine_.UpsertPod(test::Pending(test::WholePod("waits", 4)), At(5));
  const AdviceCase fleet = engine_.Case(At(10));
  ASSERT_EQ(fleet.nodes.size(), 1u);
  EXPECT_EQ(fleet.nodes[0].cpu_free.count(), 46'000);
  EXPECT_TRUE(fleet.nodes[0].open);
  ASSERT_EQ(fleet.pods.size(), 1u);
  EXPECT_EQ(fleet.pods[0].name.str(), "team/runs");
  EXPECT_EQ(fleet.pods[0].node, 0u);
  ASSERT_EQ(fleet.waiting.size(), 1u);
  EXPECT_EQ(fleet.waiting[0].name.str(), "team/waits");
  ASSERT_EQ(fleet.demand.size(), 2u);
  EXPECT_EQ(fleet.demand[0].kind.devices, 1);
  EXPECT_EQ(fleet.demand[0].waiting, 0);
  EXPECT_EQ(fleet.demand[1].kind.devices, 4);
  EXPECT_EQ(fleet.demand[1].waiting, 1);
}

}  // namespace THIS_FILE
}  // namespace tranche
