// Nodes that are emptied: who is told, who leaves, and who stays whatever is asked.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::Minutes;
using test::Quota;
using testing::ElementsAre;
using testing::IsEmpty;

// Team a owns two GPUs of four a node; what it has beyond is borrowed from b.
class EmptyingEngineTest : public EngineReclaimTest {
 protected:
  EmptyingEngineTest() {
    Nodes({test::StockNode("n1", 4), test::StockNode("n2", 4)});
    GpuClass slow = Class("slow");
    slow.min_runtime = Minutes(60);
    Declare({.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "2"),
                        Quota("team-b").Under("org").Owns("b").Line("h100", "6")},
             .classes = {Class("train"), slow, Class("serve", 3, Preemptible::kNever)}});
  }
  ~EmptyingEngineTest() override { EXPECT_THAT(engine_.Audit(), IsEmpty()); }

  static PodRequest Of(const std::string& name, int gpus = 1,
                       const std::string& priority_class = "train") {
    return Pod("a", name, gpus, priority_class);
  }
  bool Empty(ReclaimRule rule = ReclaimRule::kConsolidate) {
    return engine_.SetEmptied(NodeName("n1"), rule, now_);
  }
  void PassTheNotice() {
    engine_.Tick(now_);
    Pass(Minutes(10));
    engine_.Tick(now_);
  }
  // What is older is its team's own first: two GPUs, so that what comes later is borrowed.
  void RunOwn(const PodRequest& own = Of("own", 2)) {
    Run(own, "n2", "owner");
    Pass(Minutes(1));
  }
  // Names of those who are told, then of those who are asked to leave.
  std::vector<std::string> Told() {
    std::vector<std::string> texts;
    for (const RunLimitWarning& warning : engine_.effects().reclaims.warnings) {
      texts.push_back(fmt::format("{} {} {} at {}", ReclaimRuleName(warning.rule), warning.source,
                                  warning.pod.name, (warning.leaves - At(0)) / Minutes(1)));
    }
    return texts;
  }
};

TEST_F(EmptyingEngineTest, WhatIsBorrowedIsToldAndLeaves) {
  RunOwn();
  Run(Of("more"), "n1", "owner");
  EXPECT_TRUE(Empty());
  engine_.Tick(now_);
  EXPECT_THAT(Told(), ElementsAre("Consolidate n1 more at 11"));
  EXPECT_EQ(Plan(), "");
  Pass(Minutes(10));
  engine_.Tick(now_);
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "more");
  EXPECT_THAT(Reclaims(), ElementsAre("Consolidate Evicting 0/1 for n1 from more"));
}

TEST_F(EmptyingEngineTest, WhoMayBeMoved) {
  const struct {
    const char* what;
    PodRequest pod;
    const char* owner;
    std::optional<int> checkpoint;  // minutes before it is asked
    bool borrowed;
    bool to_consolidate;
    bool for_layout;
  } table[] = {
      {"borrowed work", Of("p"), "owner", std::nullopt, true, true, true},
      {"what nobody makes anew", Of("p"), "", std::nullopt, true, false, false},
      {"a class that is never preempted", Of("p", 1, "serve"), "owner", 0, true, false, false},
      {"within its minimum runtime", Of("p", 1, "slow"), "owner", std::nullopt, true, false, false},
      {"within quota", Of("p"), "owner", std::nullopt, false, false, false},
      {"within quota, with a checkpoint", Of("p"), "owner", 0, false, true, false},
      {"within quota, with an old one", Of("p"), "owner", 6, false, false, false},
      {"of no team", Pod("nobody", "p", 1, "train"), "owner", std::nullopt, false, true, true},
  };
  for (const auto& row : table) {
    for (const ReclaimRule rule : {ReclaimRule::kConsolidate, ReclaimRule::kMigLayout}) {
      SCOPED_TRACE(fmt::format("{} by {}", row.what, ReclaimRuleName(rule)));
      const PodRequest own = Of("own", 2);
      if (row.borrowed) RunOwn(own);
      std::optional<Instant> checkpoint;
      if (row.checkpoint) checkpoint = now_ - Minutes(*row.checkpoint);
      Run(row.pod, "n1", row.owner, checkpoint);
      EXPECT_TRUE(Empty(rule));
      PassTheNotice();
      Plan();
      const bool leaves = rule == ReclaimRule::kConsolidate ? row.to_consolidate : row.for_layout;
      EXPECT_EQ(EvictAll(), leaves ? "p" : "");
      engine_.SetEmptied(NodeName("n1"), std::nullopt, now_);
      Leave(row.pod);
      if (row.borrowed) Leave(own);
      Plan();
      engine_.effects().reclaims = {};
      Pass(Minutes(180));  // nobody is spared for what happened before
    }
  }
}

TEST_F(EmptyingEngineTest, WhatAutoscalersLeaveAloneStays) {
  RunOwn();
  const PodRequest more = Of("more");
  Run(more, "n1", "owner");
  PodFacts told = BoundFacts(more, "n1");
  told.owner = "owner";
  told.left_alone = true;
  engine_.UpsertPod(told, now_);
  EXPECT_TRUE(Empty());
  PassTheNotice();
  EXPECT_EQ(Plan(), "");
  told.left_alone = false;
  engine_.UpsertPod(told, now_);
  PassTheNotice();
  EXPECT_EQ(Plan(), "plan");
}

TEST_F(EmptyingEngineTest, AGangStays) {
  RunOwn();
  PodRequest member = Of("member");
  member.gang = "g";
  Run(member, "n1", "owner");
  EXPECT_TRUE(Empty());
  PassTheNotice();
  EXPECT_EQ(Plan(), "");
}

TEST_F(EmptyingEngineTest, WhatBecomesItsTeamsOwnStays) {
  const PodRequest own = Of("own", 2);
  RunOwn(own);
  Run(Of("more"), "n1", "owner");
  EXPECT_TRUE(Empty());
  engine_.Tick(now_);
  Pass(Minutes(5));
  Leave(own);
  Pass(Minutes(5));
  engine_.Tick(now_);
  Plan();
  EXPECT_EQ(EvictAll(), "");
  EXPECT_THAT(Reclaims(), IsEmpty());
}

TEST_F(EmptyingEngineTest, NoLongerMeansThatNobodyLeaves) {
  RunOwn();
  Run(Of("more"), "n1", "owner");
  EXPECT_TRUE(Empty());
  PassTheNotice();
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(Evict(EvictionOutcome::kBlocked), "more");
  EXPECT_TRUE(engine_.SetEmptied(NodeName("n1"), std::nullopt, now_));
  Pass(Minutes(1));
  engine_.Tick(now_);
  Plan();
  EXPECT_EQ(EvictAll(), "");
  EXPECT_THAT(Reclaims(), ElementsAre(testing::StartsWith("Consolidate Aborted")));
}

TEST_F(EmptyingEngineTest, ADisruptionBudgetForbidsItBeforeAnybodyIsTold) {
  RunOwn();
  Run(Of("more"), "n1", "owner");
  DisruptionBudget budget;
  budget.ns = "a";
  budget.name = "pdb";
  budget.selector = LabelSelector();
  budget.allowed = 0;
  engine_.SetDisruptionBudget(budget, now_);
  EXPECT_FALSE(Empty());
  PassTheNotice();
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_EQ(Plan(), "");
  EXPECT_FALSE(engine_.SetEmptied(NodeName("unheard-of"), ReclaimRule::kConsolidate, now_));
}

TEST_F(EmptyingEngineTest, WhatMayBeMovedIsToldToAdvice) {
  RunOwn();
  Run(Of("more"), "n1", "owner");
  Run(Of("slow", 1, "slow"), "n1", "owner");
  Run(Of("bare"), "n1");
  for (const AdvicePod& pod : engine_.Case(now_).pods) {
    EXPECT_EQ(pod.moves_to_consolidate, pod.name.name == "more") << pod.name.str();
    EXPECT_EQ(pod.moves_for_layout, pod.name.name == "more") << pod.name.str();
    EXPECT_EQ(pod.evictable, pod.name.name != "bare") << "nothing makes it anew";
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
