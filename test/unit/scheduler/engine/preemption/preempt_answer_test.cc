// What kube-scheduler would evict, held to the rules: from the parts left of it alone.
#include "scheduler/engine/preemption/preempt_answer.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;

class PreemptAnswerTest : public testing::Test, protected test::PreemptionRoom {
 protected:
  PreemptAnswerTest() { Node(test::StockNode("n1", 8)); }
  static PodRequest Of(const std::string& ns, const std::string& name, int64_t gpus, int priority,
                       const std::string& priority_class = "train") {
    PodRequest request = TeamPod(ns, name, gpus, priority_class);
    request.priority = priority;
    return request;
  }
  static PodUid Uid(const char* name) { return PodUid(std::string("uid-") + name); }
  // kube-scheduler would evict these on n1: whom the answer keeps; "none": not the node at all.
  std::vector<std::string> Kept(const PodRequest& request, std::vector<const char*> victims) {
    PreemptNode node{"n1", {}, counted_};
    for (const char* name : victims) node.victims.push_back(Uid(name));
    const std::vector<PreemptNode> answer = answer_.Of(request, {&node, 1}, now);
    if (answer.empty()) return {"none"};
    violations_ = answer[0].pdb_violations;
    std::vector<std::string> names;
    for (const PodUid& uid : answer[0].victims) names.push_back(uid.str().substr(4));
    return names;
  }

  PreemptAnswer answer_{plan_parts, rules, awaited};
  int64_t counted_ = 0;  // by kube-scheduler
  int64_t violations_ = 0;
};

TEST_F(PreemptAnswerTest, WithoutQuotasTheMostImportantPodsAreGivenBack) {
  Declare({.classes = {Class("serve", 3, Preemptible::kNever)}});
  Runs(Of("a", "low", 4, 1), "n1");
  Runs(Of("a", "mid", 2, 5), "n1");
  Runs(Of("a", "safe", 2, 0, "serve"), "n1");
  EXPECT_THAT(Kept(Of("c", "wants", 4, 9), {"mid", "low"}), ElementsAre("low"));
  EXPECT_THAT(Kept(Of("c", "wants", 6, 9), {"mid", "low"}), ElementsAre("mid", "low"));
  EXPECT_THAT(Kept(Of("c", "wants", 8, 9), {"mid", "low", "safe"}), ElementsAre("none"))
      << "one of them is never preempted";
}

TEST_F(PreemptAnswerTest, NobodyIsNamedWhileANodeIsOnItsWay) {
  for (const auto actor : {PreemptionActor::kPlanner, PreemptionActor::kScheduler}) {
    GpuPolicy policy;
    policy.actor = actor;
    Declare({}, policy);
    Runs(Of("a", "low", 8, 1), "n1");
    awaited.Note(Uid("wants"), now, now);
    const bool planner = actor == PreemptionActor::kPlanner;
    EXPECT_THAT(Kept(Of("c", "wants", 4, 9), {"low"}), ElementsAre(planner ? "none" : "low"))
        << "kube-scheduler alone would not ask again when the time is over";
    End(Of("a", "low", 8, 1));
  }
}

TEST_F(PreemptAnswerTest, WorkThatAQuotaOwnsIsNotTakenByPriority) {
  Declare({.quotas = test::TwoTeams()});
  Runs(Of("a", "owned", 4, 1), "n1");
  Runs(Of("x", "nobodys", 4, 1), "n1");
  EXPECT_THAT(Kept(Of("c", "wants", 4, 9), {"owned", "nobodys"}), ElementsAre("nobodys"));
}

TEST_F(PreemptAnswerTest, AmongTeamsTheRulesOfQuotaNameTheVictims) {
  Declare({.quotas = test::TwoTeams(), .classes = {Class("train", 2)}});
  Runs(Of("a", "own", 4, 1), "n1");
  now = At(60);
  Runs(Of("a", "lent", 4, 5), "n1");
  EXPECT_THAT(Kept(Of("b", "wants", 4, 9), {"own"}), ElementsAre("lent"))
      << "priorities named one that is in quota";
  EXPECT_THAT(Kept(Of("b", "wants", 5, 9), {"own", "lent"}), ElementsAre("none"))
      << "the fifth would be borrowed";
}

TEST_F(PreemptAnswerTest, WhereNobodyIsToBeEvictedTheAnswerIsEmpty) {
  GpuPolicy off;
  off.actor = PreemptionActor::kOff;
  Runs(Of("a", "low", 8, 1), "n1");
  const PodRequest wants = Of("c", "wants", 4, 9);
  EXPECT_THAT(Kept(wants, {"low"}), ElementsAre("low"));
  UnderWay("plan", wants, "n1", {});
  EXPECT_THAT(Kept(wants, {"low"}), ElementsAre("none")) << "a plan of ours is under way";
  Declare({}, off);
  rules.ForgetPolicies();
  EXPECT_THAT(Kept(Of("c", "other", 4, 9), {"low"}), ElementsAre("none"));
}

TEST_F(PreemptAnswerTest, PodsBeyondWhatTheirBudgetsAllowAreCounted) {
  DisruptionBudget budget;
  budget.ns = "a";
  budget.name = "pdb";
  budget.selector.emplace();
  budget.allowed = 1;
  reclaims.disruption_budgets[{"a", "pdb"}] = budget;
  for (const char* name : {"v1", "v2", "v3"}) {
    Runs(Of("a", name, 2, 1), "n1").traits.labels = std::make_shared<const Labels>();
  }
  EXPECT_THAT(Kept(Of("c", "wants", 6, 9), {"v1", "v2", "v3"}), testing::SizeIs(2));
  EXPECT_EQ(violations_, 1);
  // Also of the pods that it named, whatever it counted.
  Runs(Of("a", "v4", 2, 1), "n1").traits.labels = std::make_shared<const Labels>();
  for (const int64_t counted : {0, 7}) {
    counted_ = counted;
    EXPECT_THAT(Kept(Of("c", "wants", 8, 9), {"v1", "v2", "v3", "v4"}), testing::SizeIs(4));
    EXPECT_EQ(violations_, 3) << counted;
  }
}

// Only kube-scheduler knows the labels of pods without GPUs.
TEST_F(PreemptAnswerTest, OfPodsWithoutGpusItsCountStands) {
  Runs(Of("a", "gpu", 8, 1), "n1");
  cluster.plain.Note(Uid("web"));
  for (const auto& [counted, expected] : {std::pair(0, 0), std::pair(1, 1), std::pair(5, 1)}) {
    counted_ = counted;
    EXPECT_THAT(Kept(Of("c", "wants", 8, 9), {"web", "gpu"}), ElementsAre("web", "gpu"));
    EXPECT_EQ(violations_, expected);
  }
}

TEST_F(PreemptAnswerTest, VictimsComeByFallingPriorityHoweverTheyCameIn) {
  cluster.plain.Note(Uid("web"));
  Runs(Of("a", "low", 2, 1), "n1");
  Runs(Of("a", "high", 2, 7), "n1");
  Runs(Of("a", "mid", 4, 5), "n1");
  EXPECT_THAT(Kept(Of("c", "wants", 8, 9), {"low", "web", "high", "mid"}),
              ElementsAre("high", "mid", "low", "web"));
}

}  // namespace THIS_FILE
}  // namespace tranche
