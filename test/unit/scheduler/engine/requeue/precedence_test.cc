// Whether a pod that fits gives way to another, from state, teams and selection alone.
#include "scheduler/engine/requeue/precedence.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::Quota;
using test::StockNode;
using test::TeamPod;

// Three machines of 8. The organisation lends 8 H100 to team-a and team-b, which own none; of these
// team-c owns 4.
class PrecedenceTest : public testing::Test, protected test::SelectionRoom {
 protected:
  PrecedenceTest() {
    for (const char* name : {"n1", "n2", "n3"}) candidates_.push_back(Node(StockNode(name, 8)));
    Declare({.quotas = {Quota("org").Line("h100", "4"),
                        Quota("team-a").Under("org").Owns("a").Line("h100", "0"),
                        Quota("team-b").Under("org").Owns("b").Line("h100", "0"),
                        Quota("team-c").Under("org").Owns("c").Line("h100", "4")},
             .classes = {Class("top", 3), Class("train", 2)}});
  }
  // Quota refused it before, and it waits in line.
  PodRecord& Contends(const PodRequest& request) {
    PodRecord& record = Wait(request, Reason::kWaitingForQuota);
    std::vector<ModelCharge> parts;
    ChargeAtMost(cluster.nodes[IdOf("n1")]->state.inventory(), request, parts);
    record.asked = parts;
    team_queue.contenders.insert(request.uid);
    return record;
  }
  // Filter has found nodes for the pod: the name of the pod it gives way to; empty: of none.
  std::string Yields(const PodRequest& request) { return Asked(request, &Precedence::YieldsTo); }
  std::string YieldsToReturned(const PodRequest& request) {
    return Asked(request, &Precedence::GivesWayToReturned);
  }
  template <typename Question>
  std::string Asked(const PodRequest& request, Question question) {
    const PodRecord& record = Wait(request);
    const RequestContext context = rules.ContextOf(*record.request);
    selection.Select(context, candidates_, 11, now, nullptr);
    const std::optional<PodUid> first = (precedence_.*question)(context, record, now);
    return first ? cluster.Find(*first)->request->name.name : "";
  }

  Precedence precedence_{cluster, reclaims, rules, team_queue, selection};
  std::vector<NodeId> candidates_;
};

TEST_F(PrecedenceTest, ABorrowerGivesWayToWhomItWouldKeepOut) {
  Runs(TeamPod("b", "runs", 1), "n1");
  Contends(TeamPod("a", "high", 2, "top"));
  EXPECT_EQ(Yields(TeamPod("b", "small", 5, "train")), "") << "both fit beside each other";
  EXPECT_EQ(Yields(TeamPod("b", "large", 6, "train")), "high");
  EXPECT_EQ(Yields(TeamPod("b", "equal", 6, "top")), "high") << "its team borrows less";
}

TEST_F(PrecedenceTest, WhatIsOwnIsTakenBeforeAnybody) {
  Contends(TeamPod("a", "high", 8, "top"));
  EXPECT_EQ(Yields(TeamPod("c", "nominal", 4, "train")), "");
  EXPECT_EQ(Yields(TeamPod("c", "more", 5, "train")), "high");
}

TEST_F(PrecedenceTest, OnlyAPodThatCouldComeNowIsWaitedFor) {
  Runs(TeamPod("b", "runs", 1), "n1");
  PodRequest elsewhere = TeamPod("a", "elsewhere", 2, "top");
  elsewhere.models_any = {"a100"};
  Contends(TeamPod("a", "low", 2, "train"));     // of a lower class
  Contends(TeamPod("a", "large", 8, "top"));     // quota has no room for it yet
  Contends(elsewhere);                           // no node of ours
  Contends(TeamPod("x", "stranger", 2, "top"));  // shares no quota with us
  Contends(TeamPod("a", "ended", 2, "top")).terminal = true;
  EXPECT_EQ(Yields(TeamPod("b", "borrows", 6, "top")), "");
  Contends(TeamPod("a", "valid", 2, "top"));
  EXPECT_EQ(Yields(TeamPod("b", "borrows", 6, "top")), "valid");
}

TEST_F(PrecedenceTest, AfterHalfAMinuteItHasHadItsChance) {
  Contends(TeamPod("a", "high", 4, "top"));
  const PodRequest borrows = TeamPod("b", "borrows", 6, "train");
  const std::pair<int64_t, const char*> cases[] = {{0, "high"}, {30'000, "high"}, {30'001, ""}};
  for (const auto& [millis, first] : cases) {
    now = test::At(0) + Millis(millis);
    EXPECT_EQ(Yields(borrows), first) << millis;
  }
}

TEST_F(PrecedenceTest, TheLastPlaceOfATeamGoesToItsEvictedPod) {
  candidates_ = {IdOf("n1")};
  const PodRequest returned = TeamPod("a", "returned", 2, "train");
  Wait(returned, Reason::kNoRoom);
  reclaims.returned.insert(returned.uid);
  EXPECT_EQ(YieldsToReturned(TeamPod("a", "newer", 2, "train")), "returned");
  const std::pair<const char*, PodRequest> others[] = {
      {"another class", TeamPod("a", "p", 2, "top")},
      {"another team", TeamPod("b", "q", 2, "train")},
      {"itself", returned},
  };
  for (const auto& [what, request] : others) EXPECT_EQ(YieldsToReturned(request), "") << what;
  candidates_ = {IdOf("n1"), IdOf("n2")};
  EXPECT_EQ(YieldsToReturned(TeamPod("a", "again", 2, "train")), "") << "there is another node";
}

}  // namespace THIS_FILE
}  // namespace tranche
