// Pods that share cards of a node with the stock device plugin, and the pods that hold these cards:
// one engine, a node of four cards, everything else by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/engine.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using testing::ElementsAre;
using testing::IsEmpty;

PodRequest Share(const std::string& name, int64_t milli, int64_t cards = 1) {
  PodRequest request = test::FractionPod(name, milli, cards);
  request.follows_placeholder = true;
  return request;
}

class EnginePlaceholdersTest : public testing::Test {
 protected:
  EnginePlaceholdersTest() { Start(1); }

  static EngineOptions Options(int64_t epoch) {
    EngineOptions options;
    options.epoch = epoch;
    options.placeholders = true;
    return options;
  }
  // A process begins, hears of the node and of these pods.
  void Start(int64_t epoch, const std::vector<PodFacts>& pods = {}) {
    engine_.emplace(Options(epoch));
    GpuPolicy policy;
    policy.unenforced_sharing = Permission::kRefuse;
    test::SetPolicy(*engine_, policy);
    engine_->UpsertNode(test::StockNode("a", 4), At(now_));
    for (const PodFacts& pod : pods) engine_->UpsertPod(pod, At(now_));
    engine_->FinishRestore(At(now_));
    Take();
  }

  BindPlan Bind(const PodRequest& request) {
    engine_->UpsertPod(test::Pending(request), At(now_));
    BindPlan plan = engine_->Bind(request.name, request.uid, NodeName("a"), At(now_));
    Take();
    return plan;
  }
  void Take() {
    AgentWork work = std::exchange(engine_->effects().agents, {});
    turns_.insert(turns_.end(), work.turns.begin(), work.turns.end());
    for (PlaceholderOrder& order : work.placeholders) orders_.push_back(std::move(order));
    for (const PlaceholderEnd& end : work.placeholder_ends) ended_.push_back(end.pod.name);
  }
  // The n-th pod that was ordered, as the cluster shows it.
  PodFacts Placeholder(std::size_t n, const std::string& told) const {
    const PlaceholderOrder& order = orders_.at(n);
    PodRequest request = test::WholePod(order.pod.name, 1);
    request.name = order.pod;
    request.containers = {{kPlaceholderTeller, ContainerRole::kInit, 1},
                          {kPlaceholderHolder, ContainerRole::kApp, 1}};
    request.asks.push_back(request.asks[0]);
    request.asks[1].container = 1;
    PodFacts pod = test::Bound(request, "a", order.record);
    pod.placeholder = PlaceholderFacts{GpuUuid(told)};
    return pod;
  }
  void See(const PodFacts& pod) {
    engine_->UpsertPod(pod, At(now_));
    Take();
  }
  void Delete(const PodRequest& request) {
    engine_->DeletePod(request.uid, At(now_));
    Take();
  }
  void Settle(const PodRequest& request) {
    engine_->SettleBind(request.uid, NodeName("a"), BindOutcome::kBound, At(now_));
    Take();
  }
  // Bound and running, with the card of the n-th placeholder.
  BindPlan Place(const PodRequest& request) {
    const BindPlan plan = Bind(request);
    EXPECT_EQ(plan.kind, BindPlan::Kind::kWrite) << plan.detail;
    EXPECT_TRUE(plan.turn);
    Settle(request);
    return plan;
  }
  std::string FilterReason(const PodRequest& request) {
    const std::vector<std::string_view> names = {"a"};
    FilterAnswer answer;
    engine_->Filter(request, names, At(now_), answer);
    if (!answer.chosen.empty()) return "fits";
    return std::string(Describe(answer.refused.at(0).second).code);
  }
  void TearDown() override { EXPECT_THAT(engine_->Audit(), IsEmpty()); }

  int64_t now_ = 0;
  std::optional<Engine> engine_;
  std::vector<AgentTurn> turns_;
  std::vector<PlaceholderOrder> orders_;
  std::vector<std::string> ended_;
};

const Device& OnlyDevice(const Allocation& allocation) {
  return allocation.containers.at(0).devices.at(0);
}

TEST_F(EnginePlaceholdersTest, TheFirstShareOfACardWaitsUntilItsCardIsKnown) {
  const PodRequest first = Share("first", 500);
  EXPECT_FALSE(Bind(first).turn);
  ASSERT_EQ(orders_.size(), 1U);
  EXPECT_EQ(orders_[0].node, NodeName("a"));
  EXPECT_THAT(turns_, IsEmpty());
  See(Placeholder(0, ""));
  EXPECT_THAT(turns_, IsEmpty());
  See(Placeholder(0, "GPU-x"));
  ASSERT_EQ(turns_.size(), 1U);
  EXPECT_TRUE(turns_[0].granted);
  ASSERT_TRUE(turns_[0].allocation);
  EXPECT_EQ(OnlyDevice(*turns_[0].allocation).uuid, GpuUuid("GPU-x"));
  EXPECT_EQ(turns_[0].allocation->knowledge, Knowledge::kExact);
  // A later pod is bound at once, to the same card.
  const BindPlan second = Bind(Share("second", 500));
  EXPECT_TRUE(second.turn);
  EXPECT_EQ(OnlyDevice(second.allocation).uuid, GpuUuid("GPU-x"));
  EXPECT_EQ(orders_.size(), 1U);
}

TEST_F(EnginePlaceholdersTest, SharesThatComeTogetherWaitForOneCard) {
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_FALSE(Bind(Share(name, 250)).turn);
  EXPECT_EQ(orders_.size(), 1U);
  See(Placeholder(0, "GPU-x"));
  EXPECT_EQ(turns_.size(), 4U);
}

TEST_F(EnginePlaceholdersTest, APodWithPartsOfTwoCardsWaitsForBoth) {
  EXPECT_FALSE(Bind(Share("two", 500, 2)).turn);
  ASSERT_EQ(orders_.size(), 2U);
  See(Placeholder(0, "GPU-x"));
  EXPECT_THAT(turns_, IsEmpty());
  See(Placeholder(1, "GPU-y"));
  ASSERT_EQ(turns_.size(), 1U);
  const std::vector<Device>& devices = turns_[0].allocation->containers.at(0).devices;
  EXPECT_EQ(devices.at(0).uuid, GpuUuid("GPU-x"));
  EXPECT_EQ(devices.at(1).uuid, GpuUuid("GPU-y"));
}

TEST_F(EnginePlaceholdersTest, WholeCardsAndSharedOnesKeepApart) {
  Bind(Share("share", 100));
  // Its placeholder is not there yet, and takes a card all the same.
  EXPECT_EQ(FilterReason(test::WholePod("four", 4)), "NoRoom");
  EXPECT_EQ(FilterReason(test::WholePod("three", 3)), "fits");
  See(Placeholder(0, "GPU-x"));
  EXPECT_EQ(FilterReason(test::WholePod("four", 4)), "NoRoom");
  Place(test::WholePod("three", 3));
  EXPECT_EQ(FilterReason(test::WholePod("one", 1)), "NoRoom");
  EXPECT_EQ(FilterReason(Share("beside", 900)), "fits");
  EXPECT_EQ(FilterReason(Share("large", 950)), "NoRoom");
}

TEST_F(EnginePlaceholdersTest, WithoutTheVariableAShareIsRefusedAsBefore) {
  EXPECT_EQ(FilterReason(test::FractionPod("promise", 500)), "NoAgent");
  EXPECT_EQ(FilterReason(Share("share", 500)), "fits");
}

TEST_F(EnginePlaceholdersTest, ThePlaceholderGoesWithItsLastFollower) {
  const PodRequest first = Share("first", 500);
  const PodRequest second = Share("second", 500);
  Bind(first);
  See(Placeholder(0, "GPU-x"));
  Settle(first);
  const BindPlan plan = Place(second);
  Delete(first);
  EXPECT_THAT(ended_, IsEmpty());
  // One that is terminating uses it still.
  PodFacts leaving = test::Bound(second, "a", plan.allocation);
  leaving.terminating = true;
  See(leaving);
  EXPECT_THAT(ended_, IsEmpty());
  Delete(second);
  EXPECT_THAT(ended_, ElementsAre(orders_[0].pod.name));
  // Until it is gone the card is nobody's.
  EXPECT_EQ(FilterReason(test::WholePod("four", 4)), "NoRoom");
  Delete(Placeholder(0, "GPU-x").request);
  EXPECT_EQ(FilterReason(test::WholePod("four", 4)), "fits");
}

TEST_F(EnginePlaceholdersTest, TheOneThatHoldsACardIsChargedToNobody) {
  const PodRequest share = Share("share", 500);
  Bind(share);
  const Charge before = engine_->HeldQuanta();
  See(Placeholder(0, "GPU-x"));
  EXPECT_EQ(engine_->HeldQuanta(), before);
  EXPECT_THAT(engine_->Pods({}, {}, 10), testing::SizeIs(1));
  const NodeView node = engine_->Nodes({}, 10, At(now_)).at(0);
  int64_t free = 0;
  for (const GpuView& gpu : node.gpus) free += gpu.free_milli.count();
  EXPECT_EQ(free, 3500);
}

TEST_F(EnginePlaceholdersTest, ACopyOfAPlaceholderElsewhereHoldsAWholeCard) {
  Bind(Share("share", 500));
  PodFacts copy = Placeholder(0, "GPU-x");
  copy.placeholder.reset();  // as read from any other namespace
  copy.request.name.ns = "team";
  See(copy);
  EXPECT_THAT(turns_, IsEmpty());
  EXPECT_EQ(FilterReason(test::WholePod("three", 3)), "NoRoom");
}

TEST_F(EnginePlaceholdersTest, WhatCannotBeHeldSendsItsPodsElsewhere) {
  const PodRequest share = Share("share", 500);
  Bind(share);
  engine_->SettlePlaceholder(orders_[0].pod, NodeName("a"), At(now_));
  Take();
  ASSERT_EQ(turns_.size(), 1U);
  EXPECT_FALSE(turns_[0].granted);
  engine_->SettleBind(share.uid, NodeName("a"), BindOutcome::kNotBound, At(now_));
  EXPECT_EQ(FilterReason(share), "NoRoom");
  now_ = 11;
  engine_->Tick(At(now_));
  EXPECT_EQ(FilterReason(share), "fits");
}

TEST_F(EnginePlaceholdersTest, OneThatNeverTellsIsGivenUpByTimeAlone) {
  const PodRequest share = Share("share", 500);
  Bind(share);
  See(Placeholder(0, ""));
  const std::optional<Instant> due = engine_->Tick(At(1));
  ASSERT_TRUE(due);
  EXPECT_LE(*due, At(120));
  now_ = 120;
  engine_->Tick(At(now_));
  Take();
  ASSERT_EQ(turns_.size(), 1U);
  EXPECT_FALSE(turns_[0].granted);
  EXPECT_THAT(ended_, ElementsAre(orders_[0].pod.name));
}

TEST_F(EnginePlaceholdersTest, APodThatGoesWhileItWaitsLeavesNothingBehind) {
  const PodRequest share = Share("share", 500);
  Bind(share);
  See(Placeholder(0, ""));
  Delete(share);
  ASSERT_EQ(turns_.size(), 1U);
  EXPECT_FALSE(turns_[0].granted);
  EXPECT_THAT(ended_, ElementsAre(orders_[0].pod.name));
}

TEST_F(EnginePlaceholdersTest, ARestartFindsCardsAndFollowersAgain) {
  const PodRequest share = Share("share", 500);
  Bind(share);
  See(Placeholder(0, "GPU-x"));
  Settle(share);
  const PodFacts bound = test::Bound(share, "a", turns_.at(0).allocation);
  const std::string before = engine_->Digest();
  for (const bool placeholder_first : {true, false}) {
    const std::vector<PodFacts> pods = placeholder_first
                                           ? std::vector{Placeholder(0, "GPU-x"), bound}
                                           : std::vector{bound, Placeholder(0, "GPU-x")};
    Start(2, pods);
    EXPECT_EQ(engine_->Digest(), before);
    EXPECT_THAT(ended_, IsEmpty());
    const BindPlan beside = Bind(Share("beside", 500));
    EXPECT_TRUE(beside.turn);
    EXPECT_EQ(OnlyDevice(beside.allocation).uuid, GpuUuid("GPU-x"));
  }
}

TEST_F(EnginePlaceholdersTest, AnOrphanGoesWhenNoBindingCanArriveAnyMore) {
  Bind(Share("share", 500));
  Start(2, {Placeholder(0, "GPU-x")});
  EXPECT_EQ(FilterReason(test::WholePod("four", 4)), "NoRoom");
  now_ = 89;
  engine_->Tick(At(now_));
  Take();
  EXPECT_THAT(ended_, IsEmpty());
  now_ = 90;
  engine_->Tick(At(now_));
  Take();
  EXPECT_THAT(ended_, ElementsAre(orders_[0].pod.name));
}

TEST_F(EnginePlaceholdersTest, ANodeWhoseSharedCardNobodyHoldsTakesNoMoreWork) {
  const PodRequest share = Share("share", 500);
  Bind(share);
  See(Placeholder(0, "GPU-x"));
  Settle(share);
  Delete(Placeholder(0, "GPU-x").request);  // by somebody else
  EXPECT_EQ(FilterReason(test::WholePod("one", 1)), "DevicesUnknown");
  ASSERT_EQ(orders_.size(), 2U);
  // The plugin gives the same card again: all is well.
  See(Placeholder(1, "GPU-x"));
  EXPECT_EQ(FilterReason(test::WholePod("one", 1)), "fits");
}

TEST_F(EnginePlaceholdersTest, ANodeThatShowsNoCardsForAMomentEndsNobody) {
  const PodRequest share = Share("share", 500);
  Bind(share);
  See(Placeholder(0, "GPU-x"));
  Settle(share);
  NodeFacts empty = test::StockNode("a", 0);
  engine_->UpsertNode(empty, At(1));
  engine_->DeleteNode(NodeName("a"), At(2));
  Take();
  EXPECT_THAT(ended_, IsEmpty());
  now_ = 3;
  engine_->UpsertNode(test::StockNode("a", 4), At(now_));
  Take();
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_EQ(orders_.size(), 1U);
}

}  // namespace THIS_FILE
}  // namespace tranche
