// The books of one node as pods come, are held anew and go, and as the node itself does.
#include "scheduler/index/node_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;

// A pod with these cards, all of each.
Holding On(const std::string& name, const std::vector<int>& cards,
           HoldingKind kind = HoldingKind::kAllocation) {
  PodRequest request = test::WholePod(name, static_cast<int64_t>(cards.size()));
  request.cpu = MilliCpu::Of(1'000);
  Holding holding;
  holding.uid = request.uid;
  holding.kind = kind;
  holding.request = std::make_shared<const PodRequest>(std::move(request));
  ContainerDevices container{"main", {}};
  for (const int card : cards) {
    const GpuUuid uuid("GPU-n-" + std::to_string(card));
    container.devices.push_back({card, uuid, kWholeGpu, Mebibytes::Of(15109), std::nullopt});
  }
  holding.allocation = Allocation{1, "", Knowledge::kExact, {container}};
  return holding;
}

std::vector<std::string> Names(const NodeState& state) {
  std::vector<std::string> names;
  for (const Holding& holding : state.holdings()) names.push_back(holding.request->name.name);
  return names;
}

// Of whole cards: how many are in use.
int64_t Busy(const Load& load) {
  int64_t busy = 0;
  for (const CardLoad& card : load.cards) busy += card.exclusive;
  return busy;
}

class NodeStateTest : public testing::Test {
 protected:
  NodeStateTest() { state_.SetFacts(test::HamiNode("n", 4), 0); }
  std::string Signature() const {
    std::string text;
    state_.Signature(state_.hard(), text);
    return text;
  }
  NodeState state_;
};

TEST_F(NodeStateTest, WhoIsNotThereChangesNothing) {
  state_.Release(PodUid("uid-a"));
  EXPECT_EQ(state_.Find(PodUid("uid-a")), nullptr);
  for (const char* name : {"b", "d"}) state_.Hold(On(name, {*name - 'b'}));
  const std::string before = Signature();
  for (const char* uid : {"uid-a", "uid-c", "uid-e"}) {
    state_.Release(PodUid(uid));
    state_.SetPlaceholderRole(PodUid(uid), PlaceholderRole::kOpen);
    EXPECT_EQ(state_.Find(PodUid(uid)), nullptr) << uid;
  }
  EXPECT_THAT(Names(state_), ElementsAre("b", "d"));
  EXPECT_EQ(Signature(), before);
  state_.Release(PodUid("uid-b"));
  EXPECT_THAT(Names(state_), ElementsAre("d"));
  EXPECT_EQ(Busy(state_.hard()), 1);
}

TEST_F(NodeStateTest, APodThatIsHeldAnewIsThereOnce) {
  state_.Hold(On("a", {0}));
  state_.Hold(On("a", {1, 2}));
  EXPECT_THAT(Names(state_), ElementsAre("a"));
  EXPECT_EQ(Busy(state_.hard()), 2);
  EXPECT_EQ(NodeState::BookedGpus(state_.inventory(), state_.hard()), 2);
}

TEST_F(NodeStateTest, TentativePodsCountSoftlyOnceTheirDevicesAreKnown) {
  state_.Hold(On("bound", {0}));
  state_.Hold(On("claimed", {1}, HoldingKind::kTentative));
  Holding nameless = On("nameless", {2}, HoldingKind::kTentative);
  nameless.allocation.reset();
  state_.Hold(nameless);
  EXPECT_TRUE(state_.has_tentative());
  EXPECT_EQ(Busy(state_.hard()), 1);
  EXPECT_EQ(Busy(state_.soft()), 2);
}

TEST_F(NodeStateTest, LoadsOfSomeOfThePodsLeaveClaimsOut) {
  state_.Hold(On("a", {0}));
  state_.Hold(On("b", {1, 2}));
  state_.Hold(On("c", {3}, HoldingKind::kTentative));
  const auto is_b = [](const PodUid& uid) { return uid == PodUid("uid-b"); };
  EXPECT_EQ(Busy(state_.LoadWithout(is_b)), 1);
  EXPECT_EQ(Busy(state_.LoadWithout([](const PodUid&) { return false; })), 3);
  Load load;
  state_.LoadWhere([](std::size_t at) { return at == 1; }, load);
  EXPECT_EQ(Busy(load), 2);
  state_.LoadWhere([](std::size_t) { return true; }, load);
  EXPECT_EQ(Busy(load), 3);
}

TEST_F(NodeStateTest, ANodeThatIsGoneKeepsItsPodsForWhenItComesBack) {
  state_.Hold(On("a", {0}));
  const std::string before = Signature();
  state_.SetFacts(std::nullopt, 0);
  EXPECT_FALSE(state_.present());
  EXPECT_TRUE(state_.inventory().cards.empty());
  EXPECT_EQ(state_.cpu_capacity(), MilliCpu::Zero());
  EXPECT_EQ(NodeState::BookedGpus(state_.inventory(), state_.hard()), 0);
  state_.Hold(On("b", {1}));
  EXPECT_THAT(Names(state_), ElementsAre("a", "b"));
  state_.Release(PodUid("uid-b"));
  state_.SetFacts(test::HamiNode("n", 4), 0);
  EXPECT_EQ(Signature(), before);
}

TEST_F(NodeStateTest, CpuIsLookedAtInSteps) {
  struct Row {
    std::optional<int64_t> capacity;
    int64_t plain;
    int64_t free;
  };
  for (const Row& row :
       {Row{{}, 0, 0}, Row{63, 0, 0}, Row{64'000, 0, 63'000}, Row{64'000, 500, 62'000},
        Row{64'000, 63'000, 0}, Row{64'000, 90'000, 0}}) {
    NodeFacts facts = test::HamiNode("n", 4);
    if (row.capacity) facts.cpu = MilliCpu::Of(*row.capacity);
    NodeState state;
    state.SetFacts(facts, 0);
    state.Hold(On("a", {0}));  // a core
    state.SetPlainCpu(MilliCpu::Of(row.plain));
    EXPECT_EQ(state.CpuFree(state.hard()), MilliCpu::Of(row.free)) << row.plain;
  }
}

// A record of an epoch that has not been is nobody's word.
TEST_F(NodeStateTest, RecordsOfALaterEpochAreBelievedWhenItHasCome) {
  state_.SetEpoch(4);
  Holding holding = On("a", {0});
  for (const auto& [epoch, known] : {std::pair(4, true), {5, false}, {-1, false}}) {
    holding.allocation->epoch = epoch;
    state_.Hold(holding);
    EXPECT_EQ(state_.holdings()[0].known, known) << epoch;
    EXPECT_EQ(state_.hard().devices_unknown, !known) << epoch;
  }
  holding.allocation->epoch = 5;
  state_.Hold(holding);
  state_.SetEpoch(5);
  EXPECT_TRUE(state_.holdings()[0].known);
}

TEST_F(NodeStateTest, WhereNoPlaceholderCanBeMadeIsAnotherState) {
  const std::string before = Signature();
  state_.SetNoNewPlaceholder(true);
  const std::string failed = Signature();
  EXPECT_NE(failed, before);
  state_.SetNoNewPlaceholder(true);
  EXPECT_EQ(Signature(), failed);
  state_.SetNoNewPlaceholder(false);
  EXPECT_EQ(Signature(), before);
}

// A claim of a filter call, and a placeholder's: neither is found on a node that has lost its
// cards.
TEST_F(NodeStateTest, WhatNamesCardsThatAreGoneNamesNone) {
  state_.Hold(On("claims", {2, 3}, HoldingKind::kTentative));
  Holding placeholder = On("keeps", {1});
  placeholder.placeholder = PlaceholderRole::kLingering;
  state_.Hold(placeholder);
  EXPECT_EQ(state_.Find(PodUid("uid-claims"))->picks.size(), 2U);
  for (const int gpus : {1, 0}) {
    state_.SetFacts(test::HamiNode("n", gpus), 0);
    for (const Holding& holding : state_.holdings()) {
      for (const Pick& pick : holding.picks) EXPECT_LT(pick.card, gpus) << holding.uid.str();
      if (holding.kind == HoldingKind::kTentative) {
        EXPECT_FALSE(holding.known);
        EXPECT_TRUE(holding.picks.empty());
      }
    }
  }
  state_.SetFacts(test::HamiNode("n", 4), 0);
  EXPECT_EQ(state_.Find(PodUid("uid-claims"))->picks.size(), 2U) << "they are back";
}

}  // namespace THIS_FILE
}  // namespace tranche
