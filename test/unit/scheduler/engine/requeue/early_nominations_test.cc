// Nodes told to kube-scheduler before it asks: for whom, which, and when they are taken back.
#include "scheduler/engine/requeue/early_nominations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "test/unit/scheduler/engine/engine_quota_fixture.h"

namespace tranche {
namespace THIS_FILE {

using std::chrono::seconds;
using test::StockNode;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class EarlyNominationsTest : public EngineQuotaTest {
 protected:
  EarlyNominationsTest() {
    Wish(Nominate::kOn);
    engine_.FinishRestore(now_);
  }
  void Wish(Nominate nominate) {
    GpuPolicy policy = Defaults();
    policy.nominate = nominate;
    test::SetPolicy(engine_, policy);
  }
  static PodRequest Ours(const std::string& name, int64_t gpus = 1) {
    PodRequest request = Pod("ns", name, gpus);
    request.scheduler = "gpu-scheduler";
    return request;
  }
  void Show(const PodRequest& request) { engine_.UpsertPod(test::Pending(request), now_); }
  void ShowNominated(const PodRequest& request, const std::string& node) {
    PodFacts pod = test::Pending(request);
    pod.nominated = NodeName(node);
    engine_.UpsertPod(pod, now_);
  }
  // What has been told since the last call: "pod to node", or "pod taken back".
  std::vector<std::string> Told() {
    std::vector<std::string> texts;
    for (const Nomination& one : std::exchange(engine_.effects().reclaims.nominations, {})) {
      EXPECT_TRUE(one.early);
      texts.push_back(one.pod.name + (one.node.empty() ? " taken back" : " to " + one.node.str()));
    }
    return texts;
  }
  // kube-scheduler asks about these nodes; the answer's first, or the reason.
  std::string Ask(const PodRequest& request, const std::vector<std::string>& nodes) {
    const std::vector<std::string_view> names(nodes.begin(), nodes.end());
    engine_.Filter(request, names, now_, answer_);
    if (answer_.chosen.empty()) return std::string(Describe(answer_.reason).code);
    return nodes[answer_.chosen.front()];
  }
  EarlyTotals Totals() const { return engine_.Totals().early; }
};

TEST_F(EarlyNominationsTest, AWaitingPodsNodeIsTheOneFilterWouldAnswerFirst) {
  Nodes({StockNode("n1", 4), StockNode("n2", 4)});
  ASSERT_TRUE(Place(test::WholePod("runs", 3), "n2"));
  Told();
  Show(Ours("pod"));
  EXPECT_THAT(Told(), ElementsAre("pod to n2"));
  ShowNominated(Ours("pod"), "n2");
  EXPECT_EQ(Ask(Ours("pod"), {"n2"}), "n2");
  EXPECT_EQ(Totals().told, 1);
  EXPECT_EQ(Totals().taken, 1);
  ASSERT_TRUE(Place(Ours("pod"), "n2"));
  Pass(seconds(10));
  EXPECT_THAT(Told(), IsEmpty()) << "a binding ends the nomination";
  EXPECT_EQ(Totals().outstanding, 0);
}

TEST_F(EarlyNominationsTest, ThoseBehindCountOnTheRoomThatIsLeft) {
  Nodes({StockNode("n1", 2), StockNode("n2", 2)});
  for (const char* name : {"a", "b", "c", "d", "e"}) Show(Ours(name));
  EXPECT_THAT(Told(), ElementsAre("a to n1", "b to n1", "c to n2", "d to n2"))
      << "and there is none left for e";
}

TEST_F(EarlyNominationsTest, InSmallFleetsNobodyIsToldUnlessThePolicyWantsIt) {
  Nodes({StockNode("n1", 4), StockNode("n2", 4)});
  Wish(Nominate::kAuto);
  for (int i = 0; i < 20; ++i) Show(Ours("pod-" + std::to_string(i)));
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(EarlyNominationsTest, InLargeFleetsThoseAreToldWhomKubeSchedulerReachesLater) {
  Wish(Nominate::kAuto);
  for (int i = 0; i < 1'000; ++i)
    engine_.UpsertNode(StockNode("n" + std::to_string(10'000 + i), 1), now_);
  for (int i = 0; i < 8; ++i) Show(Ours("head-" + std::to_string(i)));
  EXPECT_THAT(Told(), IsEmpty()) << "it has them in hand";
  Show(Ours("behind"));
  EXPECT_THAT(Told(), ElementsAre("behind to n10000"));
  PodRequest urgent = Ours("urgent");
  urgent.priority = 100;
  Show(urgent);
  EXPECT_THAT(Told(), ElementsAre("head-7 to n10001")) << "it stands behind the urgent one now";
}

TEST_F(EarlyNominationsTest, OfTheSpecOnlyWhatWeSeeDecides) {
  NodeFacts labelled = StockNode("labelled", 4), tainted = StockNode("a-tainted", 4);
  labelled.labels = LabelText(Labels{{"disk", "fast"}});
  tainted.taints = {{"dedicated", "x", "NoSchedule"}};
  Nodes({StockNode("b-plain", 4), labelled, tainted});
  PodRequest fast = Ours("fast"), tolerant = Ours("tolerant");
  NodeConstraints demands, tolerates;
  demands.selector = {{"disk", "fast"}};
  tolerates.selector = {};
  tolerates.tolerations = {{"dedicated", true, "", ""}};
  fast.constraints = std::make_shared<const NodeConstraints>(demands);
  tolerant.constraints = std::make_shared<const NodeConstraints>(tolerates);
  Show(fast);
  Show(tolerant);
  Show(Ours("plain", 4));
  EXPECT_THAT(Told(), ElementsAre("fast to labelled", "tolerant to labelled", "plain to b-plain"));
}

struct Left {
  const char* name;
  std::function<void(PodFacts&)> change;
};

class LeftToKubeScheduler : public EarlyNominationsTest,
                            public testing::WithParamInterface<Left> {};

TEST_P(LeftToKubeScheduler, IsToldNothing) {
  Nodes({StockNode("n1", 4)});
  PodFacts pod = test::Pending(Ours("pod"));
  GetParam().change(pod);
  engine_.UpsertPod(pod, now_);
  EXPECT_THAT(Told(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Pods, LeftToKubeScheduler,
    testing::Values(
        Left{"judged_by_what_we_cannot_see",
             [](PodFacts& pod) { pod.request.judged_elsewhere = true; }},
        Left{"of_a_gang", [](PodFacts& pod) { pod.request.gang = "gang"; }},
        Left{"gated", [](PodFacts& pod) { pod.gated = pod.foreign_gates = true; }},
        Left{"known_to_fit_nowhere", [](PodFacts& pod) { pod.unschedulable = true; }},
        Left{"terminating", [](PodFacts& pod) { pod.terminating = true; }},
        Left{"nominated_already", [](PodFacts& pod) { pod.nominated = NodeName("n2"); }},
        Left{"of_another_scheduler", [](PodFacts& pod) { pod.request.scheduler = "other"; }},
        Left{"too_large", [](PodFacts& pod) { pod.request.asks.front().count = 5; }},
        Left{"bound", [](PodFacts& pod) { pod.node = NodeName("n1"); }}),
    [](const auto& test) { return test.param.name; });

TEST_F(EarlyNominationsTest, OffTellsNobody) {
  Nodes({StockNode("n1", 4)});
  Wish(Nominate::kOff);
  Show(Ours("pod"));
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(EarlyNominationsTest, APodThatWasAskedAboutIsToldNothing) {
  Nodes({StockNode("n1", 4)});
  EXPECT_EQ(Ask(Ours("pod"), {"n1"}), "n1");
  Show(Ours("pod"));
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(EarlyNominationsTest, ThoseToldTogetherStayWithinTheirTeamsQuota) {
  Nodes({StockNode("n1", 8)});
  GpuPolicy policy = Defaults();
  policy.nominate = Nominate::kOn;
  Declare({.quotas = {test::Quota("team").Owns("ns").Line("h100", "2")}}, policy);
  Told();
  for (const char* name : {"a", "b", "c"}) Show(Ours(name));
  EXPECT_THAT(Told(), ElementsAre("a to n1", "b to n1"));
}

TEST_F(EarlyNominationsTest, NothingIsKeptFromAnybody) {
  Nodes({StockNode("n1", 1)});
  Show(Ours("told"));
  EXPECT_THAT(Told(), ElementsAre("told to n1"));
  EXPECT_EQ(Ask(Ours("other"), {"n1"}), "n1") << "there is no other room";
  ASSERT_TRUE(Place(Ours("other"), "n1"));
  ShowNominated(Ours("told"), "n1");
  Pass(seconds(1));
  EXPECT_THAT(Told(), ElementsAre("told taken back"));
  EXPECT_EQ(Totals().withdrawn, 1);
  EXPECT_EQ(engine_.Audit(), std::vector<std::string>());
}

TEST_F(EarlyNominationsTest, WhatANodeIsNoLongerGoodForIsTakenBack) {
  Nodes({StockNode("n1", 1)});
  Show(Ours("pod"));
  EXPECT_THAT(Told(), ElementsAre("pod to n1"));
  ShowNominated(Ours("pod"), "n1");
  NodeFacts cordoned = StockNode("n1", 1);
  cordoned.cordoned = true;
  engine_.UpsertNode(cordoned, now_);
  Pass(seconds(1));
  EXPECT_THAT(Told(), ElementsAre("pod taken back"));
}

TEST_F(EarlyNominationsTest, ANodeKubeSchedulerDoesNotOfferCostsOneLook) {
  Nodes({StockNode("n1", 1), StockNode("n2", 2)});
  Show(Ours("pod"));
  EXPECT_THAT(Told(), ElementsAre("pod to n1"));
  ShowNominated(Ours("pod"), "n1");
  EXPECT_EQ(Ask(Ours("pod"), {"n2"}), "n2") << "all that passed its own filters";
  EXPECT_EQ(Totals().refused, 1);
  Pass(seconds(2));
  EXPECT_THAT(Told(), IsEmpty()) << "it is about to be bound";
  Pass(seconds(2));
  EXPECT_THAT(Told(), ElementsAre("pod taken back"));
  Pass(seconds(60));
  EXPECT_THAT(Told(), IsEmpty()) << "it is asked about in full from now on";
}

// It asks for more memory than any node has, say: we are never asked about it.
TEST_F(EarlyNominationsTest, WhoFitsNowhereByWhatWeDoNotKnowLocksNoNode) {
  Nodes({StockNode("n1", 1)});
  Show(Ours("pod"));
  EXPECT_THAT(Told(), ElementsAre("pod to n1"));
  PodFacts pod = test::Pending(Ours("pod"));
  pod.nominated = NodeName("n1");
  pod.unschedulable = true;
  engine_.UpsertPod(pod, now_);
  EXPECT_THAT(Told(), ElementsAre("pod taken back"));
  EXPECT_EQ(Totals().refused, 1);
  EXPECT_EQ(engine_.Totals().tentative_placements, 0);
  pod.nominated = NodeName();
  engine_.UpsertPod(pod, now_);
  Pass(seconds(200));
  EXPECT_THAT(Told(), IsEmpty()) << "not again";
}

TEST_F(EarlyNominationsTest, WhoIsAskedAboutBeforeItWasHeardOfIsLate) {
  Nodes({StockNode("n1", 1), StockNode("n2", 2)});
  Show(Ours("pod"));
  EXPECT_EQ(Ask(Ours("pod"), {"n1", "n2"}), "n1");
  EXPECT_EQ(Totals().late, 1);
  Show(Ours("sampled"));
  EXPECT_EQ(Ask(Ours("sampled"), {"n1"}), "n1") << "it does not look at all nodes";
  EXPECT_EQ(Totals().late, 2);
  EXPECT_EQ(Totals().refused, 0);
}

TEST_F(EarlyNominationsTest, WhereManyAreRefusedNobodyIsToldForAWhile) {
  Nodes({StockNode("n1", 8), StockNode("n2", 8), StockNode("other", 8)});
  for (int i = 0; i < 32; ++i) {
    const PodRequest pod = Ours("pod-" + std::to_string(i));
    Show(pod);
    ShowNominated(pod, Told().back().substr(pod.name.name.size() + 4));
    Ask(pod, {"other"});
    engine_.DeletePod(pod.uid, now_);
  }
  Told();
  Show(Ours("quiet"));
  EXPECT_THAT(Told(), IsEmpty());
  Pass(seconds(61));
  EXPECT_THAT(Told(), SizeIs(1));
}

TEST_F(EarlyNominationsTest, WhatSomebodyElseNominatedStays) {
  Nodes({StockNode("n1", 1), StockNode("n2", 1)});
  Show(Ours("pod"));
  EXPECT_THAT(Told(), ElementsAre("pod to n1"));
  Ask(Ours("pod"), {"n2"});
  ShowNominated(Ours("pod"), "n2");
  Pass(seconds(10));
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(EarlyNominationsTest, NoRoomOfLeaversIsKeptForIt) {
  Nodes({StockNode("n1", 2)});
  ASSERT_TRUE(Place(test::WholePod("runs", 1), "n1"));
  PodFacts leaves = BoundFacts(test::WholePod("runs", 1), "n1");
  leaves.terminating = true;
  leaves.deletion_at = now_ + seconds(30);
  engine_.UpsertPod(leaves, now_);
  Told();
  Show(Ours("pod"));
  EXPECT_THAT(Told(), ElementsAre("pod to n1"));
  ShowNominated(Ours("pod"), "n1");
  EXPECT_EQ(engine_.Totals().tentative_placements, 1);
  EXPECT_EQ(Ask(Ours("other"), {"n1"}), "n1") << "nothing is kept";
}

TEST_F(EarlyNominationsTest, AToldPodThatGoesLeavesNothing) {
  Nodes({StockNode("n1", 1)});
  Show(Ours("pod"));
  EXPECT_THAT(Told(), ElementsAre("pod to n1"));
  engine_.DeletePod(Ours("pod").uid, now_);
  EXPECT_EQ(Totals().outstanding, 0);
  EXPECT_EQ(engine_.Totals().tentative_placements, 0);
  Pass(seconds(200));
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(EarlyNominationsTest, AfterTwoMinutesNobodyCountsOnIt) {
  Nodes({StockNode("n1", 1)});
  Show(Ours("pod"));
  EXPECT_THAT(Told(), ElementsAre("pod to n1"));
  ShowNominated(Ours("pod"), "n1");
  for (int i = 0; i < 119; ++i) Pass(seconds(1));
  EXPECT_THAT(Told(), IsEmpty()) << "the node does all the while";
  Pass(seconds(1));
  EXPECT_THAT(Told(), ElementsAre("pod taken back"));
}

}  // namespace THIS_FILE
}  // namespace tranche
