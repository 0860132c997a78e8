// Teams at the verbs: who is let in, who waits, and what they are told.
#include "test/unit/scheduler/engine/engine_quota_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::DayBudget;
using test::Hours;
using test::Minutes;
using test::Quota;
using test::StockNode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// 16 H100: team-a 8, which may borrow 4, team-b 8.
std::vector<GpuQuota> TwoTeams() {
  return {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "8", "4"),
          Quota("team-b").Under("org").Owns("b").Line("h100", "8")};
}

std::vector<NodeFacts> Machines() {
  return {StockNode("n1", 8), StockNode("n2", 8), StockNode("n3", 8)};
}

TEST_F(EngineQuotaTest, TeamsShareAndEachHasItsOwn) {
  Nodes(Machines());
  Declare({.quotas = TwoTeams()});
  EXPECT_TRUE(Place(Pod("a", "a1", 8), "n1"));
  EXPECT_TRUE(Place(Pod("a", "a2", 4), "n2"));
  EXPECT_EQ(View(Pod("a", "a1", 8)).quota_state, QuotaState::kInQuota);
  EXPECT_EQ(View(Pod("a", "a2", 4)).quota_state, QuotaState::kBorrowed);
  EXPECT_EQ(View(Pod("a", "a2", 4)).leaf, "team-a");
  // Room is left on every machine but what the teams hold is all there is.
  EXPECT_EQ(Try(Pod("a", "a3", 1)), "BorrowLimit");
  EXPECT_EQ(Try(Pod("b", "b1", 4)), "n2 n3");
  EXPECT_EQ(Try(Pod("b", "b2", 5)), "WaitingForQuota");
  EXPECT_EQ(Try(Pod("b", "b3", 17)), "TooManyPerNode");
  EXPECT_EQ(Try(Pod("c", "c1", 4)), "n3") << "nobody's namespace is nobody's concern";
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(EngineQuotaTest, RefusalHasAReasonForEveryNode) {
  Nodes(Machines());
  Nodes({StockNode("t4", 8, "Tesla-T4", 15109)});
  NodeFacts away = StockNode("away", 8);
  away.cordoned = true;
  Nodes({away, test::MigNode("mig", 1, 0, {{"1g.10gb", 7}})});
  Declare({.quotas = TwoTeams()});
  Place(Pod("a", "a1", 8), "n1");
  Place(Pod("a", "a2", 4), "n2");
  PodRequest h100 = Pod("a", "a3", 1);
  h100.models_any = {"h100"};
  const std::map<std::string, std::string> expected = {
      {"n1", "BorrowLimit"}, {"n2", "BorrowLimit"},    {"n3", "BorrowLimit"},
      {"t4", "WrongModel"},  {"away", "NodeCordoned"}, {"mig", "NoGpu"}};
  EXPECT_EQ(Try(h100), "BorrowLimit");
  std::map<std::string, std::string> found;
  for (const auto& [position, reason] : answer_.refused) {
    found[names_[position].str()] = Describe(reason).code;
  }
  EXPECT_EQ(found, expected);
  const std::optional<Explanation> explained = engine_.Explain(h100.name, now_);
  ASSERT_TRUE(explained);
  for (const NodeVerdict& node : explained->nodes) {
    EXPECT_EQ(Describe(node.reason).code, expected.at(node.node.str())) << node.node.str();
  }
  EXPECT_EQ(explained->advice, "work of the team must end, or its borrowLimit be raised");
  // Any other model is still open.
  EXPECT_EQ(Try(Pod("a", "a4", 1)), "t4");
  EXPECT_EQ(Why(Pod("a", "a4", 1)), "None");
}

TEST_F(EngineQuotaTest, LastOfTheQuotaGoesToOneOfTwo) {
  Nodes(Machines());
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "4")}});
  const PodRequest first = Pod("a", "first", 3), second = Pod("a", "second", 2);
  EXPECT_NE(Try(first), "WaitingForQuota");
  EXPECT_NE(Try(second), "WaitingForQuota") << "claims are no use of quota";
  EXPECT_TRUE(Place(first, "n1"));
  const BindPlan plan = Bind(second, "n2");
  EXPECT_EQ(plan.kind, BindPlan::Kind::kRefused);
  EXPECT_EQ(plan.reason, Reason::kWaitingForQuota);
  EXPECT_THAT(plan.detail, HasSubstr("team-a uses 3 h100 (nominal 4, may reach 4), needs 2"));
  EXPECT_EQ(Why(second), "WaitingForQuota");
  engine_.DeletePod(first.uid, now_);
  EXPECT_TRUE(Place(second, "n2"));
}

TEST_F(EngineQuotaTest, WaitingPodIsShownWithItsPlaceInTheQueue) {
  Nodes(Machines());
  Declare({.quotas = TwoTeams(), .classes = {Class("train", 2), Class("top", 3)}});
  Place(Pod("a", "a1", 8), "n1");
  Place(Pod("b", "b1", 8), "n2");
  const PodRequest low = Pod("a", "low", 2, "train"), high = Pod("b", "high", 8, "top");
  EXPECT_EQ(Try(low), "WaitingForQuota");
  EXPECT_EQ(Try(high), "WaitingForQuota");
  const PodView view = View(low);
  EXPECT_EQ(view.leaf, "team-a");
  EXPECT_EQ(view.workload_class, "train");
  EXPECT_EQ(view.quota_state, std::nullopt);
  EXPECT_EQ(view.detail,
            "team-a uses 8 h100 (nominal 8, may reach 12), needs 2; 0 can be had now, short by 2. "
            "Position 2 of 2");
  EXPECT_THAT(View(high).detail, HasSubstr("Position 1 of 2"));
  EXPECT_EQ(engine_.Waiting().size(), 2U);
  const std::vector<PendingRow> rows = engine_.Pending(now_);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].leaf, "team-a");
  EXPECT_EQ(rows[0].quanta, 2 * kQuantaPerGpu);
  // Placed: nothing is left of it.
  engine_.DeletePod(Pod("b", "b1", 8).uid, now_);
  EXPECT_TRUE(Place(high, "n2"));
  EXPECT_EQ(engine_.Waiting().size(), 1U);
  EXPECT_EQ(Why(high), "None");
  EXPECT_THAT(View(low).detail, HasSubstr("Position 1 of 1"));
}

TEST_F(EngineQuotaTest, ObserveRefusesNothingAndSaysWhatItWouldHaveSaid) {
  Nodes(Machines());
  std::vector<GpuQuota> quotas = {Quota("team-a").Owns("a").Line("h100", "2")};
  quotas[0].mode = QuotaMode::kObserve;
  Declare({.quotas = quotas, .budgets = {DayBudget("team-a", 1)}});
  const PodRequest large = Pod("a", "large", 3);
  engine_.CloseLedger(true);
  EXPECT_NE(Try(large), "LedgerClosed");
  engine_.CloseLedger(false);
  EXPECT_EQ(View(large).observed, Reason::kExceedsMaxQuota);
  EXPECT_EQ(Why(large), "None");
  EXPECT_TRUE(Place(large, "n1"));
  EXPECT_EQ(View(large).quota_state, QuotaState::kBorrowed);
  Pass(Hours(1));
  const PodRequest later = Pod("a", "later", 1);
  EXPECT_EQ(Try(later), "n1 n2 n3");
  EXPECT_EQ(View(later).observed, Reason::kBudgetExhausted);
  EXPECT_THAT(Requeued(), IsEmpty());

  quotas[0].mode = QuotaMode::kOff;
  Declare({.quotas = quotas, .budgets = {DayBudget("team-a", 1)}});
  EXPECT_EQ(Try(later), "n1 n2 n3");
  EXPECT_EQ(View(later).observed, Reason::kNone);
  EXPECT_EQ(engine_.Quotas(now_)[0].report.lines[0].line.used, test::Gpus(3)) << "Off counts";

  quotas[0].mode = QuotaMode::kEnforce;
  Declare({.quotas = quotas, .budgets = {DayBudget("team-a", 1)}});
  EXPECT_EQ(Try(later), "BudgetExhausted");
}

TEST_F(EngineQuotaTest, ObserveSaysNothingWhereAnotherModelWouldHaveDone) {
  Nodes({StockNode("n1", 8), StockNode("t4", 8, "Tesla-T4", 15109)});
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "0").Mode(QuotaMode::kObserve)}});
  const PodRequest pod = Pod("a", "p", 1);
  Try(pod);
  EXPECT_EQ(View(pod).observed, Reason::kNone);
  PodRequest h100 = Pod("a", "q", 1);
  h100.models_any = {"h100"};
  EXPECT_EQ(Try(h100), "n1");
  EXPECT_EQ(View(h100).observed, Reason::kExceedsMaxQuota);
}

TEST_F(EngineQuotaTest, ConfigurationIsToldBeforeAnythingElse) {
  Nodes(Machines());
  GpuPolicy strict = Defaults();
  strict.unassigned = Permission::kRefuse;
  const std::vector<GpuQuota> quotas = {Quota("team-a").Owns("a").Owns("both").Line("h100", "0"),
                                        Quota("team-b").Owns("both").Line("h100", "8")};
  Declare({}, strict);
  EXPECT_EQ(Try(Pod("c", "c0", 1)), "n1 n2 n3") << "no quotas, no owners";
  Declare({.quotas = quotas}, strict);
  EXPECT_EQ(Try(Pod("c", "c1", 1)), "NoLeaf");
  EXPECT_EQ(answer_.refused.size(), 3U);
  EXPECT_EQ(View(Pod("c", "c1", 1)).detail,
            "expected a GPUQuota whose namespaceSelector matches namespace c, found none");
  EXPECT_EQ(Bind(Pod("c", "c1", 1), "n1").reason, Reason::kNoLeaf);
  EXPECT_EQ(Try(Pod("both", "b1", 1)), "LeafConflict");
  EXPECT_EQ(View(Pod("both", "b1", 1)).detail,
            "expected one GPUQuota whose namespaceSelector matches namespace both, found team-a, "
            "team-b");
  EXPECT_EQ(Try(Pod("a", "a1", 1)), "ExceedsMaxQuota");
  engine_.CloseLedger(true);
  EXPECT_EQ(Try(Pod("a", "a2", 1)), "LedgerClosed");
  EXPECT_EQ(Bind(Pod("a", "a2", 1), "n1").reason, Reason::kLedgerClosed);
  Declare({.quotas = quotas});
  EXPECT_EQ(Try(Pod("c", "c2", 1)), "n1 n2 n3") << "who is not counted needs no ledger";
}

TEST_F(EngineQuotaTest, PolicyOfANamespaceGovernsIt) {
  Nodes(Machines());
  GpuPolicy strict;
  strict.name = "strict";
  strict.namespaces = test::Namespaces({"s"});
  strict.dialects = {"native"};
  strict.unassigned = Permission::kRefuse;
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "8")}, .policies = {strict}});
  EXPECT_EQ(Try(In("s", test::FractionPod("f1", 500))), "DialectOff");
  EXPECT_EQ(Try(Pod("s", "w1", 1)), "NoLeaf");
  EXPECT_EQ(Try(In("c", test::FractionPod("f2", 500))), "n1 n2 n3");
}

TEST_F(EngineQuotaTest, ClassSaysHowItsPodsMayShareAndWhatTheyLikeBest) {
  GpuClass serve = Class("serve", 3);
  serve.sharing = {SharingMode::kMig, SharingMode::kExclusive};
  GpuClass train = Class("train");
  train.sharing = {SharingMode::kExclusive};
  Nodes({test::SharedNode("sliced", 1, 4, false), StockNode("whole", 1)});
  Declare({.classes = {serve, train}});
  EXPECT_EQ(Try(Pod("a", "any", 1)), "whole sliced");
  EXPECT_EQ(Try(Pod("a", "p1", 1, "train")), "whole");
  EXPECT_EQ(ReasonOn(Pod("a", "p1", 1, "train"), "sliced"), "SharingMode");
  EXPECT_EQ(Try(Pod("a", "p2", 1, "serve")), "whole");
  EXPECT_EQ(Bind(Pod("a", "p2", 1, "serve"), "sliced").reason, Reason::kSharingMode);
  const std::optional<Explanation> explained = engine_.Explain({"a", "p2"}, now_);
  ASSERT_TRUE(explained);
  EXPECT_EQ(explained->nodes[1].detail, "shared as Exclusive, choice 2 of 2 of class serve");
  EXPECT_EQ(Try(In("a", test::FractionPod("half", 500), "train")), "SharingMode");
}

// ---- time

TEST_F(EngineQuotaTest, BudgetBringsThePodBackWhenItCanPay) {
  Nodes(Machines());
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "16")},
           .budgets = {DayBudget("team-a", 4)}});
  EXPECT_TRUE(Place(Pod("a", "runs", 2), "n1"));
  const PodRequest waits = Pod("a", "waits", 8);
  Pass(Minutes(60));
  EXPECT_EQ(Try(waits), "BudgetExhausted");
  EXPECT_THAT(View(waits).detail,
              "budget team-a-day: 2.000 of 4.000 GPU-hours are used and 0.500 promised to running "
              "work");
  // Midnight is at 6400. 200 s before, the 10 GPUs cost 0.556 hours of the 4, 3.444 being used.
  const Instant can_pay = test::At(6200);
  ASSERT_EQ(View(waits).eligible_at, can_pay);
  EXPECT_EQ(Try(waits), "BudgetExhausted");
  EXPECT_THAT(Requeued(), IsEmpty());
  std::optional<Instant> next = engine_.Tick(now_);
  while (next && *next < can_pay) {
    now_ = *next;
    next = engine_.Tick(now_);
    EXPECT_THAT(Requeued(), IsEmpty());
  }
  ASSERT_EQ(next, can_pay);
  now_ = can_pay;
  engine_.Tick(now_);
  EXPECT_THAT(Requeued(), ElementsAre("waits"));
  EXPECT_EQ(Try(waits), "n2 n3");
  EXPECT_EQ(View(waits).eligible_at, std::nullopt);
}

TEST_F(EngineQuotaTest, BudgetOfANamespaceThatNobodyOwnsHoldsToo) {
  Nodes(Machines());
  GpuBudget budget = DayBudget("", 1);
  budget.ns = "c";
  Declare({.quotas = TwoTeams(), .budgets = {budget}});
  EXPECT_TRUE(Place(Pod("c", "runs", 2), "n1"));
  Place(Pod("a", "a1", 8), "n2");
  Place(Pod("b", "b1", 8), "n3");
  Pass(Minutes(30));
  EXPECT_EQ(Try(Pod("c", "waits", 1)), "BudgetExhausted");
  EXPECT_EQ(Try(Pod("a", "a2", 1)), "WaitingForQuota");
  engine_.DeletePod(Pod("b", "b1", 8).uid, now_);
  EXPECT_NE(Try(Pod("b", "b2", 1)), "WaitingForQuota");
  EXPECT_THAT(Requeued(), ElementsAre("a2"));
  now_ = test::At(6400);
  engine_.Tick(now_);
  EXPECT_THAT(Requeued(), testing::UnorderedElementsAre("waits", "a2"));
}

TEST_F(EngineQuotaTest, EditsBringBackWhoFitsNow) {
  Nodes(Machines());
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "2")}});
  Place(Pod("a", "a0", 1), "n1");
  EXPECT_EQ(Try(Pod("a", "fits", 2)), "WaitingForQuota");
  EXPECT_EQ(Try(Pod("a", "large", 8)), "ExceedsMaxQuota");
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "4")}});
  EXPECT_THAT(Requeued(), ElementsAre("fits"));
  Pass(Millis(1));
  // The quota goes; whoever waited for it is nobody's now.
  Declare({});
  EXPECT_THAT(Requeued(), testing::UnorderedElementsAre("fits", "large"));
}

TEST_F(EngineQuotaTest, DeletionThatBeginsMayFreeTheQuotaAtOnce) {
  Nodes(Machines());
  for (const bool at_deletion : {false, true}) {
    Quota quota("team-a");
    quota.Owns("a").Line("h100", "4");
    if (at_deletion) quota.FreedAtDeletion();
    Declare({.quotas = {quota}});
    const PodRequest leaving = Pod("a", fmt::format("leaving{}", at_deletion), 4);
    const PodRequest waits = Pod("a", fmt::format("waits{}", at_deletion), 4);
    EXPECT_TRUE(Place(leaving, "n1"));
    EXPECT_EQ(Try(waits), "WaitingForQuota");
    Requeued();
    PodFacts facts = BoundFacts(leaving, "n1");
    facts.terminating = true;
    engine_.UpsertPod(facts, now_);
    EXPECT_EQ(Requeued().size(), at_deletion ? 1U : 0U);
    EXPECT_EQ(Try(waits) == "WaitingForQuota", !at_deletion);
    EXPECT_EQ(FreeMilli("n1"), 4000) << "its devices are busy until it is gone";
    EXPECT_THAT(engine_.Audit(), IsEmpty());
    engine_.DeletePod(leaving.uid, now_);
    engine_.DeletePod(waits.uid, now_);
  }
}

TEST_F(EngineQuotaTest, WhoBorrowsMoreGivesWayForAWhile) {
  Nodes(Machines());
  Declare({.quotas = {Quota("org").Line("h100", "4"),
                      Quota("team-a").Under("org").Owns("a").Line("h100", "0"),
                      Quota("team-b").Under("org").Owns("b").Line("h100", "0")}});
  EXPECT_TRUE(Place(Pod("a", "a1", 2), "n1"));
  EXPECT_TRUE(Place(Pod("b", "b1", 1), "n1"));
  const PodRequest poor = Pod("b", "poor", 2), rich = Pod("a", "rich", 1);
  EXPECT_EQ(Try(poor), "WaitingForQuota");
  EXPECT_EQ(Try(rich), "n1 n2 n3") << "what fits now is not kept for what does not";
  engine_.DeletePod(Pod("b", "b1", 1).uid, now_);
  EXPECT_EQ(Try(rich), "YieldingTo");
  EXPECT_EQ(View(rich).detail, "gives way to b/poor");
  EXPECT_THAT(Requeued(), ElementsAre("poor"));
  Pass(Millis(30'000));
  EXPECT_EQ(Try(rich), "YieldingTo");
  Pass(Millis(1));
  EXPECT_EQ(Try(rich), "n1 n2 n3") << "it had its chance";
}

// ---- questions that change nothing

TEST_F(EngineQuotaTest, WhatIfSeesQuotaAndLeavesNoTrace) {
  Nodes(Machines());
  Declare({.quotas = TwoTeams(), .budgets = {DayBudget("team-a", 100)}});
  Place(Pod("a", "a1", 8), "n1");
  const auto numbers = [this] {
    std::string text = engine_.Digest();
    for (const QuotaView& view : engine_.Quotas(now_)) {
      text += fmt::format("{} {}\n", view.report.name, view.report.workloads);
      for (const QuotaLineReport& line : view.report.lines) {
        text +=
            fmt::format("{} {}\n", line.line.used.compute, line.line.available.compute.saturated());
      }
    }
    for (const BudgetReport& budget : engine_.Budgets(now_)) {
      text += fmt::format("{}\n", static_cast<int64_t>(budget.view.committed));
    }
    return text + fmt::format("{} {}", engine_.HeldQuanta().compute, engine_.Waiting().size());
  };
  Metered();
  const std::string before = numbers();
  const std::vector<PodRequest> pods = {Pod("a", "w1", 3), Pod("a", "w2", 1), Pod("a", "w3", 1),
                                        Pod("b", "w4", 4)};
  const std::vector<WhatIfResult> results = engine_.WhatIf(pods, now_);
  EXPECT_TRUE(results[0].fits);
  EXPECT_TRUE(results[1].fits);
  EXPECT_EQ(results[0].allocation->leaf, "team-a");
  EXPECT_EQ(results[2].reason, Reason::kBorrowLimit);
  EXPECT_THAT(results[2].detail, HasSubstr("the borrowLimit of team-a binds"));
  EXPECT_TRUE(results[3].fits);
  EXPECT_EQ(numbers(), before);
  EXPECT_THAT(Metered(), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
