#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "scheduler/engine/what_if.h"
#include "test/unit/scheduler/engine/engine_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Bound;
using test::FractionPod;
using test::HamiPod;
using test::MigPod;
using test::Pending;
using test::WholePod;
using testing::ElementsAre;
using testing::IsEmpty;

// ---- lives --------------------------------------------------------------------------------------

TEST_F(EngineTest, DevicesAreHeldUntilATerminalPhaseAndNotReturnedTwice) {
  Nodes({test::StockNode("a", 1)});
  const PodRequest pod = WholePod("p", 1);
  Place(pod, "a");
  PodFacts terminating = Bound(pod, "a");
  terminating.terminating = true;
  engine_.UpsertPod(terminating, now_);
  EXPECT_EQ(FreeMilli("a"), 0) << "a deletion timestamp frees nothing";
  engine_.UpsertPod(Pending(pod), now_);
  EXPECT_EQ(FreeMilli("a"), 0) << "an object older than the bind frees nothing";
  PodFacts done = Bound(pod, "a");
  done.phase = PodPhase::kSucceeded;
  engine_.UpsertPod(done, now_);
  EXPECT_EQ(FreeMilli("a"), 1000);
  engine_.UpsertPod(Bound(pod, "a"), now_);
  EXPECT_EQ(FreeMilli("a"), 1000) << "a pod never leaves a terminal phase";
}

TEST_F(EngineTest, PodsOthersPlacedCountAndMayOverUse) {
  Nodes({test::StockNode("a", 1)});
  Place(WholePod("p", 1), "a");
  engine_.UpsertPod(Bound(WholePod("foreign", 1), "a"), now_);
  EXPECT_EQ(FreeMilli("a"), -1000) << "shown, not hidden";
  EXPECT_EQ(ReasonOn(WholePod("q", 1), "a"), "NoRoom");
}

TEST_F(EngineTest, RecordsAreBelievedOnlyWhenTheyDescribeTheNode) {
  Nodes({test::HamiNode("a", 2)});
  Allocation forged;
  forged.epoch = 1;
  forged.knowledge = Knowledge::kExact;
  forged.containers = {
      {"main",
       {Device{0, GpuUuid("GPU-elsewhere"), MilliGpu::Of(1), Mebibytes::Of(1), std::nullopt}}}};
  engine_.UpsertPod(Bound(HamiPod("forger", 1, 8000, 50), "a", forged), now_);
  EXPECT_EQ(ReasonOn(HamiPod("p", 1, 100), "a"), "DevicesUnknown") << "unknown is busy";
  EXPECT_EQ(engine_.Totals().pods_devices_unknown, 1);
  // A record that names a device of the node but too little of it counts with what was asked.
  engine_.DeletePod(PodUid("uid-forger"), now_);
  forged.containers[0].devices[0].uuid = GpuUuid("GPU-a-1");
  engine_.UpsertPod(Bound(HamiPod("forger", 1, 8000, 50), "a", forged), now_);
  EXPECT_EQ(FreeMilli("a"), 1500);
  // A record from the future was not written by us.
  forged.epoch = 99;
  engine_.UpsertPod(Bound(HamiPod("other", 1, 100), "a", forged), now_);
  EXPECT_EQ(ReasonOn(HamiPod("p", 1, 100), "a"), "DevicesUnknown");
}

// Its annotations are taken off while it waits: it is bound as any pod is, and no node is closed
// for devices that nobody can name.
TEST_F(EngineTest, APodThatAsksForNothingAnyMoreIsBoundWithoutARecord) {
  Nodes({test::HamiNode("a", 2)});
  const PodRequest asked = test::FractionPod("p", 500);
  engine_.UpsertPod(test::Pending(asked), now_);
  Filter(asked);
  PodRequest plain = test::EmptyRequest("p");
  plain.uid = asked.uid;
  engine_.UpsertPod(test::Pending(plain), now_);
  const BindPlan plan = engine_.Bind(plain.name, plain.uid, NodeName("a"), now_);
  EXPECT_EQ(plan.kind, BindPlan::Kind::kWrite);
  EXPECT_FALSE(plan.asks_gpu);
  EXPECT_TRUE(plan.allocation.containers.empty());
  engine_.UpsertPod(Bound(plain, "a"), now_);
  EXPECT_EQ(ReasonOn(HamiPod("next", 1, 100), "a"), "");
  EXPECT_EQ(FreeMilli("a"), 2000);
  // And the other way round.
  engine_.UpsertPod(test::Pending(test::EmptyRequest("q")), now_);
  engine_.UpsertPod(test::Pending(HamiPod("q", 1, 1000, 50)), now_);
  EXPECT_TRUE(Place(HamiPod("q", 1, 1000, 50), "a"));
  EXPECT_EQ(FreeMilli("a"), 1500);
  EXPECT_THAT(engine_.Audit(), testing::IsEmpty());
}

// All are asked for before the first is bound, as when they are created at once.
TEST_F(EngineTest, SixteenHalvesOnEightCardsLandTwoACardAndNoneWaits) {
  Nodes({test::HamiNode("a", 8)});
  std::vector<PodRequest> halves;
  for (int i = 0; i < 16; ++i) halves.push_back(HamiPod("half" + std::to_string(i), 1, 7'554, 50));
  for (const PodRequest& half : halves) {
    EXPECT_EQ(Filter(half), std::vector<std::string>{"a"}) << half.name.str();
  }
  for (const PodRequest& half : halves) EXPECT_TRUE(Place(half, "a")) << half.name.str();
  const NodeView shared = engine_.Nodes(NodeName(), 1, now_).at(0);
  for (const GpuView& gpu : shared.gpus) {
    EXPECT_EQ(gpu.pods.size(), 2U) << gpu.uuid.str();
    EXPECT_EQ(gpu.free_milli, MilliGpu::Zero()) << gpu.uuid.str();
  }
  EXPECT_EQ(ReasonOn(HamiPod("late", 1, 100, 1), "a"), "NoRoom");
  EXPECT_THAT(engine_.Audit(), testing::IsEmpty());
}

TEST_F(EngineTest, AnAgentsKeysOnANodeWithoutAgentSayNothing) {
  Nodes({test::StockNode("a", 2)});
  Allocation forged;  // as read from an agent's annotations: no epoch
  forged.knowledge = Knowledge::kExact;
  forged.containers = {
      {"main",
       {Device{0, GpuUuid("GPU-elsewhere"), MilliGpu::Of(1), Mebibytes::Of(1), std::nullopt}}}};
  engine_.UpsertPod(Bound(WholePod("forger", 1), "a", forged), now_);
  EXPECT_EQ(engine_.Totals().pods_devices_unknown, 1);
  EXPECT_EQ(FreeMilli("a"), 1000) << "it counts with what it asks";
  EXPECT_EQ(ReasonOn(WholePod("q", 1), "a"), "") << "and keeps nobody away";
  // The index alone is what styles without an agent write.
  forged.containers[0].devices[0].uuid = GpuUuid();
  engine_.UpsertPod(Bound(WholePod("indexed", 1), "a", forged), now_);
  EXPECT_EQ(engine_.Totals().pods_devices_unknown, 1);
}

TEST_F(EngineTest, GhostsOfADeletedNodeComeBackWithIt) {
  Nodes({test::StockNode("a", 2)});
  Place(WholePod("p", 1), "a");
  engine_.DeleteNode(NodeName("a"), now_);
  EXPECT_EQ(ReasonOn(WholePod("q", 1), "a"), "UnknownNode");
  engine_.UpsertNode(test::StockNode("a", 2), now_);
  EXPECT_EQ(FreeMilli("a"), 1000);
}

TEST_F(EngineTest, DevicesThatComeBackAreLeftAloneForHalfAMinute) {
  Nodes({test::StockNode("a", 8)});
  Place(WholePod("p", 1), "a");
  NodeFacts gone = test::StockNode("a", 8);
  gone.gpu->allocatable = 0;
  engine_.UpsertNode(gone, now_);
  EXPECT_EQ(ReasonOn(WholePod("q", 1), "a"), "Unhealthy");
  engine_.UpsertNode(test::StockNode("a", 8), now_);
  EXPECT_EQ(ReasonOn(WholePod("q", 1), "a"), "NodeUnstable");
  now_ = At(31);
  EXPECT_THAT(Filter(WholePod("q", 1)), ElementsAre("a"));
}

TEST_F(EngineTest, AKubeletThatRefusesThreePodsRests) {
  Nodes({test::StockNode("a", 8)});
  for (int i = 0; i < 3; ++i) {
    const PodRequest pod = WholePod(fmt::format("p{}", i), 1);
    EXPECT_TRUE(Place(pod, "a"));
    PodFacts failed = Bound(pod, "a");
    failed.phase = PodPhase::kFailed;
    failed.refused_by_kubelet = true;
    engine_.UpsertPod(failed, now_);
  }
  EXPECT_EQ(ReasonOn(WholePod("q", 1), "a"), "NodeRefusing");
  now_ = At(301);
  EXPECT_THAT(Filter(WholePod("q", 1)), ElementsAre("a"));
}

TEST_F(EngineTest, OneUnhealthyCardOfACountedNodeIsNotGivenOut) {
  // Hazard 33: 8 of 8 used, one falls ill, one pod ends: the free one may be the ill one.
  Nodes({test::StockNode("a", 8)});
  for (int i = 0; i < 8; ++i) Place(WholePod(fmt::format("p{}", i), 1), "a");
  NodeFacts ill = test::StockNode("a", 8);
  ill.gpu->allocatable = 7;
  engine_.UpsertNode(ill, now_);
  engine_.DeletePod(PodUid("uid-p0"), now_);
  EXPECT_EQ(ReasonOn(WholePod("q", 1), "a"), "NoRoom");
  engine_.DeletePod(PodUid("uid-p1"), now_);
  EXPECT_THAT(Filter(WholePod("q", 1)), ElementsAre("a"));
}

// ---- who is brought back ------------------------------------------------------------------------

TEST_F(EngineTest, APodRefusedAMomentBeforeRoomAppearsIsPokedOnce) {
  Nodes({test::StockNode("a", 1)});
  Place(WholePod("holder", 1), "a");
  const PodRequest waiting = WholePod("waiting", 1);
  const PodRequest too_large = WholePod("too-large", 2);
  engine_.UpsertPod(test::Pending(waiting), now_);
  engine_.UpsertPod(test::Pending(too_large), now_);
  Filter(waiting);
  Filter(too_large);
  EXPECT_THAT(std::exchange(engine_.effects().requeue, {}), IsEmpty());
  now_ += Millis(300);  // kube-scheduler heard of the end before we did
  engine_.DeletePod(PodUid("uid-holder"), now_);
  EXPECT_THAT(std::exchange(engine_.effects().requeue, {}),
              ElementsAre(std::pair(waiting.name, waiting.uid)));
  EXPECT_THAT(std::exchange(engine_.effects().requeue, {}), IsEmpty());
}

TEST_F(EngineTest, APodRefusedLongBeforeIsLeftToKubeSchedulersOwnEvents) {
  Nodes({test::StockNode("a", 1)});
  Place(WholePod("holder", 1), "a");
  engine_.UpsertPod(test::Pending(WholePod("waiting", 1)), now_);
  Filter(WholePod("waiting", 1));
  now_ += Millis(2'500);
  engine_.DeletePod(PodUid("uid-holder"), now_);
  EXPECT_THAT(std::exchange(engine_.effects().requeue, {}), IsEmpty());
}

TEST_F(EngineTest, ANodeThatOpensByTimePokesWhoFitsThere) {
  Nodes({test::StockNode("a", 8)});
  NodeFacts gone = test::StockNode("a", 8);
  gone.gpu->allocatable = 0;
  engine_.UpsertNode(gone, now_);
  engine_.UpsertNode(test::StockNode("a", 8), now_);
  const PodRequest waiting = WholePod("waiting", 1);
  engine_.UpsertPod(test::Pending(waiting), now_);
  EXPECT_EQ(ReasonOn(waiting, "a"), "NodeUnstable");
  now_ = At(31);
  engine_.Tick(now_);
  EXPECT_THAT(std::exchange(engine_.effects().requeue, {}),
              ElementsAre(std::pair(waiting.name, waiting.uid)));
}

// ---- devices ------------------------------------------------------------------------------------

TEST_F(EngineTest, SharesArePackedAndWholeCardsLeftWhole) {
  Nodes({test::StockNode("a", 3)});
  EXPECT_THAT(Devices(Bind(FractionPod("p1", 500), "a").allocation), ElementsAre("0:500"));
  EXPECT_THAT(Devices(Bind(FractionPod("p2", 500), "a").allocation), ElementsAre("0:500"));
  EXPECT_THAT(Devices(Bind(WholePod("p3", 1), "a").allocation), ElementsAre("1:1000"));
  EXPECT_THAT(Devices(Bind(FractionPod("p4", 300, 1), "a").allocation), ElementsAre("2:300"));
  EXPECT_EQ(Bind(WholePod("p5", 1), "a").reason, Reason::kNoRoom);
}

TEST_F(EngineTest, SixteenHalvesOnEightCardsLandTwoACard) {
  Nodes({test::StockNode("a", 8)});
  std::map<std::string, int> users;
  for (int i = 0; i < 16; ++i) {
    const PodRequest pod = FractionPod(fmt::format("p{}", i), 500);
    ASSERT_THAT(Filter(pod), ElementsAre("a"));
    for (const std::string& device : Devices(Bind(pod, "a").allocation)) ++users[device];
  }
  EXPECT_EQ(users.size(), 8U);
  for (const auto& [card, count] : users) EXPECT_EQ(count, 2) << card;
}

TEST_F(EngineTest, InitContainersReuseThePodsCards) {
  Nodes({test::HamiNode("a", 1)});
  PodRequest pod = HamiPod("p", 1, 3000, 20);
  pod.containers = {{"warm", ContainerRole::kInit, 1}, {"main", ContainerRole::kApp, 1}};
  Ask warm = pod.asks[0];
  warm.memory.value = 9000;
  pod.asks[0].container = 1;
  pod.asks.insert(pod.asks.begin(), warm);
  const BindPlan plan = Bind(pod, "a");
  ASSERT_EQ(plan.kind, BindPlan::Kind::kWrite);
  EXPECT_THAT(Devices(plan.allocation), ElementsAre("0:200", "0:200"));
  EXPECT_EQ(FreeMilli("a"), 800) << "the phases follow each other";
  EXPECT_TRUE(Place(HamiPod("q", 1, 15109 - 9000), "a"));
  EXPECT_FALSE(Place(HamiPod("r", 1, 1), "a"));
}

TEST_F(EngineTest, CardsWithTooLittleOfEitherDimensionAreFull) {
  Nodes({test::HamiNode("a", 1)});
  EXPECT_TRUE(Place(HamiPod("memory", 1, 15000), "a"));
  EXPECT_FALSE(Place(HamiPod("p", 1, 200, 10), "a"));
  EXPECT_TRUE(Place(HamiPod("q", 1, 109, 90), "a"));
}

// ---- questions ----------------------------------------------------------------------------------

TEST_F(EngineTest, WhatIfPlacesInTurnAndChangesNothing) {
  Nodes({test::StockNode("a", 2)});
  const std::string before = engine_.Digest();
  const std::vector<PodRequest> pods = {WholePod("p1", 1), WholePod("p2", 1), WholePod("p3", 1)};
  const std::vector<WhatIfResult> results = engine_.WhatIf(pods, now_);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0].fits && results[1].fits);
  EXPECT_NE(results[0].allocation, results[1].allocation);
  EXPECT_EQ(results[2].reason, Reason::kNoRoom);
  EXPECT_EQ(engine_.Digest(), before);
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(EngineTest, AWhatIfOfSeveralCallsIsThatOfOneAndLeavesNothingBetweenThem) {
  Nodes({test::StockNode("a", 3), test::StockNode("b", 1)});
  const std::vector<PodRequest> pods = {WholePod("p1", 1), WholePod("p2", 2), WholePod("p3", 1),
                                        WholePod("p4", 1)};
  const std::vector<WhatIfResult> whole = engine_.WhatIf(pods, now_);
  const std::string before = engine_.Digest();
  WhatIfCase question{pods};
  int calls = 0;
  while (!question.done()) {
    engine_.WhatIf(
        question, [] { return false; }, now_);
    ++calls;
    EXPECT_EQ(engine_.Digest(), before);
    EXPECT_THAT(engine_.Audit(), IsEmpty());
  }
  EXPECT_EQ(calls, 4) << "one pod a call";
  for (std::size_t i = 0; i < pods.size(); ++i) {
    EXPECT_EQ(question.results[i].node, whole[i].node) << i;
    EXPECT_EQ(question.results[i].allocation, whole[i].allocation) << i;
    EXPECT_EQ(question.results[i].reason, whole[i].reason) << i;
  }
}

TEST_F(EngineTest, BetweenTwoCallsOfAWhatIfNodesAndPodsComeAndGo) {
  Nodes({test::StockNode("a", 1), test::StockNode("b", 2)});
  WhatIfCase question{{WholePod("p1", 1), WholePod("p2", 1), WholePod("p3", 2)}};
  const auto next = [&] {
    engine_.WhatIf(
        question, [] { return false; }, now_);
  };
  next();
  ASSERT_TRUE(question.results[0].fits);
  engine_.DeleteNode(question.results[0].node, now_);
  const char* const left = question.results[0].node == NodeName("a") ? "b" : "a";
  EXPECT_TRUE(Place(WholePod("real", 1), left)) << "nothing of the question is held";
  next();
  next();
  EXPECT_TRUE(question.done());
  EXPECT_EQ(question.results[2].reason, Reason::kNoRoom);
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(EngineTest, AUidThatComesBackUnderAnotherNameHarmsNoView) {
  Nodes({test::StockNode("a", 2)});
  PodRequest pod = WholePod("first", 1);
  Filter(pod);
  const PodName old_name = pod.name;
  pod.name.name = "second";
  PodFacts facts;
  facts.request = pod;
  engine_.UpsertPod(facts, now_);
  engine_.DeletePod(pod.uid, now_);
  EXPECT_THAT(engine_.Pods({}, {}, 10), IsEmpty());
  EXPECT_EQ(engine_.Explain(old_name, now_), std::nullopt);
}

TEST_F(EngineTest, ExplainSaysOfEveryNodeWhatWasAskedAndFound) {
  Nodes({test::StockNode("a", 2), test::StockNode("b", 2)});
  Place(WholePod("p", 1), "a");
  const PodRequest waiting = WholePod("q", 2);
  NodeFacts cordoned = test::StockNode("b", 2);
  cordoned.cordoned = true;
  engine_.UpsertNode(cordoned, now_);
  Filter(waiting);
  const auto explanation = engine_.Explain(waiting.name, now_);
  ASSERT_TRUE(explanation.has_value());
  ASSERT_EQ(explanation->nodes.size(), 2U);
  EXPECT_EQ(explanation->nodes[0].reason, Reason::kNoRoom);
  EXPECT_EQ(explanation->nodes[0].detail,
            "asks 2 GPUs; nvidia.com/gpu: 1 of 2 in use; 1 of 2 cards idle, most free on one card "
            "1 GPU and 81559 MiB");
  EXPECT_EQ(explanation->nodes[1].reason, Reason::kNodeCordoned);
  EXPECT_EQ(explanation->pod.reason, Reason::kNoRoom);
  EXPECT_FALSE(explanation->advice.empty());
  EXPECT_EQ(engine_.Explain({"team", "nobody"}, now_), std::nullopt);
}

TEST_F(EngineTest, TotalsCountEveryCardOnce) {
  Nodes({test::StockNode("a", 4), test::MigNode("m", 1, 0, {{"3g.40gb", 2}})});
  Place(WholePod("p", 1), "a");
  Place(FractionPod("q", 250), "a");
  Place(MigPod("r", "3g.40gb", 1), "m");
  const EngineTotals totals = engine_.Totals();
  EXPECT_EQ(totals.pods_bound, 3);
  ASSERT_EQ(totals.models.size(), 2U);
  EXPECT_EQ(totals.models[1].gpus, 4);
  EXPECT_EQ(totals.models[1].allocated, MilliGpu::Of(1250));
  EXPECT_EQ(totals.models[0].gpus, 1);
  EXPECT_GE(totals.models[0].allocated, MilliGpu::Of(428));
}

}  // namespace THIS_FILE
}  // namespace tranche
