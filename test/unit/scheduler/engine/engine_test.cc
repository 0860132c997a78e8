#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "test/unit/scheduler/engine/engine_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Bound;
using test::FractionPod;
using test::HamiPod;
using test::MigPod;
using test::Pending;
using test::SharedPod;
using test::WholePod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- who fits where -----------------------------------------------------------------------------

TEST_F(EngineTest, EachKindOfRequestFindsItsKindOfNode) {
  Nodes({test::StockNode("whole", 8), test::SharedNode("sliced", 1, 4, true),
         test::MigNode("mig", 2, 0, {{"1g.10gb", 7}, {"3g.40gb", 2}}), test::HamiNode("hami", 2)});
  struct Row {
    PodRequest request;
    std::vector<std::string> fits;
  };
  const std::vector<Row> rows = {
      {WholePod("a", 8), {"whole"}},        {WholePod("b", 2), {"whole", "hami"}},
      {SharedPod("c", 1), {"sliced"}},      {MigPod("d", "3g.40gb", 1), {"mig"}},
      {MigPod("e", "1g.10gb", 7), {"mig"}}, {MigPod("f", "1g.10gb", 8), {}},
      {MigPod("g", "2g.20gb", 1), {}},      {HamiPod("h", 2, 4000), {"hami"}},
      {HamiPod("i", 1, 20000), {}},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(Filter(row.request), testing::UnorderedElementsAreArray(row.fits))
        << row.request.name.name;
    engine_.DeletePod(row.request.uid, now_);  // and its claim with it
  }
}

TEST_F(EngineTest, ReasonsNameTheMostFundamentalObstacle) {
  NodeFacts cordoned = test::StockNode("cordoned", 8);
  cordoned.cordoned = true;
  NodeFacts down = test::StockNode("down", 8);
  down.ready = false;
  NodeFacts upgrading = test::StockNode("upgrading", 8);
  upgrading.operator_busy = "nvidia.com/gpu-driver-upgrade-state=drain-required";
  NodeFacts garbled = test::StockNode("garbled", 8);
  garbled.agent_unreadable = "hami.io/node-nvidia-register: expected a uuid, found none";
  NodeFacts ill = test::StockNode("ill", 8);
  ill.gpu->allocatable = 3;
  NodeFacts plain;
  plain.name = NodeName("plain");
  Nodes({cordoned, down, upgrading, garbled, ill, plain, test::StockNode("small", 2),
         test::SharedNode("mps", 1, 4, true, SharingMethod::kMps), test::HamiNode("hami", 2)});
  names_.push_back(NodeName("missing"));
  PodRequest t4 = WholePod("t4", 1);
  t4.models_any = {"t4"};
  PodRequest big = WholePod("big", 1);
  big.min_gpu_memory = Mebibytes::Of(90'000);
  PodRequest pinned = HamiPod("pinned", 1, 100);
  pinned.uuids_any = {"GPU-elsewhere"};
  PodRequest wrong = WholePod("wrong", 1);
  wrong.asks.clear();
  wrong.refusal = Refusal{Reason::kBadAmount, "expected a whole number, found '1.5'"};
  struct Row {
    PodRequest request;
    std::string node;
    std::string reason;
  };
  const std::vector<Row> rows = {
      {WholePod("a", 1), "cordoned", "NodeCordoned"},
      {WholePod("b", 1), "down", "NodeNotReady"},
      {WholePod("c", 1), "upgrading", "OperatorBusy"},
      {WholePod("l", 1), "garbled", "AgentUnreadable"},
      {WholePod("d", 4), "ill", "Unhealthy"},
      {WholePod("e", 1), "plain", "NoGpu"},
      {WholePod("f", 3), "small", "TooManyPerNode"},
      {WholePod("g", 1), "missing", "UnknownNode"},
      {MigPod("h", "1g.10gb", 1), "small", "NoGpu"},
      {HamiPod("i", 1, 100), "small", "NoAgent"},
      {HamiPod("j", 1, 16000), "hami", "TooLarge"},
      {pinned, "hami", "WrongDevice"},
      {t4, "small", "WrongModel"},
      {big, "small", "TooLarge"},
      {SharedPod("k", 2), "mps", "OneReplica"},
      {wrong, "small", "BadAmount"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ReasonOn(row.request, row.node), row.reason) << row.request.name.name;
  }
}

TEST_F(EngineTest, AModelThatNobodyHasOrKnowsIsTold) {
  Nodes({test::StockNode("h100", 1), test::StockNode("odd", 1, "ACME-G9000")});
  struct Row {
    const char* model;
    Reason reason;
  };
  for (const Row& row : {Row{"t4", Reason::kWrongModel}, Row{"h1oo", Reason::kUnknownModel},
                         Row{"*h1oo*", Reason::kUnknownModel}, Row{"g9000", Reason::kNone},
                         Row{"h100", Reason::kNone}}) {
    PodRequest request = WholePod(fmt::format("asks-{}", row.model), 1);
    request.models_any = {row.model};
    Filter(request);
    EXPECT_EQ(answer_.reason, row.reason) << row.model;
  }
  EXPECT_EQ(ReasonOn(WholePod("any", 9), "h100"), "TooManyPerNode");
}

TEST_F(EngineTest, ANodeThatCannotBeReadTakesNothingNewAndKeepsWhatItHas) {
  Nodes({test::StockNode("a", 2)});
  ASSERT_TRUE(Place(WholePod("runs", 1), "a"));
  engine_.SetUnreadable(NodeName("a"), "expected object, found 5", now_);
  const PodRequest next = WholePod("next", 1);
  engine_.UpsertPod(test::Pending(next), now_);
  EXPECT_EQ(ReasonOn(next, "a"), "NodeUnreadable");
  EXPECT_FALSE(Place(WholePod("other", 1), "a"));
  EXPECT_EQ(FreeMilli("a"), 1000);
  const std::string why = "the Node object cannot be read: expected object, found 5";
  EXPECT_EQ(engine_.Nodes(NodeName(), 1, now_)[0].closed_detail, why);
  EXPECT_EQ(engine_.Explain(next.name, now_)->nodes[0].detail, why);
  engine_.SetNodeZones(NodeName("a"), NodeZones(), now_);
  EXPECT_EQ(ReasonOn(next, "a"), "NodeUnreadable") << "others say more of it, the node does not";
  engine_.effects() = {};
  engine_.UpsertNode(test::StockNode("a", 2), now_);  // as it was before
  ASSERT_EQ(engine_.effects().requeue.size(), 1U);
  EXPECT_THAT(Filter(next), ElementsAre("a"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

// Otherwise every pod that fits nowhere would be tried again for ever, as one that may have met a
// node before us.
TEST_F(EngineTest, ANodeThatNeverCouldBeReadIsClosedAndNotUnknown) {
  engine_.SetUnreadable(NodeName("odd"), "expected object, found 5", now_);
  names_.push_back(NodeName("odd"));
  const PodRequest pod = WholePod("pod", 1);
  engine_.UpsertPod(test::Pending(pod), now_);
  EXPECT_EQ(ReasonOn(pod, "odd"), "NodeUnreadable");
  ASSERT_EQ(engine_.Nodes(NodeName(), 9, now_).size(), 1U);
  EXPECT_THAT(engine_.Explain(pod.name, now_)->nodes[0].detail, HasSubstr("cannot be read"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
  engine_.DeleteNode(NodeName("odd"), now_);
  EXPECT_EQ(ReasonOn(pod, "odd"), "UnknownNode");
  engine_.SetUnreadable(NodeName("odd"), "expected object, found 5", now_);
  engine_.UpsertNode(test::StockNode("odd", 1), now_);
  EXPECT_THAT(Filter(pod), ElementsAre("odd"));
}

TEST_F(EngineTest, PodsWithoutGpuPassUntouchedAndBindWithoutDevices) {
  Nodes({test::StockNode("a", 1)});
  PodRequest plain = test::EmptyRequest("web");
  EXPECT_THAT(Filter(plain), IsEmpty());
  EXPECT_TRUE(answer_.untouched);
  ASSERT_TRUE(engine_.Knows(plain.uid));
  const BindPlan plan = engine_.Bind(plain.name, plain.uid, NodeName("a"), now_);
  EXPECT_EQ(plan.kind, BindPlan::Kind::kWrite);
  EXPECT_FALSE(plan.asks_gpu);
}

TEST_F(EngineTest, UnenforcedSharesNeedThePolicysLeave) {
  Nodes({test::StockNode("stock", 1), test::SharedNode("mps", 1, 4, true, SharingMethod::kMps)});
  EXPECT_THAT(Filter(FractionPod("a", 500)), ElementsAre("mps", "stock"));
  test::SetPolicy(engine_, GpuPolicy{});  // sharing.unenforced: Refuse
  EXPECT_THAT(Filter(FractionPod("b", 500)), ElementsAre("mps"));
  EXPECT_EQ(ReasonOn(FractionPod("b", 500), "stock"), "NoAgent");
}

TEST_F(EngineTest, SharingLimitsCapThePodsOnOneCard) {
  GpuPolicy policy;
  policy.unenforced_sharing = Permission::kAllow;
  policy.sharing_limits = {{"h100", 2}};
  test::SetPolicy(engine_, policy);
  Nodes({test::StockNode("a", 1)});
  EXPECT_TRUE(Place(FractionPod("p1", 100), "a"));
  EXPECT_TRUE(Place(FractionPod("p2", 100), "a"));
  EXPECT_FALSE(Place(FractionPod("p3", 100), "a"));
}

// ---- order --------------------------------------------------------------------------------------

TEST_F(EngineTest, OrderIsStrictAndFilterWidthLong) {
  for (int i = 0; i < 30; ++i) Nodes({test::StockNode(fmt::format("n{:02}", i), 8)});
  const PodRequest request = WholePod("p", 2);
  const std::vector<std::string> chosen = Filter(request);
  ASSERT_EQ(chosen.size(), 11U);
  EXPECT_TRUE(std::ranges::is_sorted(chosen)) << "equal nodes go by name";
  std::vector<std::string_view> backwards(chosen.rbegin(), chosen.rend());
  std::vector<int> ranks;
  engine_.Prioritize(request, backwards, now_, ranks);
  EXPECT_THAT(ranks, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  // Nodes another extender took away leave no gap at the top.
  engine_.Prioritize(request, std::vector<std::string_view>{chosen[3], chosen[1]}, now_, ranks);
  EXPECT_THAT(ranks, ElementsAre(9, 10));
}

TEST_F(EngineTest, EachStrategyHasItsFavourite) {
  struct Row {
    Strategy strategy;
    std::string best;
  };
  for (const Row& row : {Row{Strategy::kFragmentation, "half"}, Row{Strategy::kBestFit, "half"},
                         Row{Strategy::kSpread, "empty"}}) {
    Engine engine{EngineOptions{}};
    GpuPolicy policy;
    policy.strategy = row.strategy;
    policy.unenforced_sharing = Permission::kAllow;
    test::SetPolicy(engine, policy);
    engine.UpsertNode(test::StockNode("empty", 2), now_);
    engine.UpsertNode(test::StockNode("half", 2), now_);
    const PodRequest first = FractionPod("first", 500);
    engine.UpsertPod(Pending(first), now_);
    engine.Bind(first.name, first.uid, NodeName("half"), now_);
    FilterAnswer answer;
    const std::vector<std::string_view> names = {"empty", "half"};
    engine.Filter(FractionPod("p", 500), names, now_, answer);
    ASSERT_EQ(answer.chosen.size(), 2U);
    EXPECT_EQ(names[answer.chosen[0]], row.best) << static_cast<int>(row.strategy);
  }
}

TEST_F(EngineTest, ClaimsOrderAnswersButNeverRefuseABind) {
  Nodes({test::StockNode("a", 1), test::StockNode("b", 1)});
  const PodRequest first = WholePod("first", 1);
  const PodRequest second = WholePod("second", 1);
  const PodRequest third = WholePod("third", 1);
  EXPECT_THAT(Filter(first), ElementsAre("a", "b"));
  EXPECT_THAT(Filter(second), ElementsAre("b")) << "a is claimed";
  EXPECT_THAT(Filter(third), ElementsAre("a", "b")) << "all are claimed: a last resort";
  EXPECT_THAT(Filter(first), ElementsAre("a", "b")) << "its own claim is replaced";
  EXPECT_TRUE(Place(third, "a"));
  EXPECT_FALSE(Place(first, "a"));
  EXPECT_THAT(Filter(first), ElementsAre("b"));
}

TEST_F(EngineTest, ClaimsEndAfterTheirTime) {
  Nodes({test::StockNode("a", 1), test::StockNode("b", 1)});
  Filter(WholePod("first", 1));
  EXPECT_THAT(Filter(WholePod("second", 1)), ElementsAre("b"));
  now_ = At(11);
  EXPECT_EQ(engine_.Tick(now_), std::nullopt);
  EXPECT_EQ(engine_.Totals().tentative_placements, 0);
  EXPECT_THAT(Filter(WholePod("third", 1)), ElementsAre("a", "b"));
}

// ---- binding ------------------------------------------------------------------------------------

TEST_F(EngineTest, OfAHundredBindsForEightGpusEightSucceed) {
  Nodes({test::StockNode("a", 8)});
  int bound = 0;
  std::set<std::string> cards;
  for (int i = 0; i < 100; ++i) {
    const BindPlan plan = Bind(WholePod(fmt::format("p{}", i), 1), "a");
    if (plan.kind != BindPlan::Kind::kWrite) {
      EXPECT_EQ(plan.reason, Reason::kNoRoom);
      continue;
    }
    ++bound;
    for (const std::string& device : Devices(plan.allocation)) cards.insert(device);
  }
  EXPECT_EQ(bound, 8);
  EXPECT_EQ(cards.size(), 8U);
}

TEST_F(EngineTest, BindIsIdempotentByUidAndNode) {
  Nodes({test::StockNode("a", 2), test::StockNode("b", 2)});
  const PodRequest pod = FractionPod("p", 500);
  const BindPlan first = Bind(pod, "a");
  ASSERT_EQ(first.kind, BindPlan::Kind::kWrite);
  EXPECT_EQ(Bind(pod, "a").kind, BindPlan::Kind::kInFlight);
  EXPECT_EQ(Bind(pod, "b").reason, Reason::kPodElsewhere);
  engine_.SettleBind(pod.uid, NodeName("a"), BindOutcome::kUnknown, now_);
  const BindPlan again = Bind(pod, "a");
  EXPECT_EQ(again.kind, BindPlan::Kind::kWrite);
  EXPECT_EQ(again.allocation, first.allocation) << "the same devices until it is known";
  engine_.SettleBind(pod.uid, NodeName("a"), BindOutcome::kBound, now_);
  EXPECT_EQ(Bind(pod, "a").kind, BindPlan::Kind::kAlreadyBound);
  EXPECT_EQ(Bind(pod, "b").reason, Reason::kPodElsewhere);
}

TEST_F(EngineTest, ReservationsNeverEndByTimeAlone) {
  Nodes({test::StockNode("a", 1)});
  const PodRequest pod = WholePod("p", 1);
  Bind(pod, "a");
  engine_.SettleBind(pod.uid, NodeName("a"), BindOutcome::kUnknown, now_);
  now_ = At(36'000);
  engine_.Tick(now_);
  EXPECT_FALSE(Place(WholePod("other", 1), "a"));
  EXPECT_EQ(engine_.StuckReservations(now_, Millis(60'000)).size(), 1U);
  engine_.DeletePod(pod.uid, now_);
  EXPECT_TRUE(Place(WholePod("other", 1), "a"));
}

TEST_F(EngineTest, AReservationGivesWayToTheProofThatThePodIsElsewhere) {
  Nodes({test::StockNode("a", 1), test::StockNode("b", 1)});
  const PodRequest pod = WholePod("p", 1);
  Bind(pod, "a");
  engine_.UpsertPod(Bound(pod, "b"), now_);
  EXPECT_EQ(FreeMilli("a"), 1000);
  EXPECT_EQ(FreeMilli("b"), 0);
  engine_.SettleBind(pod.uid, NodeName("a"), BindOutcome::kBound, now_);
  EXPECT_EQ(FreeMilli("a"), 1000) << "a late answer changes nothing";
}

TEST_F(EngineTest, UidsTellPodsOfOneNameApart) {
  Nodes({test::StockNode("a", 2)});
  PodRequest old_pod = WholePod("p", 1);
  ASSERT_TRUE(Place(old_pod, "a"));
  PodRequest new_pod = old_pod;
  new_pod.uid = PodUid("uid-p-2");
  ASSERT_TRUE(Place(new_pod, "a"));
  EXPECT_EQ(FreeMilli("a"), 0) << "the old pod's GPU is busy until it is gone";
  engine_.DeletePod(old_pod.uid, now_);
  EXPECT_EQ(FreeMilli("a"), 1000);
  EXPECT_EQ(engine_.Bind(old_pod.name, old_pod.uid, NodeName("a"), now_).reason, Reason::kPodGone);
}

// Found by seeds 90476 and 90493: it came back as one that waits, and was counted in its gang.
TEST_F(EngineTest, AQuestionAboutAPodThatIsGoneDoesNotBringItBack) {
  Nodes({test::StockNode("a", 8)});
  const PodRequest pod = WholePod("p", 1);
  engine_.UpsertPod(Pending(pod), now_);
  engine_.DeletePod(pod.uid, now_);
  const std::vector<std::string_view> names = {"a"};
  FilterAnswer answer;
  engine_.Filter(pod, names, now_, answer);
  EXPECT_EQ(answer.reason, Reason::kPodGone);
  EXPECT_TRUE(answer.chosen.empty());
  EXPECT_FALSE(engine_.Knows(pod.uid));
  engine_.UpsertPod(Pending(pod), now_);  // a server that is behind shows it once more
  engine_.Filter(pod, names, now_, answer);
  EXPECT_EQ(answer.reason, Reason::kNone);
}

// Found by seed 102119: a record that a user wrote on a running pod without GPUs closed its node.
TEST_F(EngineTest, WhatIsWrittenLaterOnAPodThatCameWithoutWishesGivesItNothing) {
  Nodes({test::StockNode("a", 2)});
  engine_.UpsertPod(Bound(WholePod("web", 0), "a"), now_);
  engine_.UpsertPod(Bound(WholePod("web", 1), "a"), now_);
  EXPECT_EQ(FreeMilli("a"), 2000);
  engine_.UpsertPod(Bound(WholePod("seen-late", 1), "a"), now_);
  EXPECT_EQ(FreeMilli("a"), 1000) << "of one that asks when it is first seen nobody knows better";
}

// kube-scheduler gives each candidate once. Whoever does not gets each answered once.
TEST_F(EngineTest, ACandidateGivenAgainIsAnsweredOnce) {
  Nodes({test::StockNode("a", 8), test::StockNode("b", 8), test::StockNode("small", 1)});
  const std::vector<std::string_view> names = {"a", "small", "a", "b", "b", "small", "ghost", "a"};
  const PodRequest request = WholePod("p", 4);
  engine_.Filter(request, names, now_, answer_);
  EXPECT_EQ(answer_.chosen, (std::vector<uint32_t>{0, 3}));
  std::vector<uint32_t> refused;
  for (const auto& [position, reason] : answer_.refused) refused.push_back(position);
  EXPECT_EQ(refused, (std::vector<uint32_t>{1, 6}));
  std::vector<int> ranks;
  engine_.Prioritize(request, std::vector<std::string_view>{"b", "a", "b", "a"}, now_, ranks);
  EXPECT_EQ(ranks, (std::vector<int>{9, 10, 0, 0}));
  // A pod that has its node, likewise.
  ASSERT_TRUE(Place(request, "a"));
  engine_.Filter(request, names, now_, answer_);
  EXPECT_EQ(answer_.chosen, std::vector<uint32_t>{0});
  EXPECT_EQ(answer_.refused.size(), 5U);
}

// Prioritize is asked about the pod that filter has just answered for; its order stands without a
// look at the pod.
TEST_F(EngineTest, TheOrderOfTheLastFilterStandsUntilItIsAskedBeyondIt) {
  Nodes({test::StockNode("a", 8), test::StockNode("b", 8), test::StockNode("c", 1)});
  const PodRequest request = WholePod("p", 4);
  const std::vector<std::string_view> both = {"b", "a"};
  std::vector<int> ranks;
  EXPECT_FALSE(engine_.RankAsFiltered(request.uid, both, now_, ranks));
  ASSERT_EQ(Filter(request), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(engine_.RankAsFiltered(request.uid, both, now_, ranks));
  EXPECT_EQ(ranks, (std::vector<int>{9, 10}));
  EXPECT_FALSE(
      engine_.RankAsFiltered(request.uid, std::vector<std::string_view>{"a", "c"}, now_, ranks));
  EXPECT_FALSE(engine_.RankAsFiltered(PodUid("other"), both, now_, ranks));
  EXPECT_FALSE(engine_.RankAsFiltered(PodUid(), both, now_, ranks));
  ASSERT_TRUE(Place(request, "b"));
  EXPECT_FALSE(engine_.RankAsFiltered(request.uid, both, now_, ranks));
  // Taken up by filter again; its tentative placement ends by time.
  const PodRequest next = WholePod("q", 2);
  ASSERT_FALSE(Filter(next).empty());
  now_ = At(60);
  EXPECT_FALSE(engine_.RankAsFiltered(next.uid, both, now_, ranks));
}

}  // namespace THIS_FILE
}  // namespace tranche
