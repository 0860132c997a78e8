#include "scheduler/engine/views/explain_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/engine/views/node_view.h"
#include "test/builders/cluster.h"

namespace tranche::test {
namespace THIS_FILE {

TEST(ExplainText, RequestsInAFewWords) {
  EXPECT_EQ(DescribeRequest(WholePod("pod", 2)), "2 GPUs");
  EXPECT_EQ(DescribeRequest(SharedPod("pod", 1)), "1 shared GPU");
  EXPECT_EQ(DescribeRequest(MigPod("pod", "1g.10gb", 3)), "3 x 1g.10gb");
  using Kind = MemoryNeed::Kind;
  const struct {
    int64_t count, milli;
    MemoryNeed memory;
    bool alone;
    const char* text;
  } shares[] = {
      {1, 500, {Kind::kMib, 8192}, false, "0.5 GPU with 8192 MiB"},
      {1, 500, {Kind::kMilliOfCard, 250}, false, "0.5 GPU with 0.25 of the memory"},
      {2, 250, {Kind::kPercentOfCard, 30}, false, "2 x 0.25 GPU with 30 % of the memory each"},
      {1, 0, {Kind::kMib, 3000}, false, "a part of a GPU with 3000 MiB"},
      {2, 0, {Kind::kAgentUnits, 7}, false, "2 parts of a GPU with 7 units of memory each"},
      {1, 1000, {Kind::kWholeCard, 0}, true, "1 GPU with all memory, alone"},
      {2, 1000, {Kind::kNone, 0}, false, "2 GPUs"},
  };
  for (const auto& row : shares) {
    PodRequest request = FractionPod("pod", row.milli, row.count);
    request.asks.front().memory = row.memory;
    request.asks.front().exclusive = row.alone;
    EXPECT_EQ(DescribeRequest(request), row.text);
  }
}

TEST(ExplainText, AdviceIsForThoseWhoCanAct) {
  EXPECT_EQ(AdviceFor(Reason::kMixedStyles), "ask in one style only");
  EXPECT_EQ(AdviceFor(Reason::kNoRoom), AdviceFor(Reason::kNumaMismatch));
  EXPECT_EQ(AdviceFor(Reason::kNone), "");
  EXPECT_EQ(AdviceFor(Reason::kPodGone), "");
}

TEST(ExplainText, AMisfitSaysWhatIsFree) {
  NodeEntry entry;
  entry.state.SetFacts(StockNode("node", 4), 0);
  const std::string text =
      DescribeMisfit(entry, WholePod("pod", 8), GpuPolicy(), Reason::kTooManyPerNode, At(0));
  EXPECT_EQ(text, "asks 8 GPUs; the node has 4 cards");
  EXPECT_THAT(DescribeMisfit(entry, WholePod("pod", 8), GpuPolicy(), Reason::kNoRoom, At(0)),
              testing::HasSubstr("4 of 4 cards idle"));
}

TEST(ExplainText, WhoNeverFitsForItsContextIsToldSo) {
  NodeEntry entry;
  entry.state.SetFacts(SharedNode("node", 1, 4, true), 0);
  PodRequest request = FractionPod("pod", 1);
  request.asks[0].memory = {MemoryNeed::Kind::kMib, 46'000};
  GpuPolicy policy;
  const auto text = [&](Reason reason) {
    return DescribeMisfit(entry, request, policy, reason, At(0));
  };
  constexpr const char* kContexts =
      "; by GPUPolicy the context of each container that asks an amount of memory takes 400 MiB "
      "more";
  EXPECT_THAT(text(Reason::kTooLarge), testing::Not(testing::HasSubstr("context")));
  policy.sharing_limits = {{"any", 0, Mebibytes::Of(400)}};
  EXPECT_THAT(text(Reason::kTooLarge), testing::EndsWith(kContexts));
  EXPECT_THAT(text(Reason::kNoRoom), testing::EndsWith(kContexts));
}

TEST(ExplainText, AReplicaRuleNamesWhoseItIs) {
  NodeEntry entry;
  entry.state.SetFacts(SharedNode("node", 1, 4, true, SharingMethod::kMps), 0);
  GpuPolicy policy;
  const auto text = [&] {
    return DescribeMisfit(entry, SharedPod("pod", 2), policy, Reason::kOneReplica, At(0));
  };
  EXPECT_EQ(text(),
            "asks 2 shared GPUs; under MPS NVIDIA's device plugin gives a container one "
            "replica");
  policy.several_replicas = Permission::kRefuse;
  EXPECT_EQ(text(),
            "asks 2 shared GPUs; by sharing.requestsGreaterThanOne of a GPUPolicy a "
            "container has one replica there");
}

TEST(ExplainText, LimitsThatAPodSetsItselfAreHeldAgainstTheServers) {
  const auto inventory = [](const NodeFacts& facts) { return BuildInventory(facts, 0); };
  const Inventory mps = inventory(SharedNode("n", 1, 4, true, SharingMethod::kMps));
  const Inventory sliced = inventory(SharedNode("n", 1, 4, true));
  const Inventory agent = inventory(HamiNode("n", 1));
  const OwnLimits half{0, MilliGpu::Of(500), std::nullopt, ""};
  const OwnLimits quarter{0, MilliGpu::Of(250), std::nullopt, ""};
  const OwnLimits little{0, MilliGpu::Of(101), std::nullopt, ""};
  const OwnLimits memory{0, std::nullopt, Mebibytes::Of(20'000), ""};
  const OwnLimits bad{0, std::nullopt, std::nullopt, "expected this, found that"};
  const struct {
    const OwnLimits& own;
    const Inventory* there;
    std::string text;
  } rows[] = {
      {half, &mps,
       "container main sets 50 % of the threads itself: without effect, since the MPS server gives "
       "each container 25 %"},
      {quarter, &mps,
       "container main sets 25 % of the threads itself: as the MPS server does by itself"},
      {little, &mps,
       "container main sets 10.1 % of the threads itself: it is held to less than its part, and "
       "charged for the part"},
      {memory, &mps,
       "container main sets a limit of 20000 MiB itself: without effect, since the MPS server "
       "gives "
       "each container 11517 MiB"},
      {half, &sliced,
       "container main sets 50 % of the threads itself: without effect, since nobody says that an "
       "MPS server is on the node"},
      {half, &agent,
       "container main sets 50 % of the threads itself: its MPS server, if the node has one, holds "
       "it to that; it is no request"},
      {half, nullptr,
       "container main sets 50 % of the threads itself: its MPS server, if the node has one, holds "
       "it to that; it is no request"},
      {bad, &mps, "container main: expected this, found that: no limit"},
  };
  for (const auto& row : rows) {
    PodRequest request = SharedPod("pod", 1);
    request.own_limits = {row.own};
    EXPECT_THAT(DescribeOwnLimits(request, row.there), testing::ElementsAre(row.text));
  }
  EXPECT_TRUE(DescribeOwnLimits(SharedPod("pod", 1), &mps).empty());
}

TEST(NodeView, ANodeShowsItsGpusAndWhatIsFree) {
  NodeEntry entry;
  entry.state.SetFacts(StockNode("node", 4), 0);
  entry.closed = Reason::kNone;
  const NodeView view = ViewNode(NodeName("node"), entry);
  EXPECT_EQ(view.name, NodeName("node"));
  ASSERT_EQ(view.gpus.size(), 4u);
  for (const GpuView& gpu : view.gpus) {
    EXPECT_EQ(gpu.free_milli, kWholeGpu);
    EXPECT_EQ(gpu.free_memory, gpu.memory);
    EXPECT_TRUE(gpu.pods.empty());
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::test
