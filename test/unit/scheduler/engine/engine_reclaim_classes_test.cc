// Classes without quotas: rule R0, for and against pods of no team.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using std::chrono::seconds;
using test::Minutes;
using test::Quota;
using test::StockNode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The classes that exist after a fresh install, on a machine of 8.
class Classes : public EngineReclaimTest {
 protected:
  void SetUp() override {
    Nodes({StockNode("n1", 8)});
    Declare({.classes = Defaults4()});
  }
  static std::vector<GpuClass> Defaults4() {
    std::vector<GpuClass> classes;
    for (const char* name : {"inference-prod", "training", "notebook", "scavenger"}) {
      classes.push_back(DefaultClass(name));
      classes.back().priority_classes = {std::string("gpu-") + name};
    }
    return classes;
  }
  static PodRequest Of(const std::string& name, int64_t gpus, const std::string& gpu_class) {
    return Pod("x", name, gpus, gpu_class.empty() ? "" : "gpu-" + gpu_class);
  }
};

TEST_F(Classes, AHigherClassEvictsTheLowerOneThatLosesLeast) {
  Run(Of("old", 4, "notebook"), "n1");
  Pass(Minutes(5));
  Run(Of("young", 4, "notebook"), "n1");
  Pass(Minutes(60));
  const PodRequest wants = Of("wants", 4, "inference-prod");
  EXPECT_EQ(Try(wants), "NoRoom");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("R0 Evicting 0/1 for wants from young"));
  EXPECT_EQ(EvictAll(), "young");
  EXPECT_EQ(Try(Of("thief", 4, "notebook")), "NoRoom") << "the room is kept";
  Leave(Of("young", 4, "notebook"));
  EXPECT_EQ(Try(wants), "n1");
  EXPECT_TRUE(Place(wants, "n1"));
  EXPECT_THAT(Reclaims(), ElementsAre("R0 Done 1/1 for wants from young"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(Classes, WhoGoesForWhom) {
  const struct {
    const char* runs;
    const char* wants;
    const char* outcome;
  } rows[] = {
      {"notebook", "training", "plan"},
      {"scavenger", "notebook", "plan"},
      {"training", "training", "impossible"},
      {"training", "notebook", "impossible"},
      {"inference-prod", "inference-prod", "impossible"},
      {"", "inference-prod", "plan"},  // without a class it ranks as training does
      {"", "training", "impossible"},
      {"", "", "impossible"},
      {"notebook", "", "plan"},
  };
  for (const auto& row : rows) {
    const PodRequest runs = Of("runs", 8, row.runs), wants = Of("wants", 8, row.wants);
    Run(runs, "n1");
    Pass(Minutes(61));
    EXPECT_EQ(Try(wants), "NoRoom");
    EXPECT_EQ(Plan(), row.outcome) << row.wants << " over " << row.runs;
    engine_.DeletePod(wants.uid, now_);
    Leave(runs);
    evictions_.clear();
    Pass(Minutes(61));
  }
}

TEST_F(Classes, GuardsHoldWithoutQuotasToo) {
  const PodRequest runs = Of("runs", 8, "training"), wants = Of("wants", 8, "inference-prod");
  Run(runs, "n1");
  Try(wants);
  EXPECT_EQ(Plan(), "blocked");
  EXPECT_EQ(engine_.Explain(wants.name, now_)->blocked->until, now_ + Minutes(30));
  Pass(Minutes(30));
  DisruptionBudget budget;
  budget.ns = "x";
  budget.name = "pdb";
  budget.selector = LabelSelector{{{"app", "runs"}}, {}};
  engine_.SetDisruptionBudget(budget, now_);
  EXPECT_EQ(Plan(), "blocked");
  EXPECT_EQ(engine_.Explain(wants.name, now_)->blocked->reason, Reason::kPdbBlocked);
  engine_.RemoveDisruptionBudget({"x", "pdb"});
  Pass(seconds(10));
  EXPECT_EQ(Plan(), "plan");
}

TEST_F(Classes, ExplainSaysByWhichRuleNobodyGoes) {
  Run(Of("runs", 8, "training"), "n1");
  const PodRequest wants = Of("wants", 8, "training");
  Try(wants);
  Plan();
  EXPECT_THAT(engine_.Explain(wants.name, now_)->advice,
              HasSubstr("by rule R0 only pods of a class rank below 2"));
  GpuPolicy off = Defaults();
  off.actor = PreemptionActor::kOff;
  Declare({.classes = Defaults4()}, off);
  const PodRequest more = Of("more", 8, "inference-prod");
  EXPECT_EQ(Try(more), "NoRoom");
  EXPECT_EQ(Plan(), "");
  EXPECT_THAT(engine_.Explain(more.name, now_)->advice,
              HasSubstr("GPUPolicy default has nobody evicted for it"));
}

// A team owns 4 of the 8 and may borrow the rest.
class BesideATeam : public Classes {
 protected:
  void SetUp() override {
    Classes::SetUp();
    Declare({.quotas = {Quota("org").Line("h100", "4"),
                        Quota("team").Under("org").Owns("a").Line("h100", "4"),
                        Quota("watched").Under("org").Owns("w").Mode(QuotaMode::kObserve)},
             .classes = Defaults4()});
  }
};

TEST_F(BesideATeam, WhatATeamBorrowsGoesForAHigherClassAndWhatItOwnsStays) {
  Run(Pod("a", "own", 4, "gpu-notebook"), "n1");
  Pass(Minutes(1));
  Run(Pod("a", "lent", 4, "gpu-notebook"), "n1");
  Pass(Minutes(30));
  const PodRequest wants = Of("wants", 8, "inference-prod"), less = Of("less", 4, "training");
  EXPECT_EQ(Try(wants), "NoRoom");
  EXPECT_EQ(Plan(), "impossible");
  EXPECT_EQ(Try(less), "NoRoom");
  EXPECT_EQ(Plan(), "plan impossible");
  EXPECT_THAT(Reclaims(), ElementsAre("R0 Evicting 0/1 for less from lent"));
}

TEST_F(BesideATeam, ATeamsWorkTakesLowerClassesOfNoTeamAndNoOthers) {
  Run(Of("equal", 4, "training"), "n1");
  Run(Of("lower", 4, "notebook"), "n1");
  Pass(Minutes(40));
  const PodRequest wants = Pod("a", "wants", 4, "gpu-training");
  EXPECT_EQ(Try(wants), "NoRoom");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_THAT(Reclaims(), ElementsAre("R0 Evicting 0/1 for wants from lower"));
}

TEST_F(BesideATeam, WhatAQuotaOnlyObservesStaysAndGetsNothing) {
  Run(Pod("w", "watched", 8, "gpu-scavenger"), "n1");
  Pass(Minutes(40));
  EXPECT_EQ(Try(Of("wants", 4, "inference-prod")), "NoRoom");
  EXPECT_EQ(Plan(), "impossible");
  EXPECT_EQ(Try(Pod("w", "wants-too", 4, "gpu-inference-prod")), "NoRoom");
  EXPECT_EQ(Plan(), "");
}

TEST_F(BesideATeam, AfterARestartAPlanOfR0GoesOn) {
  Run(Of("lower", 8, "notebook"), "n1");
  Pass(Minutes(40));
  const PodRequest wants = Of("wants", 4, "inference-prod");
  Try(wants);
  EXPECT_EQ(Plan(), "plan");
  Engine after{EngineOptions{}};
  after.UpsertNode(StockNode("n1", 8), now_);
  after.SetPolicies(test::Declare({.classes = Defaults4()}), Defaults(), now_);
  for (const auto& [uid, pod] : running_) after.UpsertPod(pod, now_);
  after.UpsertPod(test::Pending(wants), now_);
  after.RestoreReclaims(engine_.Reclaims());
  after.FinishRestore(now_);
  EXPECT_EQ(after.effects().reclaims.evictions.size(), 1U);
  EXPECT_THAT(after.Audit(), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
