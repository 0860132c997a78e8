// What a team can count on, in the words people read.
#include "scheduler/engine/preemption/nominal_reach.h"

#include "scheduler/engine/views/reach_text.h"
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::Minutes;
using test::Quota;

using test::StockNode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two machines of 4. Team a owns 4, c owns 4, b owns nothing and may borrow all.
class NominalReachTest : public EngineReclaimTest {
 protected:
  void SetUp() override {
    Nodes({StockNode("n1", 4), StockNode("n2", 4)});
    Declare(Teams());
  }
  static test::Objects Teams() {
    test::Objects objects;
    objects.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "4"),
                      Quota("team-b").Under("org").Owns("b").Line("h100", "0"),
                      Quota("team-c").Under("org").Owns("c").Line("h100", "4")};
    objects.classes = {Class("serve", 3, Preemptible::kNever), Class("train", 2)};
    objects.classes[1].grace_period = std::chrono::seconds(45);
    GpuClass slow = Class("slow", 2);
    slow.min_runtime = Minutes(20);
    objects.classes.push_back(slow);
    objects.namespaces = {"a", "b", "c"};
    return objects;
  }
  // Asks until everything is known; the number of questions.
  int AskAll() {
    int asked = 0;
    while (engine_.ReachSlice(now_)) ++asked;
    return asked;
  }
  std::vector<std::string> Reach(const std::string& team = "team-a") {
    AskAll();
    std::vector<std::string> lines;
    for (const QuotaView& view : engine_.Quotas(now_)) {
      if (view.report.name != team) continue;
      for (const LineReach& line : view.reach) {
        lines.push_back(line.code + (line.code.empty() ? "" : ": ") + ReachText(line));
      }
    }
    return lines;
  }
};

TEST_F(NominalReachTest, FreeRoomIsThereAtOnce) {
  EXPECT_THAT(Reach(), ElementsAre("a pod of up to 4 h100 GPUs starts at once"));
  EXPECT_THAT(Reach("team-b"), IsEmpty()) << "it owns nothing";
  EXPECT_THAT(Reach("org"), IsEmpty()) << "nobody runs under it directly";
}

TEST_F(NominalReachTest, OwnWorkUsesTheNominalUp) {
  Run(Pod("a", "a1", 3, "train"), "n1");
  EXPECT_THAT(Reach(), ElementsAre("a pod of up to 1 h100 GPU starts at once"));
  Run(Pod("a", "a2", 1, "train"), "n2");
  Pass(NominalReach::kAnew);
  EXPECT_THAT(Reach(), ElementsAre("h100: its nominal is in use"));
}

TEST_F(NominalReachTest, BorrowersHaveTheirGrace) {
  Run(Pod("b", "b1", 4, "train"), "n1");
  Run(Pod("b", "b2", 4, "train"), "n2");
  // 45 s, and two rounds of a second.
  EXPECT_THAT(Reach(), ElementsAre("a pod of up to 4 h100 GPUs starts within 50s"));
}

TEST_F(NominalReachTest, BorrowersMayBeAboutToWriteACheckpoint) {
  for (const char* const name : {"b1", "b2"}) {
    const PodRequest pod = Pod("b", name, 4, "train");
    Run(pod, *name == 'b' && name[1] == '1' ? "n1" : "n2");
    PodFacts facts = BoundFacts(pod, name[1] == '1' ? "n1" : "n2");
    for (const int64_t checkpoint : {0, 600}) {
      facts.checkpointed_at = At(checkpoint);
      engine_.UpsertPod(facts, now_);
    }
  }
  // Ten minutes at most, then 45 s, and two rounds of a second: told in steps of five minutes.
  EXPECT_THAT(Reach(), ElementsAre("a pod of up to 4 h100 GPUs starts within 15m"));
}

// What is known of a pod's quota and budgets is good until the next edit.
TEST_F(NominalReachTest, AnEditBetweenTwoQuestionsBeginsAnew) {
  Run(Pod("b", "b1", 4, "train"), "n1");
  Run(Pod("b", "b2", 4, "train"), "n2");
  test::Objects with_budgets = Teams();
  for (const char* name : {"one", "two", "three"}) {
    with_budgets.budgets.push_back(test::DayBudget("team-a", 1'000));
    with_budgets.budgets.back().name = with_budgets.budgets.back().uid = name;
  }
  test::Objects smaller = Teams();
  smaller.quotas[1] = Quota("team-a").Under("org").Owns("a").Line("h100", "2");
  for (int asked = 0; asked < 12; ++asked) {
    Declare(with_budgets);
    for (int i = 0; i < asked; ++i) engine_.ReachSlice(now_);
    Declare(smaller);
    EXPECT_THAT(Reach(), ElementsAre("a pod of up to 2 h100 GPUs starts within 50s")) << asked;
  }
}

TEST_F(NominalReachTest, WhereNoClassSaysOtherwiseGraceIsThePodsOwn) {
  for (const char* const node : {"n1", "n2"}) {
    const PodRequest borrowed = Pod("b", std::string("b-") + node, 4);
    Run(borrowed, node);
    PodFacts& pod = running_.at(borrowed.uid);
    pod.grace = Minutes(5);
    engine_.UpsertPod(pod, now_);
  }
  Pass(Minutes(60));
  EXPECT_THAT(Reach(), ElementsAre("a pod of up to 4 h100 GPUs starts within 6m"));
}

TEST_F(NominalReachTest, WhatIsLeftOfMinimumRuntimesCounts) {
  Run(Pod("b", "b1", 4, "slow"), "n1");
  Run(Pod("b", "b2", 4, "slow"), "n2");
  EXPECT_THAT(Reach(), ElementsAre("a pod of up to 4 h100 GPUs starts within 25m"));
  Pass(Minutes(19));
  EXPECT_THAT(Reach(), ElementsAre("a pod of up to 4 h100 GPUs starts within 100s"));
}

TEST_F(NominalReachTest, ThoseWhoLeaveAlreadyAreWaitedFor) {
  const PodRequest leaves = Pod("c", "c1", 4, "train");
  Run(leaves, "n1");
  Run(Pod("c", "c2", 4, "serve"), "n2");
  PodFacts& pod = running_.at(leaves.uid);
  pod.terminating = true;
  pod.deletion_at = now_ + Minutes(3);
  engine_.UpsertPod(pod, now_);
  EXPECT_THAT(Reach(), ElementsAre("a pod of up to 4 h100 GPUs starts within 4m"));
}

TEST_F(NominalReachTest, WorkWithinOthersNominalIsNamed) {
  for (const char* const node : {"n1", "n2"}) {
    Run(Pod("c", std::string("c-") + node, 2, "train"), node);
    Run(Pod("b", std::string("b-") + node, 2, "train"), node);
  }
  EXPECT_THAT(
      Reach(),
      ElementsAre("Interleaved: a pod of up to 2 h100 GPUs starts within 50s; one of 3 h100 "
                  "GPUs does not: work that is within nominal or never evicted stands on "
                  "n1, n2"));
}

TEST_F(NominalReachTest, ABudgetThatAllowsNobodyToGoIsNoTime) {
  Run(Pod("b", "b1", 4, "train"), "n1");
  Run(Pod("b", "b2", 4, "train"), "n2");
  DisruptionBudget budget;
  budget.ns = "b";
  budget.name = "keep";
  budget.selector = LabelSelector{{}, {{"app", SelectorTerm::Operator::kExists, {}}}};
  const auto with = [&](int64_t allowed) {
    budget.allowed = allowed;
    engine_.SetDisruptionBudget(budget, now_);
    Pass(NominalReach::kAnew);
    return Reach();
  };
  EXPECT_THAT(with(0), ElementsAre(HasSubstr("PDBBlocked: no pod of 1 h100 GPU starts")));
  EXPECT_THAT(with(1), ElementsAre("a pod of up to 4 h100 GPUs starts within 50s"));
}

TEST_F(NominalReachTest, ClosedNodesAreNamed) {
  for (const char* const node : {"n1", "n2"}) {
    NodeFacts facts = StockNode(node, 4);
    facts.ready = false;
    engine_.UpsertNode(facts, now_);
  }
  EXPECT_THAT(Reach(), ElementsAre("NodesClosed: no pod of 1 h100 GPU starts: closed are n1, n2"));
}

TEST_F(NominalReachTest, NobodyIsPromisedWhatNobodyIsEvictedFor) {
  GpuPolicy policy = Defaults();
  policy.actor = PreemptionActor::kOff;
  Declare(Teams(), policy);
  Run(Pod("b", "b1", 4, "train"), "n1");
  Run(Pod("b", "b2", 2, "train"), "n2");
  EXPECT_THAT(Reach(),
              ElementsAre("PreemptionOff: a pod of up to 2 h100 GPUs starts at once; one of "
                          "3 h100 GPUs does not: nobody is evicted for its pods"));
}

TEST_F(NominalReachTest, OfAnyModelItIsSomeModel) {
  test::Objects objects = Teams();
  objects.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("any", "3"),
                    Quota("team-c").Under("org").Owns("c").Line("any", "4")};
  Declare(objects);
  EXPECT_THAT(Reach(), ElementsAre("a pod of up to 3 GPUs of some model starts at once"));
}

TEST_F(NominalReachTest, NothingIsSaidOfGpusThatNoNodeGivesWhole) {
  test::Objects objects = Teams();
  objects.quotas[1] = Quota("team-a").Under("org").Owns("a").Line("h100", "0.5").Line("a100", "2");
  Declare(objects);
  EXPECT_THAT(Reach(), IsEmpty()) << "half a GPU, and no A100 anywhere";
}

TEST_F(NominalReachTest, AnObservedTeamIsPromisedNothing) {
  test::Objects objects = Teams();
  objects.quotas[1] =
      Quota("team-a").Under("org").Owns("a").Line("h100", "4").Mode(QuotaMode::kObserve);
  Declare(objects);
  EXPECT_THAT(Reach(), IsEmpty());
}

TEST_F(NominalReachTest, ItIsAskedAnewWhenSomethingMayHaveChanged) {
  EXPECT_GT(AskAll(), 0);
  EXPECT_EQ(AskAll(), 0);
  Pass(NominalReach::kAnew);
  EXPECT_EQ(AskAll(), 0) << "nothing has changed, and no guard runs out";
  Run(Pod("b", "b1", 4, "slow"), "n1");
  EXPECT_GT(AskAll(), 0);
  EXPECT_EQ(AskAll(), 0) << "not within a minute";
  Declare(Teams());
  EXPECT_GT(AskAll(), 0) << "other quotas are in force";
}

TEST_F(NominalReachTest, AskingChangesNothing) {
  Run(Pod("b", "b1", 4, "train"), "n1");
  Run(Pod("b", "b2", 4, "train"), "n2");
  const std::string before = engine_.Digest();
  EXPECT_GT(AskAll(), 0);
  EXPECT_EQ(engine_.Digest(), before);
  EXPECT_THAT(engine_.Audit(), IsEmpty());
  EXPECT_THAT(Reclaims(), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
