// GPUClass idleAfter: who leaves GPUs that do nothing, when, and what is told of use decides it.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::Minutes;
using test::Quota;
using testing::ElementsAre;
using testing::IsEmpty;

class IdleTest : public EngineReclaimTest {
 protected:
  IdleTest() {
    NodeFacts node = test::StockNode("n1", 4);
    node.product = "NVIDIA-H100-80GB-HBM3";
    Nodes({node});
    Declare(Under(OnIdle::kEvict));
  }
  ~IdleTest() override { EXPECT_THAT(engine_.Audit(), IsEmpty()); }

  static test::Objects Under(OnIdle what) {
    GpuPolicy policy;
    policy.on_idle = what;
    policy.name = "all";
    policy.namespaces = LabelSelector();
    GpuClass note = Class("note", 1, Preemptible::kNever);
    note.idle_after = Minutes(60);
    GpuClass train = Class("train");
    train.min_runtime = Millis(0);
    GpuClass lazy = Class("lazy");
    lazy.idle_after = Minutes(60);
    return {.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "4")},
            .classes = {note, train, lazy, Class("serve", 3)},
            .policies = {policy}};
  }
  static PodRequest Whole(const std::string& name, const std::string& priority_class = "note") {
    return Pod("a", name, 1, priority_class);
  }
  // What was measured of pods; nullopt: nothing.
  using Told = std::vector<std::pair<std::string, std::optional<int>>>;
  void Tell(const Told& told) {
    std::vector<MeasuredPod> pods;
    for (const auto& [name, permille] : told) {
      pods.push_back({Whole(name).uid, permille, permille && *permille <= 10});
    }
    engine_.NoteUse(pods, now_);
  }
  // The same, told every minute; what was warned of on the way.
  void TellFor(int minutes, const Told& told) {
    for (int i = 0; i < minutes; ++i) {
      Pass(Minutes(1));
      Tell(told);
      engine_.Tick(now_);
      Collect();
    }
  }
  void Collect() {
    for (const RunLimitWarning& warning : std::exchange(engine_.effects().reclaims.warnings, {})) {
      warned_.push_back(fmt::format("{} {} {} at {}", ReclaimRuleName(warning.rule), warning.source,
                                    warning.pod.name, (warning.leaves - At(0)) / Minutes(1)));
    }
  }

  std::vector<std::string> warned_;
};

TEST_F(IdleTest, WhatDoesNothingIsToldAndLeaves) {
  Run(Whole("idle"), "n1");
  Run(Whole("works"), "n1");
  TellFor(54, {{"idle", 0}, {"works", 400}});
  EXPECT_THAT(warned_, IsEmpty());
  TellFor(1, {{"idle", 10}, {"works", 11}});
  EXPECT_THAT(warned_, ElementsAre("Idle note idle at 61"));
  EXPECT_EQ(Plan(), "");
  TellFor(6, {{"idle", 0}, {"works", 400}});
  EXPECT_EQ(Plan(), "plan") << "its class says so, though it is never preempted for others";
  EXPECT_EQ(EvictAll(), "idle");
  EXPECT_THAT(Reclaims(), ElementsAre("Idle Evicting 0/1 for note from idle"));
}

TEST_F(IdleTest, WorkBetweenBeginsTheTimeAnew) {
  Run(Whole("p"), "n1");
  TellFor(58, {{"p", 0}});
  EXPECT_THAT(warned_, ElementsAre("Idle note p at 61"));
  TellFor(1, {{"p", 500}});
  TellFor(30, {{"p", 0}});
  EXPECT_EQ(Plan(), "");
  TellFor(30, {{"p", 0}});
  EXPECT_THAT(warned_, ElementsAre("Idle note p at 61", "Idle note p at 120"));
  TellFor(1, {{"p", 0}});
  EXPECT_EQ(Plan(), "plan");
}

TEST_F(IdleTest, WhatWorksAgainAfterThePlanStays) {
  Run(Whole("p"), "n1");
  TellFor(62, {{"p", 0}});
  EXPECT_EQ(Plan(), "plan");
  TellFor(1, {{"p", 900}});
  Plan();
  EXPECT_THAT(Reclaims(), ElementsAre(testing::StartsWith("Idle Evicting")))
      << "it was asked to go already";
  EXPECT_EQ(Evict(EvictionOutcome::kBlocked), "p");
  Pass(Minutes(1));
  Tell({{"p", 900}});
  Plan();
  EXPECT_THAT(Reclaims(), ElementsAre(testing::StartsWith("Idle Aborted")));
  EXPECT_EQ(EvictAll(), "");
}

TEST_F(IdleTest, SilenceIsNotIdleness) {
  struct Row {
    const char* what;
    int gap;  // minutes without a word, after half of the time
    bool goes_on;
  };
  for (const Row& row :
       {Row{"an exporter that starts again", 4, true}, Row{"a whole outage", 6, false}}) {
    SCOPED_TRACE(row.what);
    const PodRequest pod = Whole(row.goes_on ? "p" : "q");
    warned_.clear();
    Run(pod, "n1");
    TellFor(31, {{pod.name.name, 0}});
    TellFor(row.gap, {{pod.name.name, std::nullopt}});
    TellFor(61 - 31 - row.gap, {{pod.name.name, 0}});
    EXPECT_EQ(Plan(), row.goes_on ? "plan" : "");
    EXPECT_EQ(warned_.empty(), !row.goes_on);
    if (row.goes_on) EvictAll();
    Leave(pod);
  }
}

TEST_F(IdleTest, NobodyLeavesOnWhatWasToldLongAgo) {
  Run(Whole("p"), "n1");
  TellFor(58, {{"p", 0}});
  Pass(Minutes(6));
  EXPECT_NE(Plan(), "plan") << "its time is over; nobody knows whether it was idle until then";
  TellFor(1, {{"p", 0}});
  EXPECT_EQ(Plan(), "");
  TellFor(60, {{"p", 0}});
  EXPECT_EQ(Plan(), "plan");
}

TEST_F(IdleTest, WithoutAWordItEndsByTheOtherRuleOfItsClass) {
  test::Objects objects = Under(OnIdle::kEvict);
  objects.classes[0].max_runtime = Minutes(120);
  Declare(objects);
  Run(Whole("before-the-warning"), "n1");
  Run(Whole("after-it"), "n1");
  TellFor(40, {{"before-the-warning", 0}, {"after-it", 0}});
  TellFor(15, {{"after-it", 0}});
  EXPECT_THAT(warned_, ElementsAre("Idle note after-it at 61"));
  for (int i = 0; i < 54; ++i) {
    Pass(Minutes(1));
    Collect();
    EXPECT_NE(Plan(), "plan") << i;
  }
  EXPECT_THAT(warned_, ElementsAre("Idle note after-it at 61"));
  Pass(Minutes(1));
  Collect();
  EXPECT_THAT(warned_, testing::UnorderedElementsAre("Idle note after-it at 61",
                                                     "MaxRuntime note before-the-warning at 120",
                                                     "MaxRuntime note after-it at 120"));
  Pass(Minutes(10));
  EXPECT_EQ(Plan(), "plan plan");
}

TEST_F(IdleTest, WhatHasNotBegunIsNotIdle) {
  ASSERT_TRUE(Place(Whole("p"), "n1"));
  PodFacts pod = BoundFacts(Whole("p"), "n1");
  pod.evictable = true;
  engine_.UpsertPod(pod, now_);
  TellFor(100, {{"p", 0}});  // its image is pulled all the while
  EXPECT_THAT(warned_, IsEmpty());
  pod.running_at = now_;
  engine_.UpsertPod(pod, now_);
  TellFor(54, {{"p", 0}});
  EXPECT_THAT(warned_, ElementsAre("Idle note p at 160"));
}

TEST_F(IdleTest, APolicyThatKeepsThemMakesThemFirstVictims) {
  Declare(Under(OnIdle::kKeep));
  Run(Whole("worked-long", "train"), "n1");
  Run(Whole("idle", "lazy"), "n1");
  TellFor(50, {{"idle", 0}, {"worked-long", 900}});
  Run(Whole("new-1", "train"), "n1");
  Run(Whole("new-2", "train"), "n1");
  TellFor(20, {{"idle", 0}, {"worked-long", 900}, {"new-1", 900}, {"new-2", 900}});
  EXPECT_THAT(warned_, IsEmpty());
  EXPECT_EQ(Plan(), "") << "nobody needs the room";
  EXPECT_EQ(Try(Whole("server", "serve")), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(EvictAll(), "idle") << "the others are younger, and lose what they have done";
}

TEST_F(IdleTest, PeopleSeeIt) {
  Run(Whole("p"), "n1");
  EXPECT_EQ(engine_.Pod(Whole("p").uid)->use, std::nullopt);
  TellFor(2, {{"p", 7}});
  EXPECT_EQ(engine_.Pod(Whole("p").uid)->use, (GpuUse{7, now_, now_ - Minutes(1)}));
  TellFor(1, {{"p", 700}});
  EXPECT_EQ(engine_.Pod(Whole("p").uid)->use, (GpuUse{700, now_, std::nullopt}));
  Pass(Minutes(6));
  EXPECT_EQ(engine_.Pod(Whole("p").uid)->use, std::nullopt) << "nobody tells any more";
}

TEST_F(IdleTest, StrangersAndThoseThatWaitAreNobodys) {
  Try(Whole("waits"));
  TellFor(100, {{"waits", 0}, {"never-heard-of", 0}});
  EXPECT_THAT(warned_, IsEmpty());
  EXPECT_EQ(Plan(), "");
}

}  // namespace THIS_FILE
}  // namespace tranche
