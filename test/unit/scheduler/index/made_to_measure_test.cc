// tranche-node with GPUs in MIG mode: its register says which, what they can be cut into, and which
// places are closed. Where instances go beside each other: planned_test.cc.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "scheduler/index/node_state.h"
#include "scheduler/index/placement.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using testing::IsEmpty;

PodRequest Pod(const std::string& profile) {
  PodRequest request = test::EmptyRequest("p");
  request.style = RequestStyle::kNative;
  Ask ask;
  ask.resource = Resource::kMig;
  ask.count = 1;
  ask.mig = {profile, false};
  request.asks.push_back(ask);
  return request;
}

class MadeToMeasure : public testing::Test {
 protected:
  // Two A100s with 80 GB; the kubelet counts as many of each profile as fit if it were for that
  // one.
  MadeToMeasure()
      : facts_(test::MigNode(
            "made", 2, 0,
            {{"1g.10gb", 14}, {"2g.20gb", 6}, {"3g.40gb", 4}, {"4g.40gb", 2}, {"7g.80gb", 2}})) {
    AgentRegister agent;
    agent.kind = AgentKind::kTranche;
    for (int i = 0; i < 2; ++i) {
      AgentDevice& device = agent.devices.emplace_back();
      device.uuid = GpuUuid(fmt::format("GPU-{}", i));
      device.index = i;
      device.slots = 1;
      device.memory = Mebibytes::Of(81251);
      device.cores_percent = 100;
      device.mode = "mig";
      device.healthy = true;
    }
    facts_.agent = agent;
  }
  AgentDevice& Card(int card) { return facts_.agent->devices[static_cast<std::size_t>(card)]; }
  // "uuid profile@start" of a pod's one device, or why there is none. What it gets is held.
  std::string Put(const std::string& profile, const std::vector<std::string>& gpus = {}) {
    PodRequest request = Pod(profile);
    request.uuids_any = gpus;
    state_.SetFacts(facts_, 0);
    const GpuPolicy policy;
    Placer placer;
    Picks picks;
    const Reason reason =
        placer.Place(state_.inventory(), state_.hard(), request, {.policy = &policy}, picks);
    if (reason != Reason::kNone) return std::string(Describe(reason).code);
    const Allocation record = ToAllocation(state_.inventory(), request, picks);
    const Device& device = record.containers.at(0).devices.at(0);
    std::string problem;
    EXPECT_EQ(FromAllocation(state_.inventory(), request, record, problem).has_value(), true)
        << problem;
    EXPECT_EQ(record.knowledge, Knowledge::kExact);
    return fmt::format("{} {}@{}", device.uuid.str(), device.mig->profile, device.mig->start);
  }

  NodeFacts facts_;
  NodeState state_;
};

TEST_F(MadeToMeasure, InstancesAreRecordedByUuidAndPlace) {
  EXPECT_EQ(Put("3g.40gb"), "GPU-0 3g.40gb@4");
  EXPECT_THAT(state_.inventory().problems, IsEmpty());
  // The agent has started anew and found the first card missing: a record still finds its own.
  const Allocation record = {0, "", Knowledge::kExact, {{"main", {Device{}}}}};
  Allocation second = record;
  second.containers[0].devices[0].uuid = GpuUuid("GPU-1");
  second.containers[0].devices[0].card = 1;
  second.containers[0].devices[0].mig = MigDevice{"2g.20gb", 2, 2};
  facts_.agent->devices.erase(facts_.agent->devices.begin());
  facts_.agent->devices[0].index = 0;
  state_.SetFacts(facts_, 0);
  std::string problem;
  const auto picks = FromAllocation(state_.inventory(), Pod("2g.20gb"), second, problem);
  ASSERT_TRUE(picks.has_value()) << problem;
  EXPECT_EQ(picks->at(0).card, 0);
}

TEST_F(MadeToMeasure, AWishForACardIsObeyedOrRefused) {
  EXPECT_EQ(Put("3g.40gb", {"GPU-1"}), "GPU-1 3g.40gb@4");
  EXPECT_EQ(Put("3g.40gb", {"GPU-9"}), "WrongDevice");
}

TEST_F(MadeToMeasure, ClosedPlacesAndCardsAreNotGiven) {
  Card(0).closed = {{"3g.40gb", 4, 4}};
  EXPECT_EQ(Put("4g.40gb"), "GPU-0 4g.40gb@0") << "the fuller card, beside the closed place";
  EXPECT_EQ(Put("3g.40gb"), "GPU-0 3g.40gb@0");
  EXPECT_EQ(Put("7g.80gb"), "GPU-1 7g.80gb@0");
  Card(1).healthy = false;
  EXPECT_EQ(Put("7g.80gb"), "NoRoom");
  EXPECT_EQ(Put("4g.40gb"), "GPU-0 4g.40gb@0");
  Card(0).closed.push_back({"2g.20gb", 4, 2});  // not beside the other: it cannot be told
  EXPECT_EQ(Put("1g.10gb"), "NoRoom");
}

// Of a GPU that is ill the driver may not say what it can be cut into.
TEST_F(MadeToMeasure, GpusThatCannotBeCutAlikeAreClosed) {
  const AgentMigProfile half{"3g.40gb", Mebibytes::Of(40448), 0, {{0, 4}, {4, 4}}};
  Card(1).mig_profiles = {half};
  EXPECT_EQ(Put("3g.40gb"), "GPU-0 3g.40gb@4");
  EXPECT_FALSE(state_.inventory().cards[1].healthy);
  EXPECT_EQ(state_.inventory().problems.size(), 1U);
  Card(0).healthy = false;
  EXPECT_EQ(Put("3g.40gb"), "GPU-1 3g.40gb@4");
  EXPECT_THAT(state_.inventory().problems, IsEmpty());
}

TEST_F(MadeToMeasure, WhatTheAgentCannotSayClosesItsGpus) {
  struct Row {
    const char* what;
    std::function<void(NodeFacts&)> change;
    std::vector<bool> healthy;
    std::size_t problems;
  };
  const AgentMigProfile one_place{"3g.40gb", Mebibytes::Of(40448), 0, {{4, 4}}};
  const std::vector<Row> rows = {
      {"nothing is wrong", [](NodeFacts&) {}, {true, true}, 0},
      {"a label for agents' nodes says so too, and is right",
       [](NodeFacts& node) { node.mig_planned = true; },
       {true, true},
       0},
      {"no GPU at all", [](NodeFacts& node) { node.agent->devices.clear(); }, {}, 0},
      {"the kubelet counts nothing: the agent is dead",
       [](NodeFacts& node) {
         for (MigResourceFacts& mig : node.mig) mig.count.allocatable = 0;
       },
       {false, false},
       0},
      {"a closed place of a profile that the board lacks",
       [](NodeFacts& node) {
         node.agent->devices[0].closed = {{"1g.99gb", 0, 1}};
       },
       {false, true},
       0},
      {"a board that nobody can cut",
       [](NodeFacts& node) {
         node.product = "NVIDIA-L40S";
         for (AgentDevice& device : node.agent->devices) device.type = "NVIDIA L40S";
       },
       {false, false},
       2},
      {"a profile at some of its places only",
       [&](NodeFacts& node) {
         for (AgentDevice& device : node.agent->devices) device.mig_profiles = {one_place};
       },
       {true, true},
       1},
  };
  for (const Row& row : rows) {
    NodeFacts facts = facts_;
    row.change(facts);
    const Inventory inventory = BuildInventory(facts, 0);
    std::vector<bool> healthy;
    for (const tranche::Card& card : inventory.cards) healthy.push_back(card.healthy);
    EXPECT_EQ(healthy, row.healthy) << row.what;
    EXPECT_EQ(inventory.problems.size(), row.problems) << row.what;
    const bool usable = row.healthy == std::vector{true, true} && row.problems == 0;
    EXPECT_EQ(inventory.FindPool("nvidia.com/mig-3g.40gb") >= 0 &&
                  std::ranges::all_of(inventory.cards, &tranche::Card::healthy),
              usable)
        << row.what;
  }
}

TEST_F(MadeToMeasure, OnANodeWithOtherGpusThoseInMigModeAreClosed) {
  Card(1).mode.clear();
  facts_.gpu = ResourceCount{1, 1};
  EXPECT_EQ(Put("1g.10gb"), "NoGpu");
  EXPECT_FALSE(state_.inventory().cards[0].healthy);
  EXPECT_TRUE(state_.inventory().cards[1].healthy);
  EXPECT_EQ(state_.inventory().problems.size(), 1U);
}

TEST_F(MadeToMeasure, EqualStatesHaveOneSignatureAndOthersNot) {
  const auto signature = [this] {
    state_.SetFacts(facts_, 0);
    std::string text;
    state_.Signature(state_.hard(), text);
    return text;
  };
  const std::string open = signature();
  Card(0).healthy = false;
  Card(1).closed = {{"3g.40gb", 0, 4}};
  const std::string one = signature();
  EXPECT_NE(one, open);
  std::swap(Card(0).healthy, Card(1).healthy);
  std::swap(Card(0).closed, Card(1).closed);
  EXPECT_EQ(signature(), one) << "whichever card is which";
  std::swap(Card(0).closed, Card(1).closed);
  EXPECT_NE(signature(), one) << "one card alone is both closed and cut";
}

}  // namespace THIS_FILE
}  // namespace tranche
