// Pods that kube-scheduler keeps from nodes by rules of its own: what people are told. Node "red"
// is of the pool red, "blue" of the pool blue, "kept" has a taint.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::FractionPod;
using test::Pending;
using test::StockNode;
using test::WholePod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EngineDemandsTest : public EngineReclaimTest {
 protected:
  EngineDemandsTest() {
    NodeFacts kept = InPool("kept", "red");
    kept.taints = {{"dedicated", "vision", "NoSchedule"}, {"seen", "", "PreferNoSchedule"}};
    Nodes({InPool("red", "red"), InPool("blue", "blue"), kept});
    // The cluster's own kube-scheduler is one that asks.
    engine_.Filter(WholePod("other", 1), {}, now_, answer_);
    engine_.DeletePod(WholePod("other", 1).uid, now_);
  }
  ~EngineDemandsTest() override { EXPECT_THAT(engine_.Audit(), IsEmpty()); }

  static NodeFacts InPool(const std::string& name, const std::string& pool, int gpus = 2) {
    NodeFacts node = StockNode(name, gpus);
    node.labels = LabelText({{"pool", pool}});
    return node;
  }
  static PodRequest With(const NodeConstraints& demands, int64_t gpus = 1) {
    PodRequest request = WholePod("p", gpus);
    request.constraints = std::make_shared<const NodeConstraints>(demands);
    return request;
  }
  static NodeConstraints Pool(const std::string& pool) {
    NodeConstraints demands;
    demands.selector = {{"pool", pool}};
    return demands;
  }
  static NodeConstraints Affinity(std::vector<std::vector<NodeTerm>> terms) {
    NodeConstraints demands;
    demands.has_affinity = true;
    demands.affinity = std::move(terms);
    return demands;
  }
  // "fits", or the code and what is said beside it.
  std::string On(const std::string& node, const PodRequest& request) {
    const auto explained = engine_.Explain(request.name, now_);
    const auto verdict = std::ranges::find(explained->nodes, NodeName(node), &NodeVerdict::node);
    if (verdict->fits) return "fits";
    return fmt::format("{}: {}", Describe(verdict->reason).code, verdict->detail);
  }
};

TEST_F(EngineDemandsTest, ExplainSaysWhatTheSpecWantsOfANode) {
  using Operator = NodeTerm::Operator;
  const NodeTerm in_green{"pool", false, Operator::kIn, {"green", "grey"}};
  const NodeTerm named{"metadata.name", true, Operator::kIn, {"blue"}};
  const struct {
    const char* what;
    NodeConstraints demands;
    const char* red;
    const char* kept;
  } table[] = {
      {"nothing", {}, "fits", "Tainted: the node has taint dedicated=vision:NoSchedule"},
      {"a pool", Pool("blue"), "NotSelected: asks label pool=blue; the node has pool=red",
       "NotSelected: asks label pool=blue; the node has pool=red"},
      {"a label nobody has",
       [] {
         NodeConstraints demands;
         demands.selector = {{"disk", "fast"}};
         return demands;
       }(),
       "NotSelected: asks label disk=fast; the node has no such label",
       "NotSelected: asks label disk=fast; the node has no such label"},
      {"one term", Affinity({{in_green}}),
       "NotSelected: asks pool in (green, grey); the node has pool=red",
       "NotSelected: asks pool in (green, grey); the node has pool=red"},
      {"a name", Affinity({{named}}), "NotSelected: asks metadata.name in (blue); the node is red",
       "NotSelected: asks metadata.name in (blue); the node is kept"},
      {"either", Affinity({{in_green}, {named}}),
       "NotSelected: none of 2 terms of its required node affinity holds",
       "NotSelected: none of 2 terms of its required node affinity holds"},
      {"what nothing can meet", Affinity({}),
       "NotSelected: its required node affinity has no term that can be met",
       "NotSelected: its required node affinity has no term that can be met"},
      {"a taint that is tolerated",
       [] {
         NodeConstraints demands;
         demands.tolerations = {{"dedicated", true, "", ""}};
         return demands;
       }(),
       "fits", "fits"},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.what);
    const PodRequest pod = With(row.demands);
    engine_.UpsertPod(Pending(pod), now_);
    EXPECT_EQ(On("red", pod), row.red);
    EXPECT_EQ(On("kept", pod), row.kept);
    engine_.DeletePod(pod.uid, now_);
  }
}

TEST_F(EngineDemandsTest, WhereNothingSuitsTheAdviceIsAboutTheSpec) {
  const struct {
    NodeConstraints demands;
    Reason reason;
    const char* advice;
  } table[] = {
      {Pool("green"), Reason::kNotSelected, "correct the pod's nodeSelector or affinity"},
      {Affinity({{{"metadata.name", true, NodeTerm::Operator::kIn, {"kept"}}}}), Reason::kTainted,
       "give the pod a toleration"},
  };
  for (const auto& row : table) {
    const PodRequest pod = With(row.demands);
    const std::vector<PodRequest> what = {pod};
    EXPECT_EQ(engine_.WhatIf(what, now_).front().reason, row.reason);
    engine_.UpsertPod(Pending(pod), now_);
    EXPECT_THAT(engine_.Explain(pod.name, now_)->advice, HasSubstr(row.advice));
    engine_.DeletePod(pod.uid, now_);
  }
}

TEST_F(EngineDemandsTest, WhatIfPlacesOnWhatSuits) {
  const std::vector<PodRequest> what = {With(Pool("blue"), 2), With(Pool("blue"), 1),
                                        With(Pool("red"), 2), With(Pool("red"), 1)};
  const std::vector<WhatIfResult> results = engine_.WhatIf(what, now_);
  EXPECT_EQ(results[0].node, NodeName("blue"));
  EXPECT_EQ(results[1].reason, Reason::kNoRoom);
  EXPECT_EQ(results[2].node, NodeName("red"));
  EXPECT_EQ(results[3].reason, Reason::kNoRoom) << "the node with the taint is no room";
}

TEST_F(EngineDemandsTest, RanksAreOfTheNodesThatSuit) {
  const PodRequest pod = With(Pool("blue"));
  engine_.UpsertPod(Pending(pod), now_);
  const std::optional<Explanation> explained = engine_.Explain(pod.name, now_);
  for (const NodeVerdict& verdict : explained->nodes)
    EXPECT_EQ(verdict.rank, verdict.node == NodeName("blue") ? 0 : -1) << verdict.node.str();
}

// kube-scheduler asks about none where its own rules leave none, and we hear of it by the pod.
TEST_F(EngineDemandsTest, WhatKubeSchedulerSaysIsAReason) {
  PodFacts pod = Pending(With({}, 1));
  pod.unschedulable = true;
  pod.scheduler_says = "0/3 nodes are available: 3 Insufficient cpu.";
  const struct {
    const char* what;
    const char* scheduler;
    const char* why;
    const char* detail;
  } table[] = {
      {"of one that asks us", "", "NoNodeOffered",
       "asks 1 GPU; 0/3 nodes are available: 3 Insufficient cpu."},
      {"of another", "strange", "None", ""},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.what);
    pod.request.scheduler = row.scheduler;
    engine_.UpsertPod(pod, now_);
    EXPECT_EQ(Why(pod.request), row.why);
    EXPECT_EQ(View(pod.request).detail, row.detail);
    EXPECT_EQ(View(pod.request).scheduler_says, pod.scheduler_says);
    std::vector<std::string> told;
    for (const auto& [uid, reason] : engine_.Waiting()) told.emplace_back(Describe(reason).code);
    const bool has_reason = std::string_view(row.why) != "None";
    EXPECT_EQ(told, std::vector<std::string>(has_reason ? 1 : 0, row.why));
    engine_.DeletePod(pod.request.uid, now_);
  }
}

// Our own answer says more, and stands beside it.
TEST_F(EngineDemandsTest, OurOwnReasonComesFirst) {
  PodFacts pod = Pending(With({}, 8));
  EXPECT_EQ(Try(pod.request), "TooManyPerNode");
  pod.unschedulable = true;
  pod.scheduler_says = "0/3 nodes are available: 1 Insufficient cpu, 2 too few GPUs.";
  engine_.UpsertPod(pod, now_);
  EXPECT_EQ(Why(pod.request), "TooManyPerNode");
  EXPECT_EQ(View(pod.request).detail, "asks 8 GPUs");
}

// kube-scheduler asks about red alone: where it will never do, what other nodes lack is the reason.
TEST_F(EngineDemandsTest, FullNodesItMayNotUseAreNoRoom) {
  Nodes({InPool("big", "blue", 4)});
  ASSERT_TRUE(Place(WholePod("runs", 4), "big"));
  names_ = {NodeName("red")};
  EXPECT_EQ(Try(With(Pool("red"), 4)), "TooManyPerNode");
  PodRequest free = WholePod("free", 4);
  EXPECT_EQ(Try(free), "NoRoom");
}

TEST_F(EngineDemandsTest, RoomOnANodeItMayNotUseBringsNobodyBack) {
  ASSERT_TRUE(Place(WholePod("runs", 2), "blue"));
  names_ = {NodeName("red")};
  for (const char* name : {"a", "b"}) ASSERT_TRUE(Place(WholePod(name, 1), "red"));
  const PodRequest pod = With(Pool("red"));
  EXPECT_EQ(Try(pod), "NoRoom");
  Requeued();
  engine_.DeletePod(WholePod("runs", 2).uid, now_);
  EXPECT_THAT(Requeued(), IsEmpty());
  engine_.DeletePod(WholePod("a", 1).uid, now_);
  EXPECT_THAT(Requeued(), ElementsAre("p"));
}

TEST_F(EngineDemandsTest, AnEditOfAPolicyBringsBackWhoWaitsForIt) {
  const auto policy = [](Permission sharing) {
    GpuPolicy one;
    one.unenforced_sharing = sharing;
    return test::Objects{.policies = {one}};
  };
  Declare(policy(Permission::kRefuse));
  const PodRequest part = FractionPod("part", 500);
  EXPECT_EQ(Try(part), "NoAgent");
  Requeued();
  Declare(policy(Permission::kRefuse));
  EXPECT_THAT(Requeued(), IsEmpty());
  Declare(policy(Permission::kAllow));
  EXPECT_THAT(Requeued(), ElementsAre("part"));
}

// Found by the simulator: a node went while its pods were there, and the next question about other
// nodes read what it was no more. Of one that never could be read nothing was there at all.
TEST_F(EngineDemandsTest, NodesWithoutFactsSuitNobody) {
  NodeFacts plain = StockNode("plain", 0);
  Nodes({plain});
  Run(WholePod("runs", 1), "kept");
  engine_.DeleteNode(NodeName("kept"), now_);
  engine_.SetUnreadable(NodeName("odd"), "expected object, found 5", now_);
  const PodRequest request = With(Pool("green"));
  names_ = {NodeName("plain")};
  EXPECT_TRUE(Filter(request).empty());
  EXPECT_EQ(answer_.reason, Reason::kNoGpu);
  const std::vector<PodRequest> asked = {request, With(Pool("red"))};
  const std::vector<WhatIfResult> results = engine_.WhatIf(asked, now_);
  EXPECT_EQ(results[0].reason, Reason::kNotSelected);
  EXPECT_EQ(results[1].node, NodeName("red"));
  Leave(WholePod("runs", 1));
}

}  // namespace THIS_FILE
}  // namespace tranche
