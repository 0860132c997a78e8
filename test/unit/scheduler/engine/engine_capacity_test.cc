// How machines are paid for: which work they take, and which of them it prefers. Node "spot" says
// so by a label of its provisioner, "kept" is of the pool "ahead", which is reserved, and of
// "plain" nobody says anything.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::Quota;
using testing::ElementsAre;
using testing::IsEmpty;
using Types = std::vector<CapacityType>;

constexpr CapacityType kOnDemand = CapacityType::kOnDemand;
constexpr CapacityType kReserved = CapacityType::kReserved;
constexpr CapacityType kSpot = CapacityType::kSpot;

class EngineCapacityTest : public EngineReclaimTest {
 protected:
  EngineCapacityTest() {
    Nodes({Labelled("kept", {{"pool", "ahead"}}), Labelled("plain", {}),
           Labelled("spot", {{"karpenter.sh/capacity-type", "spot"}})});
    Declare(Objects({}));
  }
  ~EngineCapacityTest() override { EXPECT_THAT(engine_.Audit(), IsEmpty()); }

  static NodeFacts Labelled(const std::string& name, const Labels& labels) {
    NodeFacts node = test::StockNode(name, 8);
    node.labels = LabelText(labels);
    return node;
  }
  // Class "work" bears these, in this order.
  static test::Objects Objects(Types bears, bool interruptible = true) {
    GpuClass work = Class("work");
    work.capacity = std::move(bears);
    work.interruptible = interruptible;
    GpuPool ahead;
    ahead.name = "ahead";
    ahead.nodes.match_labels = {{"pool", "ahead"}};
    ahead.capacity = kReserved;
    return {.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "16"),
                       Quota("team-b").Under("org").Owns("b").Line("h100", "8")},
            .classes = {work, Class("any")},
            .pools = {ahead}};
  }
  // The nodes, best first, or the reason of all.
  std::string Places(const PodRequest& request) {
    std::string nodes = Try(request);
    engine_.DeletePod(request.uid, now_);
    return nodes;
  }
};

TEST_F(EngineCapacityTest, AClassIsPlacedOnWhatItBearsThePreferredFirst) {
  const struct {
    const char* what;
    Types bears;
    bool interruptible;
    const char* nodes;
  } table[] = {
      {"says nothing: by packing and name", {}, true, "kept plain spot"},
      {"spot first", {kSpot, kOnDemand}, true, "spot plain"},
      {"all, spot last", {kReserved, kOnDemand, kSpot}, true, "kept plain spot"},
      {"all, another order", {kOnDemand, kSpot, kReserved}, true, "plain spot kept"},
      {"nothing else", {kSpot}, true, "spot"},
      {"of whom nobody says is on demand", {kOnDemand}, true, "plain"},
      {"not to be interrupted", {}, false, "kept plain"},
      {"not to be interrupted, in order", {kOnDemand, kReserved}, false, "plain kept"},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.what);
    Declare(Objects(row.bears, row.interruptible));
    EXPECT_EQ(Places(Pod("a", "p", 1, "work")), row.nodes);
    EXPECT_EQ(Places(Pod("a", "q", 1, "any")), "kept plain spot") << "another class";
    EXPECT_EQ(Places(Pod("a", "r", 1)), "kept plain spot") << "no class";
  }
}

TEST_F(EngineCapacityTest, TheOrderComesBeforePacking) {
  Run(Pod("a", "runs", 7, "any"), "plain");
  EXPECT_EQ(Places(Pod("a", "p", 1, "work")), "plain kept spot") << "it fills up";
  Declare(Objects({kSpot, kOnDemand}));
  EXPECT_EQ(Places(Pod("a", "p", 1, "work")), "spot plain");
}

TEST_F(EngineCapacityTest, EveryoneWhoPicksNodesAsks) {
  Declare(Objects({kSpot}));
  Run(Pod("a", "full", 8, "any"), "spot");
  const PodRequest pod = Pod("a", "p", 1, "work");
  EXPECT_EQ(Try(pod), "NoRoom") << "of two answers the nearer one";
  EXPECT_EQ(ReasonOn(pod, "plain"), "CapacityType");
  EXPECT_EQ(ReasonOn(pod, "kept"), "CapacityType");
  EXPECT_EQ(Bind(pod, "plain").reason, Reason::kCapacity);
  const std::vector<PodRequest> what = {Pod("a", "what", 1, "work")};
  EXPECT_EQ(engine_.WhatIf(what, now_).front().reason, Reason::kNoRoom);
  engine_.DeleteNode(NodeName("spot"), now_);
  EXPECT_EQ(engine_.WhatIf(what, now_).front().reason, Reason::kCapacity);
}

TEST_F(EngineCapacityTest, NoRoomIsMadeWhereTheClassDoesNotRun) {
  for (const char* node : {"kept", "plain", "spot"}) {
    Run(Pod("b", std::string("b-") + node, 8, "any"), node);
  }
  Declare(Objects({kSpot}));
  Try(Pod("a", "owns", 8, "work"));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "b-spot");
}

TEST_F(EngineCapacityTest, AGangIsSeatedOnWhatItsClassBears) {
  engine_.FinishRestore(now_);
  Nodes({Labelled("spot-2", {{"eks.amazonaws.com/capacityType", "SPOT"}})});
  Declare(Objects({kSpot}));
  for (int i = 0; i < 2; ++i) {
    PodRequest member = Pod("a", "m" + std::to_string(i), 8, "work");
    member.gang = "g";
    member.gang_size = 2;
    engine_.UpsertPod(test::Pending(member), now_);
  }
  engine_.Tick(now_);
  PodRequest first = Pod("a", "m0", 8, "work");
  first.gang = "g";
  first.gang_size = 2;
  EXPECT_THAT(Filter(first), testing::AnyOf(ElementsAre("spot"), ElementsAre("spot-2")));
}

TEST_F(EngineCapacityTest, AnEditOfTheClassBringsBackWhoWaitsForIt) {
  engine_.DeleteNode(NodeName("spot"), now_);
  Declare(Objects({kSpot}));
  const PodRequest waits = Pod("a", "waits", 1, "work");
  EXPECT_EQ(Try(waits), "CapacityType");
  Requeued();
  Declare(Objects({kSpot, kOnDemand}));
  EXPECT_THAT(Requeued(), ElementsAre("waits"));
  EXPECT_EQ(Try(waits), "plain");
  Declare(Objects({kSpot}));
  EXPECT_THAT(Requeued(), IsEmpty());
}

TEST_F(EngineCapacityTest, NodesThatChangeTheirTypeFollow) {
  Declare(Objects({}, /*interruptible=*/false));
  const PodRequest pod = Pod("a", "p", 1, "work");
  EXPECT_EQ(Places(pod), "kept plain");
  engine_.UpsertNode(Labelled("plain", {{"cloud.google.com/gke-spot", "true"}}), now_);
  EXPECT_EQ(Places(pod), "kept");
  test::Objects pools = Objects({}, /*interruptible=*/false);
  pools.pools.front().capacity = kSpot;
  Declare(pools);
  EXPECT_EQ(Places(pod), "CapacityType");
}

TEST_F(EngineCapacityTest, ExplainNamesTheClassAndTheCapacity) {
  const struct {
    Types bears;
    bool interruptible;
    const char* node;
    const char* text;
  } table[] = {
      {{kSpot, kReserved},
       true,
       "plain",
       "GPUClass work runs on Spot, Reserved; the node is OnDemand, since nobody says what it is"},
      {{kOnDemand}, true, "spot", "GPUClass work runs on OnDemand; the node is Spot"},
      {{}, false, "spot", "GPUClass work runs on all but Spot; the node is Spot"},
  };
  for (const auto& row : table) {
    Declare(Objects(row.bears, row.interruptible));
    const PodRequest pod = Pod("a", "p", 1, "work");
    Try(pod);
    const auto explained = engine_.Explain(pod.name, now_);
    ASSERT_TRUE(explained);
    const auto verdict =
        std::ranges::find(explained->nodes, NodeName(row.node), &NodeVerdict::node);
    ASSERT_NE(verdict, explained->nodes.end());
    EXPECT_EQ(verdict->reason, Reason::kCapacity);
    EXPECT_EQ(verdict->detail, row.text);
    engine_.DeletePod(pod.uid, now_);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
