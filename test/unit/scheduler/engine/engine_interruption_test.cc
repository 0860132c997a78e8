// Nodes that are about to be taken away by their cloud: what is placed there, who leaves and when
// (GPUPolicy onInterruption), and what it costs whom.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::Minutes;
using test::Quota;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kSpot = "aws-node-termination-handler/spot-itn";

class InterruptionTest : public EngineReclaimTest {
 protected:
  InterruptionTest() {
    Nodes({test::StockNode("n1", 8), test::StockNode("n2", 8)});
    Declare(Under(OnInterruption::kDrain));
  }
  ~InterruptionTest() override { EXPECT_THAT(engine_.Audit(), IsEmpty()); }

  static test::Objects Under(OnInterruption what) {
    GpuPolicy policy;
    policy.on_interruption = what;
    policy.name = "all";
    policy.namespaces = LabelSelector();
    return {.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "16")},
            .classes = {Class("train"), Class("serve", 3, Preemptible::kNever)},
            .policies = {policy}};
  }
  // The taint, put on n1; "": none.
  void Notice(const std::string& taint) {
    NodeFacts node = test::StockNode("n1", 8);
    if (!taint.empty()) node.taints = {{taint, "", "NoSchedule"}};
    engine_.UpsertNode(node, now_);
  }
  PodRequest Running(const std::string& name, const std::string& priority_class = "train") {
    const PodRequest request = Pod("a", name, 1, priority_class);
    Run(request, "n1", "a/" + name);
    return request;
  }
  std::vector<std::string> Warned() {
    std::vector<std::string> texts;
    for (const RunLimitWarning& warning : std::exchange(engine_.effects().reclaims.warnings, {})) {
      texts.push_back(fmt::format("{} {} {} in {} s", ReclaimRuleName(warning.rule), warning.source,
                                  warning.pod.name, (warning.leaves - now_).count() / 1000));
    }
    return texts;
  }
  // "LostWork 600": why hours went back, and of how many seconds.
  std::vector<std::string> Refunds() {
    std::vector<std::string> texts;
    Metered();
    for (const MeterEvent& event : std::exchange(journal_, {})) {
      if (event.kind != MeterKind::kRefund) continue;
      texts.push_back(fmt::format("{} {}", event.note, (event.until - event.at).count() / 1000));
    }
    return texts;
  }
};

TEST_F(InterruptionTest, NothingNewIsPlacedOnANodeThatGoes) {
  for (const char* const taint : {kSpot, "karpenter.sh/disrupted", "tranche.dev/interruption"}) {
    Notice(taint);
    PodRequest bold = Pod("a", "bold", 1, "train");
    NodeConstraints demands;
    demands.tolerations.emplace_back().exists = true;
    bold.constraints = std::make_shared<const NodeConstraints>(demands);
    EXPECT_EQ(Try(bold), "n2") << taint;
    EXPECT_EQ(engine_.Nodes(NodeName(), 1, now_).at(0).closed, Reason::kInterrupted) << taint;
    EXPECT_EQ(engine_.Nodes(NodeName(), 1, now_).at(0).closed_detail,
              std::string("taint ") + taint);
  }
  Notice("");
  EXPECT_EQ(engine_.Nodes(NodeName(), 1, now_).at(0).closed, Reason::kNone) << "it stays after all";
}

TEST_F(InterruptionTest, WhoMayBeAskedLeavesAtOnce) {
  Running("job");
  Running("never", "serve");
  Notice(kSpot);
  Pass(Millis(1));
  EXPECT_THAT(Warned(), ElementsAre("Interruption n1 job in 0 s"));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "job");
  EXPECT_THAT(Reclaims(), ElementsAre("Interruption Evicting 0/1 for n1 from job"));
}

TEST_F(InterruptionTest, AGangLeavesAsAWholeWhereverItsPodsAre) {
  std::vector<PodRequest> gang = {Pod("a", "g-0", 5, "train"), Pod("a", "g-1", 5, "train")};
  for (PodRequest& member : gang) {
    member.gang = "g";
    member.gang_size = 2;
    engine_.UpsertPod(test::Pending(member), now_);
  }
  Run(gang[0], "n1");
  Run(gang[1], "n2");
  Notice(kSpot);
  Pass(Millis(1));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "g-0 g-1");
}

TEST_F(InterruptionTest, WhoDrainsItselfIsLeftToDoSo) {
  Running("job");
  for (const char* const taint : {"karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler",
                                  "aws-node-termination-handler/rebalance-recommendation"}) {
    Notice(taint);
    Pass(Minutes(5));
    EXPECT_EQ(Plan(), "") << taint;
  }
  EXPECT_THAT(Warned(), IsEmpty());
}

TEST_F(InterruptionTest, ThePolicyOfTheNodeOrElseOfThePodSays) {
  Declare(Under(OnInterruption::kKeep));
  Running("job");
  Notice(kSpot);
  Pass(Minutes(1));
  EXPECT_EQ(Plan(), "");
  test::Objects objects = Under(OnInterruption::kKeep);
  GpuPolicy here;
  here.name = "spot";
  here.nodes = LabelSelector();
  here.own.on_interruption = OnInterruption::kDrain;
  objects.policies.push_back(here);
  Declare(objects);
  Pass(Millis(1));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "job");
}

TEST_F(InterruptionTest, ANoticeThatIsTakenBackEvictsNobodyMore) {
  Running("job");
  Notice(kSpot);
  Notice("");
  Pass(Minutes(5));
  EXPECT_EQ(Plan(), "");
  EXPECT_THAT(Warned(), IsEmpty());
}

TEST_F(InterruptionTest, WhatIsLostIsNobodysFault) {
  const PodRequest job = Running("job");
  Pass(Minutes(10));
  Notice(kSpot);
  Pass(Millis(1));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "job");
  Leave(job);
  EXPECT_THAT(Refunds(), ElementsAre("Interruption 600"));
}

// Karpenter and termination handlers evict, the kubelet ends what is left, and pods go with their
// node.
TEST_F(InterruptionTest, WhoeverEvictsThere) {
  struct Row {
    const char* what;
    const char* taint;
    bool disrupted;
    bool node_goes;
    std::vector<std::string> refunds;
  };
  const Row kRows[] = {
      {"evicted by its handler", kSpot, true, false, {"Interruption 600"}},
      {"drained by Karpenter", "karpenter.sh/disrupted", true, false, {"Interruption 600"}},
      {"gone with its node", kSpot, true, true, {"Interruption 600"}},
      {"deleted by its owner", kSpot, false, false, {}},
      {"evicted elsewhere", "", true, false, {}},
  };
  Declare(Under(OnInterruption::kKeep));
  int number = 0;
  for (const Row& row : kRows) {
    const PodRequest job = Running("job-" + std::to_string(++number));
    Pass(Minutes(10));
    Notice(row.taint);
    if (row.node_goes) engine_.DeleteNode(NodeName("n1"), now_);
    PodFacts& pod = running_.at(job.uid);
    pod.terminating = true;
    pod.disrupted = row.disrupted;
    engine_.UpsertPod(pod, now_);
    Leave(job);
    EXPECT_EQ(Refunds(), row.refunds) << row.what;
    Notice("");
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
