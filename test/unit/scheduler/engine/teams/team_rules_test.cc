// What a request may have, by policy, quota and namespace: from state and namespaces alone.
#include "scheduler/engine/teams/team_rules.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Quota;
using test::StockNode;
using test::TeamPod;
using testing::HasSubstr;
using testing::SizeIs;

class TeamRulesTest : public testing::Test, protected test::StateRoom {
 protected:
  static EngineOptions WithCaps() {
    EngineOptions options;
    options.namespace_caps = true;
    return options;
  }
  TeamRulesTest() : StateRoom(WithCaps()) {}

  Reason WholeOf(const PodRequest& request) { return rules_.ContextOf(request).whole; }

  NamespaceUse namespaces_{cluster};
  TeamRules rules_{cluster, namespaces_};
};

TEST_F(TeamRulesTest, WhatRefusesARequestOnEveryNode) {
  GpuPolicy policy;
  policy.dialects = {"native", "hami"};
  policy.unassigned = Permission::kRefuse;
  Declare({.quotas = {Quota("team-a").Owns("a").Owns("both").Line("h100", "4"),
                      Quota("team-b").Owns("b").Owns("both").Line("h100", "4"),
                      Quota("watched").Owns("w").Line("h100", "4").Mode(QuotaMode::kObserve)}},
          policy);
  NamespaceCap cap;
  cap.ns = "a";
  cap.name = "small";
  cap.memory = Mebibytes::Of(1'000);
  namespaces_.caps.Set(cap);
  PodRequest refused = TeamPod("a", "p", 1), capped = test::HamiPod("p", 1, 2'000);
  refused.refusal = Refusal{Reason::kBadAmount, ""};
  capped.name.ns = "a";
  PodRequest fraction = test::FractionPod("p", 500);
  fraction.name.ns = "a";
  const struct {
    const char* what;
    PodRequest request;
    Reason open, closed;  // while the ledger can be written, and while it cannot
  } cases[] = {
      {"of a team", TeamPod("b", "p", 1), Reason::kNone, Reason::kLedgerClosed},
      {"of a team that is only watched", TeamPod("w", "p", 1), Reason::kNone, Reason::kNone},
      {"amounts that cannot be", refused, Reason::kBadAmount, Reason::kBadAmount},
      {"a style the policy lacks", fraction, Reason::kStyleOff, Reason::kStyleOff},
      {"of two teams", TeamPod("both", "p", 1), Reason::kLeafConflict, Reason::kLeafConflict},
      {"of nobody", TeamPod("c", "p", 1), Reason::kNoLeaf, Reason::kNoLeaf},
      {"above a ResourceQuota", capped, Reason::kNamespaceQuota, Reason::kNamespaceQuota},
  };
  for (const auto& row : cases) EXPECT_EQ(WholeOf(row.request), row.open) << row.what;
  rules_.CloseLedger(true);
  for (const auto& row : cases) EXPECT_EQ(WholeOf(row.request), row.closed) << row.what;
}

TEST_F(TeamRulesTest, QuotasThatAreOffAndNamespacesOfNobodyAreNotMetered) {
  Declare({.quotas = {Quota("on").Owns("on").Line("h100", "4"),
                      Quota("off").Owns("off").Line("h100", "4").Mode(QuotaMode::kOff)}});
  EXPECT_TRUE(rules_.ContextOf(TeamPod("on", "p", 1)).metered);
  EXPECT_FALSE(rules_.ContextOf(TeamPod("off", "p", 1)).metered);
  EXPECT_FALSE(rules_.ContextOf(TeamPod("nobody", "p", 1)).metered);
}

TEST_F(TeamRulesTest, PoliciesOfANamespaceAreRememberedUntilTheyAreForgotten) {
  GpuPolicy narrow;
  narrow.name = "narrow";
  narrow.namespaces = test::Namespaces({"a"});
  Declare({.policies = {narrow}, .namespaces = {"a", "b"}});
  EXPECT_EQ(rules_.ContextOf(TeamPod("a", "p", 1)).policy->name, "narrow");
  EXPECT_EQ(rules_.ContextOf(TeamPod("b", "p", 1)).policy->name, "default");
  narrow.namespaces = test::Namespaces({"b"});
  Declare({.policies = {narrow}, .namespaces = {"a", "b"}});
  rules_.ForgetPolicies();
  EXPECT_EQ(rules_.ContextOf(TeamPod("a", "p", 1)).policy->name, "default");
  EXPECT_EQ(rules_.ContextOf(TeamPod("b", "p", 1)).policy->name, "narrow");
}

TEST_F(TeamRulesTest, QuotaIsAskedOncePerKindOfNode) {
  const NodeId n1 = Node(StockNode("n1", 8)), n2 = Node(StockNode("n2", 8));
  const NodeId t4 = Node(StockNode("t4", 8, "Tesla-T4", 15109));
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "2").Line("t4", "8")}});
  const PodRequest request = TeamPod("a", "p", 2);
  const RequestContext context = rules_.ContextOf(request);
  rules_.ForgetKindAnswers();
  EXPECT_EQ(rules_.AskQuota(context, n1, now).reason, Reason::kNone);
  Runs(TeamPod("a", "other", 1), "n1");
  EXPECT_EQ(rules_.AskQuota(context, n2, now).reason, Reason::kNone) << "asked of n1 already";
  EXPECT_EQ(rules_.AskQuota(context, t4, now).reason, Reason::kNone);
  EXPECT_THAT(rules_.kinds_asked(), SizeIs(2));
  EXPECT_EQ(rules_.DescribeQuotaAnswers(context, now), "");
  rules_.ForgetKindAnswers();
  EXPECT_EQ(rules_.AskQuota(context, n2, now).reason, Reason::kWaitingForQuota);
  EXPECT_EQ(rules_.AskQuota(context, t4, now).reason, Reason::kNone);
  EXPECT_THAT(rules_.DescribeQuotaAnswers(context, now),
              HasSubstr("team-a uses 1 h100 (nominal 2, may reach 2), needs 2"));
}

TEST_F(TeamRulesTest, AnAnswerTellsWhetherItBorrowsAndWhenBudgetsComeBack) {
  const NodeId n1 = Node(StockNode("n1", 8));
  Declare({.quotas = test::TwoTeams(), .budgets = {test::DayBudget("team-b", 1)}});
  const PodRequest more = TeamPod("a", "more", 6), dear = TeamPod("b", "dear", 4);
  const RequestContext borrower = rules_.ContextOf(more);
  rules_.ForgetKindAnswers();
  EXPECT_EQ(rules_.AskQuota(borrower, n1, now).reason, Reason::kNone);
  EXPECT_TRUE(rules_.AskQuota(borrower, n1, now).borrows);
  Runs(TeamPod("b", "spends", 4), "n1");
  now += test::Hours(1);
  End(TeamPod("b", "spends", 4));
  std::vector<WindowClosing> closings;
  cluster.book.Advance(now, closings);
  rules_.ForgetKindAnswers();
  const KindAnswer& answer = rules_.AskQuota(rules_.ContextOf(dear), n1, now);
  EXPECT_EQ(answer.reason, Reason::kBudgetExhausted);
  ASSERT_TRUE(answer.eligible_at);
  EXPECT_GT(*answer.eligible_at, now);
}

TEST_F(TeamRulesTest, WhoIsNotKeptOffNodesThatAreHeldForAGang) {
  const NodeId node = Node(StockNode("n1", 8));
  Declare({.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "4"),
                      Quota("team-b").Under("org").Owns("b").Line("h100", "4")},
           .classes = {test::Class("top", 3)}});
  const struct {
    const char* what;
    PodRequest request;
    bool passes;
  } cases[] = {
      {"another team within its quota", TeamPod("b", "p", 4), true},
      {"another team that would borrow", TeamPod("b", "p", 5), false},
      {"the gang's own team", TeamPod("a", "p", 1), false},
      {"its own team, a higher class", TeamPod("a", "p", 1, "top"), true},
      {"nobody's", TeamPod("nobody", "p", 1), false},
  };
  for (const auto& row : cases) {
    EXPECT_EQ(rules_.MayPassHold(rules_.ContextOf(row.request), node, 2, "team-a", now), row.passes)
        << row.what;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
