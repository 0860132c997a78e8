// Work that has run for as long as its class lets it.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::Hours;
using test::Minutes;
using test::Quota;
using testing::ElementsAre;
using testing::IsEmpty;

class MaxRuntimeTest : public EngineReclaimTest {
 protected:
  MaxRuntimeTest() { Nodes({test::StockNode("n1", 8), test::StockNode("n2", 8)}); }

  static std::vector<GpuClass> Notebooks(std::optional<Millis> most = Hours(8),
                                         Preemptible preemptible = Preemptible::kAlways) {
    GpuClass notebook = Class("notebook", 1, preemptible);
    notebook.max_runtime = most;
    return {notebook, Class("train")};
  }
  static std::vector<GpuQuota> Teams() {
    return {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "4"),
            Quota("team-b").Under("org").Owns("b").Line("h100", "4")};
  }
  void Allow(std::optional<Millis> most, Preemptible preemptible = Preemptible::kAlways) {
    Declare({.quotas = Teams(), .classes = Notebooks(most, preemptible)});
  }
  // "one at 28800" of everybody who was warned since the last call.
  std::vector<std::string> Warned(Engine& engine) const {
    std::vector<std::string> texts;
    for (const RunLimitWarning& warning : std::exchange(engine.effects().reclaims.warnings, {})) {
      texts.push_back(
          fmt::format("{} at {}", warning.pod.name, (warning.leaves - test::At(0)).count() / 1000));
    }
    return texts;
  }
  std::vector<std::string> Warned() { return Warned(engine_); }
};

TEST_F(MaxRuntimeTest, WorkIsWarnedAndLeavesWhenItsTimeIsOver) {
  Allow(Hours(8));
  const PodRequest one = Pod("a", "one", 1, "notebook");
  Run(one, "n1");
  Run(Pod("a", "job", 1, "train"), "n1");
  Pass(Hours(8) - Minutes(10) - Millis(1));
  EXPECT_THAT(Warned(), IsEmpty());
  EXPECT_EQ(engine_.Tick(now_), now_ + Millis(1)) << "the engine says when it is to be called";
  Pass(Millis(1));
  EXPECT_THAT(Warned(), ElementsAre("one at 28800"));
  Pass(Minutes(10) - Millis(1));
  EXPECT_EQ(Plan(), "");
  Pass(Millis(1));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "one");
  EXPECT_THAT(Reclaims(), ElementsAre("MaxRuntime Evicting 0/1 for notebook from one"));
  Metered();
  Leave(one);
  EXPECT_THAT(Reclaims(), ElementsAre("MaxRuntime Done 1/1 for notebook from one"));
  EXPECT_THAT(Metered(), ElementsAre("close one.0 at 28800")) << "and no hours come back";
  EXPECT_THAT(Warned(), IsEmpty()) << "once";
}

TEST_F(MaxRuntimeTest, TheTimeOfWorkThatNeverStartsCountsFromItsBind) {
  Allow(Hours(1));
  ASSERT_TRUE(Place(Pod("a", "pulls", 1, "notebook"), "n1"));
  running_[PodUid("pulls")] = BoundFacts(Pod("a", "pulls", 1, "notebook"), "n1");
  running_.begin()->second.evictable = true;
  engine_.UpsertPod(running_.begin()->second, now_);
  Pass(Minutes(54));
  Pass(Minutes(6));
  EXPECT_EQ(Plan(), "plan");
}

TEST_F(MaxRuntimeTest, WhoseWorkEnds) {
  struct Row {
    const char* name;
    const char* ns;
    Preemptible preemptible;
    bool evictable;
    QuotaMode mode;
    std::string asked;
  };
  for (const Row& row :
       {Row{"a team's", "a", Preemptible::kAlways, true, QuotaMode::kEnforce, "one"},
        Row{"of a class that is never preempted", "a", Preemptible::kNever, true,
            QuotaMode::kEnforce, "one"},
        Row{"of no team", "nobody", Preemptible::kAlways, true, QuotaMode::kEnforce, "one"},
        Row{"of a DaemonSet", "a", Preemptible::kAlways, false, QuotaMode::kEnforce, ""},
        Row{"under a quota that observes", "a", Preemptible::kAlways, true, QuotaMode::kObserve,
            ""}}) {
    SCOPED_TRACE(row.name);
    Engine engine{EngineOptions{}};
    engine.UpsertNode(test::StockNode("n1", 8), now_);
    GpuQuota leaf = Quota("team-a").Owns("a").Line("h100", "4");
    leaf.mode = row.mode;
    engine.SetPolicies(
        test::Declare({.quotas = {leaf}, .classes = Notebooks(Hours(1), row.preemptible)}),
        Defaults(), now_);
    const PodRequest one = Pod(row.ns, "one", 1, "notebook");
    engine.UpsertPod(test::Pending(one), now_);
    ASSERT_EQ(engine.Bind(one.name, one.uid, NodeName("n1"), now_).kind, BindPlan::Kind::kWrite);
    engine.SettleBind(one.uid, NodeName("n1"), BindOutcome::kBound, now_);
    PodFacts pod = test::Bound(one, "n1", engine.Pod(one.uid)->allocation);
    pod.running_at = pod.bound_at = now_;
    pod.evictable = row.evictable;
    engine.UpsertPod(pod, now_);
    engine.Tick(now_ + Minutes(54));
    engine.PlanNext(now_ + Hours(1));
    std::string asked;
    for (const EvictionOrder& order : engine.effects().reclaims.evictions) asked = order.pod.name;
    EXPECT_EQ(asked, row.asked);
    EXPECT_THAT(engine.Audit(), IsEmpty());
  }
}

TEST_F(MaxRuntimeTest, AGangLeavesWhole) {
  Allow(Hours(1));
  std::vector<PodRequest> members;
  for (int i = 0; i < 2; ++i) {
    PodRequest member = Pod("a", fmt::format("g-{}", i), 1, "notebook");
    member.gang = "g";
    member.gang_size = 2;
    member.gang_rank = i;
    members.push_back(member);
    engine_.UpsertPod(test::Pending(member), now_);
  }
  for (const PodRequest& member : members) {
    Run(member, "n1");
    Pass(Minutes(5));
  }
  Pass(Minutes(44));
  Pass(Minutes(6));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("MaxRuntime Evicting 0/2 for notebook from g-0 g-1"));
  EXPECT_EQ(EvictAll(), "g-0 g-1");
}

TEST_F(MaxRuntimeTest, ADisruptionBudgetDelaysTheEnd) {
  Allow(Hours(1));
  Run(Pod("a", "one", 1, "notebook"), "n1");
  DisruptionBudget budget;
  budget.ns = "a";
  budget.name = "pdb";
  budget.selector = LabelSelector{{{"app", "one"}}, {}};
  engine_.SetDisruptionBudget(budget, now_);
  Pass(Minutes(54));
  Pass(Minutes(6));
  EXPECT_EQ(Plan(), "blocked");
  EXPECT_EQ(Plan(), "") << "not before some time has passed";
  budget.allowed = 1;
  engine_.SetDisruptionBudget(budget, now_);
  Pass(Millis(10'000));
  EXPECT_EQ(Plan(), "plan");
}

TEST_F(MaxRuntimeTest, WhoeverWasNotWarnedIsWarnedFirst) {
  Allow(std::nullopt);
  Run(Pod("a", "one", 1, "notebook"), "n1");
  Pass(Hours(20));
  EXPECT_EQ(Plan(), "");
  Allow(Hours(8));
  Pass(Millis(1));
  EXPECT_THAT(Warned(), ElementsAre("one at 72600")) << "ten minutes from now";
  EXPECT_EQ(Plan(), "");

  // Another life knows of no warning.
  Engine engine{EngineOptions{}};
  engine.UpsertNode(test::StockNode("n1", 8), now_);
  engine.SetPolicies(test::Declare({.quotas = Teams(), .classes = Notebooks()}), Defaults(), now_);
  for (const auto& [uid, pod] : running_) engine.UpsertPod(pod, now_);
  engine.FinishRestore(now_);
  engine.Tick(now_);
  EXPECT_THAT(Warned(engine), ElementsAre("one at 72600"));

  // The limit is taken back, or longer.
  Allow(Hours(24));
  Pass(Minutes(10));
  EXPECT_EQ(Plan(), "");
  EXPECT_THAT(Warned(), IsEmpty());
  Pass(Hours(4) - Minutes(20));
  EXPECT_THAT(Warned(), ElementsAre("one at 86400"));
}

TEST_F(MaxRuntimeTest, AClockThatJumpsEndsNobody) {
  Allow(Hours(8));
  Run(Pod("a", "one", 1, "notebook"), "n1");
  Pass(Hours(1));
  const Instant before = now_;
  now_ += Hours(24 * 365);
  engine_.StepClock(before, now_);
  Pass(Millis(1));
  EXPECT_THAT(Warned(), IsEmpty());
  EXPECT_EQ(Plan(), "");
}

TEST_F(MaxRuntimeTest, WhatHadItsTimeIsDueNothing) {
  Allow(Hours(1));
  Run(Pod("a", "one", 1, "notebook"), "n1", "a/deployment");
  Pass(Minutes(54));
  Pass(Minutes(6));
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "one");
  Leave(Pod("a", "one", 1, "notebook"));
  // What its owner makes anew is no victim that returns: nobody yields to it.
  PodFacts again = test::Pending(Pod("a", "two", 8, "notebook"));
  again.owner = "a/deployment";
  engine_.UpsertPod(again, now_);
  Filter(again.request);
  EXPECT_EQ(Try(Pod("a", "other", 4, "train")), "n2") << "n1 is what filter promised the other";
}

}  // namespace THIS_FILE
}  // namespace tranche
