// GPUPolicy onUnhealthy: who leaves a GPU that its node's agent calls unhealthy, and when.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::Minutes;
using test::Quota;
using testing::ElementsAre;
using testing::IsEmpty;

class UnhealthyTest : public EngineReclaimTest {
 protected:
  UnhealthyTest() {
    Tell({});
    Declare(Under(OnUnhealthy::kDrain));
    Run(Whole("first", "train"), "n1");
    Run(Whole("never", "serve"), "n1");
    Run(Whole("third", "train"), "n1");
  }
  ~UnhealthyTest() override { EXPECT_THAT(engine_.Audit(), IsEmpty()); }

  static test::Objects Under(OnUnhealthy what) {
    GpuPolicy policy;
    policy.on_unhealthy = what;
    policy.name = "all";
    policy.namespaces = LabelSelector();
    return {.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "8")},
            .classes = {Class("train"), Class("serve", 3, Preemptible::kNever)},
            .policies = {policy}};
  }
  static PodRequest Whole(const std::string& name, const std::string& priority_class) {
    return Pod("a", name, 1, priority_class);
  }
  // The node, with these GPUs unhealthy.
  void Tell(const std::vector<int>& ill, int64_t capacity = 4) {
    NodeFacts node = test::AgentNode(AgentKind::kTranche, "n1", 4, 81'559);
    node.product = "NVIDIA-H100-80GB-HBM3";
    node.gpu = ResourceCount{4 - static_cast<int64_t>(ill.size()), capacity};
    for (AgentDevice& device : node.agent->devices) device.slots = 1;
    for (const int index : ill) {
      node.agent->devices[static_cast<std::size_t>(index)].healthy = false;
    }
    engine_.UpsertNode(node, now_);
  }
  int CardOf(const std::string& pod) {
    const NodeView node = engine_.Nodes(NodeName(), 1, now_).at(0);
    for (std::size_t i = 0; i < node.gpus.size(); ++i) {
      for (const GpuPodView& one : node.gpus[i].pods) {
        if (one.pod.name == pod) return static_cast<int>(i);
      }
    }
    return -1;
  }
  std::vector<std::string> Warned() {
    std::vector<std::string> texts;
    for (const RunLimitWarning& warning : std::exchange(engine_.effects().reclaims.warnings, {})) {
      texts.push_back(fmt::format("{} {} {} at {}", ReclaimRuleName(warning.rule), warning.source,
                                  warning.pod.name, (warning.leaves - At(0)).count() / 1000));
    }
    return texts;
  }
};

TEST_F(UnhealthyTest, WorkLeavesAGpuThatStaysIll) {
  Tell({CardOf("first"), CardOf("never")});
  Pass(Minutes(9) - Millis(1));
  EXPECT_THAT(Warned(), IsEmpty());
  EXPECT_EQ(engine_.Tick(now_), now_ + Millis(1));
  Pass(Millis(1));
  EXPECT_THAT(Warned(), ElementsAre("Unhealthy n1 first at 600"));
  EXPECT_EQ(Plan(), "");
  Pass(Minutes(1));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "first");
  EXPECT_THAT(Reclaims(), ElementsAre("Unhealthy Evicting 0/1 for n1 from first"));
  Pass(Minutes(5));
  EXPECT_NE(Plan(), "plan") << "classes that are never preempted stay";
}

TEST_F(UnhealthyTest, WhatTheNodesOwnPolicySaysCounts) {
  test::Objects objects = Under(OnUnhealthy::kDrain);
  GpuPolicy here;
  here.name = "here";
  here.nodes = LabelSelector();
  here.own.on_unhealthy = OnUnhealthy::kKeep;
  objects.policies.push_back(here);
  Declare(objects);
  Tell({CardOf("first")});
  Pass(Minutes(9));
  EXPECT_THAT(Warned(), IsEmpty());
  objects.policies.pop_back();
  Declare(objects);
  engine_.Tick(now_);
  EXPECT_FALSE(Warned().empty()) << "the pods' policy counts again";
}

TEST_F(UnhealthyTest, WhatIsWellAgainOrUnheardOfDrainsNobody) {
  const int card = CardOf("first");
  Tell({card});
  Pass(Minutes(8));
  Tell({});
  Pass(Minutes(8));
  EXPECT_EQ(Plan(), "");
  Tell({card});
  Pass(Minutes(9));
  EXPECT_THAT(Warned(), ElementsAre("Unhealthy n1 first at 1560")) << "counted anew";
  Tell({card}, /*capacity=*/0);  // its agent has gone
  Pass(Minutes(9));
  EXPECT_EQ(Plan(), "");
  EXPECT_THAT(Warned(), IsEmpty());
}

TEST_F(UnhealthyTest, AnEditOfThePolicyCounts) {
  Declare(Under(OnUnhealthy::kKeep));
  Tell({CardOf("first")});
  Pass(Minutes(30));
  EXPECT_THAT(Warned(), IsEmpty());
  Declare(Under(OnUnhealthy::kDrain));
  Pass(Millis(1));
  EXPECT_THAT(Warned(), ElementsAre("Unhealthy n1 first at 1860")) << "it has its minute";
  Pass(Minutes(1));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "first");
}

}  // namespace THIS_FILE
}  // namespace tranche
