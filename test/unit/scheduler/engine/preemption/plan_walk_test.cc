// Which questions are asked for a plan, and what may happen between two of them.
#include "scheduler/engine/preemption/plan_walk.h"

#include <gmock/gmock.h>

#include "scheduler/engine/preemption/reclaim_planner.h"
#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::TeamPod;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::SizeIs;

using enum PlanQuestion;
using Answer = ReclaimAnswer::Result;

TEST(PlanQuestionsTest, EachAnswerLeadsToTheNextQuestion) {
  const struct {
    const char* what;
    bool entitled;
    bool guarded;
    std::vector<Answer> answers;
    std::vector<PlanQuestion> asked;
    Answer result;
  } cases[] = {
      {"the marks make room", true, true, {Answer::kPlan}, {kByMarks}, Answer::kPlan},
      {"it fits", true, true, {Answer::kFits}, {kByMarks}, Answer::kFits},
      {"nobody may be taken", false, false, {Answer::kImpossible}, {kByMarks}, Answer::kImpossible},
      {"who borrows is told what it waits for",
       false,
       true,
       {Answer::kImpossible, Answer::kPlan},
       {kByMarks, kUnguarded},
       Answer::kImpossible},
      {"and nothing, where guards do not matter",
       false,
       true,
       {Answer::kImpossible, Answer::kImpossible},
       {kByMarks, kUnguarded},
       Answer::kImpossible},
      {"what is borrowed is waited for before another choice is made",
       true,
       true,
       {Answer::kImpossible, Answer::kPlan},
       {kByMarks, kUnguarded},
       Answer::kImpossible},
      {"what is borrowed is chosen anew",
       true,
       false,
       {Answer::kImpossible, Answer::kPlan},
       {kByMarks, kChosen},
       Answer::kPlan},
      {"likewise where waiting would not help",
       true,
       true,
       {Answer::kImpossible, Answer::kImpossible, Answer::kPlan},
       {kByMarks, kUnguarded, kChosen},
       Answer::kPlan},
      {"no choice makes room, and no guard is in the way",
       true,
       false,
       {Answer::kImpossible, Answer::kImpossible},
       {kByMarks, kChosen},
       Answer::kImpossible},
      {"no choice makes room as long as guards last",
       true,
       true,
       {Answer::kImpossible, Answer::kImpossible, Answer::kImpossible, Answer::kPlan},
       {kByMarks, kUnguarded, kChosen, kChosenUnguarded},
       Answer::kImpossible},
      {"a search that ended early is no reason to stop",
       true,
       true,
       {Answer::kUnresolved, Answer::kUnresolved, Answer::kImpossible},
       {kByMarks, kUnguarded, kChosen},
       Answer::kUnresolved},
      {"nor one that tells who is in the way",
       false,
       true,
       {Answer::kUnresolved},
       {kByMarks},
       Answer::kUnresolved},
  };
  for (const auto& row : cases) {
    PlanQuestions questions;
    std::vector<PlanQuestion> asked;
    for (const Answer result : row.answers) {
      ASSERT_FALSE(questions.done()) << row.what;
      asked.push_back(questions.next());
      ReclaimAnswer answer;
      answer.result = result;
      if (result == Answer::kPlan) answer.plan.emplace();
      questions.Note(answer, row.entitled, row.guarded);
    }
    EXPECT_TRUE(questions.done()) << row.what;
    EXPECT_THAT(asked, ElementsAreArray(row.asked)) << row.what;
    EXPECT_EQ(questions.result(), row.result) << row.what;
  }
}

// A machine of 8; each team owns 4. Team a runs 4 of its own and, a minute later, 4 that it lends
// and that a budget protects: team b's four wait.
class PlanWalkTest : public testing::Test, protected test::PreemptionRoom {
 protected:
  PlanWalkTest() {
    Node(test::StockNode("n1", 8));
    Declare({.quotas = test::TwoTeams(), .classes = {Class("train", 2)}});
    Runs(own_, "n1");
    now = At(60);
    Runs(lent_, "n1").traits.labels = std::make_shared<const Labels>(Labels{{"app", "lent"}});
    DisruptionBudget budget;
    budget.ns = "a";
    budget.name = "pdb";
    budget.selector.emplace();
    reclaims.disruption_budgets[{"a", "pdb"}] = budget;
    walk_.uid = Hungry(wants_);
  }
  // Up to where the question is next.
  void GoOnTo(PlanQuestion question) {
    do {
      planner_.Step(walk_, now);
    } while (!walk_.done() && walk_.questions.next() != question);
    ASSERT_FALSE(walk_.done());
  }
  std::optional<PlanOutcome::Result> Finish() {
    while (!walk_.done()) planner_.Step(walk_, now);
    if (!walk_.outcome) return std::nullopt;
    return walk_.outcome->result;
  }

  ReclaimRuns runs_{plan_parts, reclaims,    earmarks, kept,      rules,
                    requeue,    nominations, gangs,    preemptors};
  ReclaimPlanner planner_{plan_parts, earmarks, nominations, preemptors, awaited, runs_};
  PlanWalk walk_;
  const PodRequest own_ = TeamPod("a", "own", 4, "train");
  const PodRequest lent_ = TeamPod("a", "lent", 4, "train");
  const PodRequest wants_ = TeamPod("b", "wants", 4, "train");
};

TEST_F(PlanWalkTest, AWalkThatIsLeftLeavesNothingBehind) {
  GoOnTo(kUnguarded);
  EXPECT_THAT(reclaims.all, IsEmpty());
  EXPECT_TRUE(preemptors.Has(wants_.uid));
  EXPECT_EQ(preemptors.Next(now), wants_.uid) << "its turn is still to come";
}

TEST_F(PlanWalkTest, WhatHappensBetweenTwoQuestionsIsNews) {
  GoOnTo(kUnguarded);
  End(lent_);
  EXPECT_EQ(Finish(), PlanOutcome::Result::kImpossible) << "asked of the books as they were";
  now = At(120);
  EXPECT_EQ(preemptors.Next(now), wants_.uid);
  walk_ = {};
  walk_.uid = wants_.uid;
  EXPECT_EQ(Finish(), PlanOutcome::Result::kFits);
}

TEST_F(PlanWalkTest, APlanIsMadeFromTheBooksOfItsOwnQuestion) {
  GoOnTo(kUnguarded);
  reclaims.disruption_budgets.clear();
  cluster.Find(lent_.uid)->traits.evictable = false;
  EXPECT_EQ(Finish(), PlanOutcome::Result::kPlan) << "what is borrowed is chosen anew";
  ASSERT_THAT(cluster.outbox.reclaims().evictions, SizeIs(1));
  EXPECT_EQ(cluster.outbox.reclaims().evictions[0].uid, own_.uid);
}

TEST_F(PlanWalkTest, NothingIsPlannedForAPodThatHasGone) {
  GoOnTo(kUnguarded);
  preemptors.Forget(wants_.uid);
  cluster.ErasePod(wants_.uid);
  EXPECT_EQ(Finish(), PlanOutcome::Result::kImpossible);
  EXPECT_THAT(reclaims.all, IsEmpty());
  EXPECT_FALSE(preemptors.Has(wants_.uid));
}

}  // namespace THIS_FILE
}  // namespace tranche
