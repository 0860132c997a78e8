// Planned MIG layouts: where instances are made, what the books then hold, which records are
// believed. The node is one of A100s with 80 GB unless a test says otherwise.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/index/charge_of.h"
#include "scheduler/index/node_state.h"
#include "scheduler/index/placement.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::IsEmpty;

NodeFacts PlannedNode(int gpus) {
  const int64_t most = int64_t{gpus} * 7;
  NodeFacts node = test::MigNode("planned", gpus, 0,
                                 {{"1g.10gb", most},
                                  {"1g.20gb", most},
                                  {"2g.20gb", most},
                                  {"2g.20gb", most, 2},
                                  {"3g.40gb", most},
                                  {"4g.40gb", most},
                                  {"7g.80gb", most}});
  node.mig_planned = true;
  return node;
}

const MigSpace& Space() {
  return MigSpaceOf(*FindMigBoard("NVIDIA-A100-80GB-PCIe", Mebibytes::Of(81251)));
}

struct Want {
  std::string profile;
  int64_t count = 1;
  ContainerRole role = ContainerRole::kApp;
  bool shared = false;
};

// One container for each.
PodRequest Pod(const std::vector<Want>& wants) {
  PodRequest request = test::EmptyRequest("p");
  request.style = RequestStyle::kNative;
  request.containers.clear();
  for (const Want& want : wants) {
    Ask ask;
    ask.container = static_cast<int>(request.containers.size());
    ask.resource = Resource::kMig;
    ask.count = want.count;
    ask.mig = {want.profile, want.shared};
    request.asks.push_back(ask);
    request.containers.push_back({fmt::format("c{}", ask.container), want.role, 0});
  }
  return request;
}

// A node with pods put on it one after another, as bindings would.
class TriedNode {
 public:
  explicit TriedNode(int gpus) { state_.SetFacts(PlannedNode(gpus), 0); }

  Reason Try(const PodRequest& request, const LayoutValueMap* values = nullptr) {
    return placer_.Place(state_.inventory(), state_.hard(), request,
                         {.policy = &policy_, .layout_values = values}, picks_);
  }
  // "card@start" of each device in ask order, or why there is none.
  std::string Put(const PodRequest& request, const LayoutValueMap* values = nullptr) {
    const Reason reason = Try(request, values);
    if (reason != Reason::kNone) return std::string(Describe(reason).code);
    std::string text;
    for (const Pick& pick : picks_) {
      text += fmt::format("{}{}@{}", text.empty() ? "" : " ", pick.card, SlotOf(pick).start);
    }
    Hold(request, ToAllocation(state_.inventory(), request, picks_));
    return text;
  }
  std::string Put(const std::string& profile, const LayoutValueMap* values = nullptr) {
    return Put(Pod({{profile}}), values);
  }
  // One instance exactly there, by a record.
  void Place(const std::string& profile, int card, int start) {
    const MigProfile* known = FindMigProfile(Space().board(), profile);
    Allocation record;
    record.knowledge = Knowledge::kExact;
    record.containers = {{"c0", {{card, {}, {}, {}, MigDevice{profile, start, known->size}}}}};
    Hold(Pod({{profile}}), record);
    ASSERT_TRUE(state_.holdings().back().known) << state_.holdings().back().problem;
  }
  void Hold(PodRequest request, std::optional<Allocation> record) {
    Holding holding;
    holding.uid = request.uid = PodUid(fmt::format("uid-{:03}", pods_++));
    holding.request = std::make_shared<const PodRequest>(std::move(request));
    holding.allocation = std::move(record);
    state_.Hold(std::move(holding));
  }
  void Release(int pod) { state_.Release(PodUid(fmt::format("uid-{:03}", pod))); }

  // "2g.20gb@0 1g.10gb@4" of a card, or "broken".
  std::string Layout(int card) const {
    const CardLoad& load = state_.hard().cards[static_cast<std::size_t>(card)];
    if (load.layout_broken) return "broken";
    std::string text;
    for (const MigInstance& instance : Space().instances(load.layout)) {
      text +=
          fmt::format("{}{}@{}", text.empty() ? "" : " ", instance.profile->name, instance.start);
    }
    return text;
  }
  const MigSlot& SlotOf(const Pick& pick) const {
    return state_.inventory()
        .pools[static_cast<std::size_t>(pick.pool)]
        .slots[static_cast<std::size_t>(pick.slot)];
  }
  const NodeState& state() const { return state_; }
  const Picks& picks() const { return picks_; }

 private:
  GpuPolicy policy_;
  Placer placer_;
  NodeState state_;
  Picks picks_;
  int pods_ = 0;
};

// Values that count 100 for every profile of the list that the layout has room for.
LayoutValueMap ValuesFor(const std::vector<std::string>& wanted) {
  std::vector<int32_t> values(Space().size());
  for (std::size_t layout = 0; layout < values.size(); ++layout) {
    for (const std::string& name : wanted) {
      const auto index = FindMigProfile(Space().board(), name) - Space().board().profiles.data();
      const auto id = static_cast<LayoutId>(layout);
      if (!Space().steps(id, static_cast<int>(index)).empty()) values[layout] += 100;
    }
  }
  return {{&Space(), values}};
}

TEST(PlannedPlacement, TheHighestGainTakesThePlace) {
  const LayoutValueMap four = ValuesFor({"4g.40gb"});
  EXPECT_EQ(TriedNode(1).Put("3g.40gb", &four), "0@4") << "leaves the 4g";
  EXPECT_EQ(TriedNode(1).Put("2g.20gb", &four), "0@4");
  const LayoutValueMap seven = ValuesFor({"7g.80gb"});
  TriedNode two(2);
  EXPECT_EQ(two.Put("1g.10gb", &seven), "0@6") << "all alike: the lowest card, the highest start";
  EXPECT_EQ(two.Put("1g.10gb", &seven), "0@5") << "one GPU stays whole";
  EXPECT_EQ(two.Put("4g.40gb", &seven), "0@0");
  EXPECT_EQ(two.Put("3g.40gb", &seven), "1@4");
  const LayoutValueMap unknown = {{&Space(), {}}};
  EXPECT_EQ(TriedNode(1).Put("3g.40gb", &unknown), "0@4") << "as without values";
}

TEST(PlannedPlacement, WithoutValuesTheFullestCardThenTheMostLaterPlacements) {
  TriedNode node(2);
  node.Place("2g.20gb", 1, 0);
  EXPECT_EQ(node.Put("3g.40gb"), "1@4");
  EXPECT_EQ(node.Put("1g.10gb"), "1@3") << "the fullest card";
  EXPECT_EQ(node.Put("2g.20gb"), "0@4") << "none is left there";
  EXPECT_EQ(node.Put("1g.10gb"), "1@2");
  EXPECT_EQ(node.Put("4g.40gb"), "0@0");
  EXPECT_EQ(node.Layout(0), "4g.40gb@0 2g.20gb@4");
  EXPECT_EQ(node.Layout(1), "2g.20gb@0 1g.10gb@2 1g.10gb@3 3g.40gb@4");
  node.Release(0);
  EXPECT_EQ(node.Layout(1), "1g.10gb@2 1g.10gb@3 3g.40gb@4");
}

TEST(PlannedPlacement, SeveralInstancesFindPlacesWheneverThereAreSome) {
  // The best place of the 3g alone would be where the 4g must go.
  std::vector<int32_t> values(Space().size());
  const std::vector<MigInstance> first = {{FindMigProfile(Space().board(), "3g.40gb"), 0}};
  values[*Space().Find(first)] = 1000;
  const LayoutValueMap misled = {{&Space(), values}};
  EXPECT_EQ(TriedNode(1).Put("3g.40gb", &misled), "0@0");
  EXPECT_EQ(TriedNode(1).Put(Pod({{"3g.40gb"}, {"4g.40gb"}}), &misled), "0@4 0@0");
  EXPECT_EQ(TriedNode(1).Put(Pod({{"1g.10gb", 3}, {"4g.40gb"}})), "0@6 0@5 0@4 0@0");
  EXPECT_EQ(TriedNode(1).Put(Pod({{"1g.10gb", 7}})), "0@6 0@5 0@4 0@3 0@2 0@1 0@0");
  EXPECT_EQ(TriedNode(2).Put(Pod({{"3g.40gb", 2}, {"4g.40gb", 2}})), "0@4 1@4 0@0 1@0");
}

TEST(PlannedPlacement, RefusalsSayWhatStandsInTheWay) {
  TriedNode node(2);
  node.Place("1g.10gb", 0, 0);
  node.Place("1g.10gb", 1, 0);
  struct Row {
    PodRequest request;
    std::string reason;
  };
  PodRequest large = Pod({{"1g.10gb"}});
  large.min_gpu_memory = Mebibytes::Of(20'000);
  PodRequest other = Pod({{"1g.10gb"}});
  other.models_any = {"h100"};
  PodRequest many = Pod({{"1g.10gb", 15}});
  many.pool_needs = {{"nvidia.com/mig-1g.10gb", 15}};
  const std::vector<Row> rows = {
      {Pod({{"7g.80gb"}}), "NoRoom"},
      {Pod({{"4g.40gb", 2}}), "NoRoom"},
      {Pod({{"4g.40gb", 3}}), "TooManyPerNode"},
      {Pod({{"7g.80gb"}, {"4g.40gb"}, {"4g.40gb"}}), "TooManyPerNode"},
      {many, "TooManyPerNode"},
      {Pod({{"1g.10gb+me"}}), "NoGpu"},
      {Pod({{"3g.40gb", 1, ContainerRole::kApp, true}}), "NoGpu"},
      {test::WholePod("p", 1), "NoGpu"},
      {test::FractionPod("p", 500), "NoGpu"},
      {large, "TooLarge"},
      {other, "WrongModel"},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(Describe(node.Try(rows[i].request)).code, rows[i].reason) << "row " << i;
  }
  const std::vector<SharingMode> no_mig = {SharingMode::kTimeSliced};
  GpuPolicy policy;
  Placer placer;
  Picks picks;
  EXPECT_EQ(placer.Place(node.state().inventory(), node.state().hard(), Pod({{"1g.10gb"}}),
                         {.policy = &policy, .sharing = &no_mig}, picks),
            Reason::kSharingMode);
}

TEST(PlannedPlacement, SharedInstancesFillUpBeforeAnotherIsMade) {
  const PodRequest shared = Pod({{"2g.20gb", 1, ContainerRole::kApp, true}});
  TriedNode node(1);
  EXPECT_EQ(node.Put(shared), "0@4");
  EXPECT_EQ(node.Put("2g.20gb"), "0@2") << "an instance for sharing is not one for a pod alone";
  EXPECT_EQ(node.Put(shared), "0@4");
  EXPECT_EQ(node.Put(shared), "0@0") << "full after two";
  EXPECT_EQ(node.Layout(0), "2g.20gb@0 2g.20gb@2 2g.20gb@4");
  EXPECT_EQ(PlannedRows(node.state().inventory(), node.state().hard())[0].size(), 2U + 2U * 3U);
  EXPECT_EQ(node.Put(Pod({{"2g.20gb", 2, ContainerRole::kApp, true}})), "NoRoom");
  EXPECT_EQ(node.Put(shared), "0@0");
  EXPECT_EQ(node.Put(shared), "NoRoom");
}

TEST(PlannedPlacement, InitContainersUseAgainWhatThePodHas) {
  const auto kInit = ContainerRole::kInit;
  const auto kSidecar = ContainerRole::kSidecar;
  TriedNode node(1);
  EXPECT_EQ(node.Put(Pod({{"7g.80gb", 1, kInit}, {"7g.80gb", 1, kInit}, {"7g.80gb"}})),
            "0@0 0@0 0@0");
  EXPECT_EQ(node.Layout(0), "7g.80gb@0");
  EXPECT_EQ(TriedNode(1).Put(Pod({{"7g.80gb", 1, kSidecar}, {"7g.80gb", 1, kInit}})),
            "TooManyPerNode")
      << "a sidecar keeps its own";
  EXPECT_EQ(TriedNode(1).Put(Pod({{"4g.40gb", 1, kInit}, {"2g.20gb"}, {"1g.10gb"}})), "0@0 0@4 0@6")
      << "all instances exist as long as the pod does";
  EXPECT_EQ(TriedNode(1).Put(Pod({{"7g.80gb", 1, kInit}, {"1g.10gb"}})), "TooManyPerNode");
}

TEST(PlannedPlacement, EqualNodesChooseAlikeWhicheverCardIsWhich) {
  TriedNode left(3);
  left.Place("2g.20gb", 0, 0);
  left.Place("3g.40gb", 2, 4);
  TriedNode right(3);
  right.Place("3g.40gb", 1, 4);
  right.Place("2g.20gb", 2, 0);
  const LayoutValueMap values = ValuesFor({"2g.20gb"});
  for (const LayoutValueMap* table : {static_cast<const LayoutValueMap*>(nullptr), &values}) {
    const PodRequest request = Pod({{"1g.10gb"}});
    ASSERT_EQ(left.Try(request, table), Reason::kNone);
    ASSERT_EQ(right.Try(request, table), Reason::kNone);
    const auto before = [](const TriedNode& node) {
      return node.Layout(node.picks().at(0).card) +
             fmt::format(" + {}", node.SlotOf(node.picks()[0]).start);
    };
    EXPECT_EQ(before(left), before(right));
  }
}

TEST(PlannedLoad, AnIllegalSetIsBrokenInAnyOrder) {
  TriedNode node(1);
  const Inventory& inventory = node.state().inventory();
  const auto use = [&inventory](const std::string& profile, int slot, bool shared = false) {
    return InstanceUse{inventory.FindPool(FormatMigResource({profile, shared})), slot, 1};
  };
  const std::vector<std::vector<InstanceUse>> broken = {
      {use("3g.40gb", 0), use("4g.40gb", 0), use("1g.10gb", 6)},
      {use("2g.20gb", 1), use("2g.20gb", 1, true), use("1g.10gb", 6)},
      {use("7g.80gb", 0), use("1g.10gb", 0), use("1g.10gb", 6)},
  };
  for (std::vector<InstanceUse> uses : broken) {
    std::ranges::sort(uses, {}, &InstanceUse::pool);
    do {
      Load load;
      load.Reset(inventory);
      for (const InstanceUse& one : uses) AddUse(load, {{}, {one}});
      EXPECT_TRUE(load.cards[0].layout_broken);
      EXPECT_EQ(load.cards[0].layout, kEmptyLayout);
      GpuPolicy policy;
      Placer placer;
      Picks picks;
      EXPECT_EQ(placer.Place(inventory, load, Pod({{"1g.10gb"}}), {.policy = &policy}, picks),
                Reason::kNoRoom);
    } while (std::ranges::next_permutation(uses, {}, &InstanceUse::pool).found);
  }
  Load load;
  load.Reset(inventory);
  AddUse(load, {{}, {use("1g.10gb", 6), use("1g.10gb", 6)}});
  EXPECT_FALSE(load.cards[0].layout_broken) << "two users of one instance";
}

TEST(PlannedGain, IsOfTheWholeChangeOfEachCard) {
  const LayoutValueMap values = ValuesFor({"7g.80gb", "4g.40gb", "3g.40gb"});
  TriedNode node(2);
  const auto gain = [&](const PodRequest& request) {
    EXPECT_EQ(node.Try(request, &values), Reason::kNone);
    return LayoutGain(node.state().inventory(), node.state().hard(), node.picks(), values);
  };
  const PodRequest shared = Pod({{"2g.20gb", 1, ContainerRole::kApp, true}});
  EXPECT_EQ(gain(Pod({{"1g.10gb"}})), -100) << "no 7g any more";
  EXPECT_EQ(gain(Pod({{"3g.40gb"}, {"4g.40gb"}})), -300);
  EXPECT_EQ(gain(Pod({{"7g.80gb", 2}})), -600);
  EXPECT_EQ(gain(shared), -100);
  node.Put(shared, &values);
  EXPECT_EQ(gain(shared), 0) << "it is there already";
  EXPECT_EQ(gain(Pod({{"2g.20gb", 2, ContainerRole::kApp, true}})), -100)
      << "one joins it, one is made on the other GPU";
  EXPECT_EQ(LayoutGain(node.state().inventory(), node.state().hard(), node.picks(), {}), 0);
  EXPECT_EQ(LayoutGain(BuildInventory(test::StockNode("n", 1), 0), {}, {}, values), 0);
}

TEST(PlannedCharge, IsThatOfTheProfile) {
  TriedNode node(1);
  ASSERT_EQ(node.Try(Pod({{"3g.40gb"}})), Reason::kNone);
  const MigBoard& board = Space().board();
  const ModelCharge expected{"a100-80gb", ChargeOfMig(board, *FindMigProfile(board, "3g.40gb"))};
  EXPECT_THAT(ChargeOfPicks(node.state().inventory(), Pod({{"3g.40gb"}}), node.picks()),
              ElementsAre(expected));
  std::vector<ModelCharge> most;
  ChargeAtMost(node.state().inventory(), Pod({{"3g.40gb"}}), most);
  EXPECT_THAT(most, ElementsAre(expected));
}

TEST(PlannedRecord, NamesCardProfileAndStartAndIsFoundAgain) {
  TriedNode node(2);
  const PodRequest request =
      Pod({{"1g.20gb", 1, ContainerRole::kInit}, {"3g.40gb"}, {"4g.40gb", 2}});
  ASSERT_EQ(node.Put(request), "1@6 0@4 0@0 1@0");
  const Allocation record = *node.state().holdings()[0].allocation;
  EXPECT_EQ(record.knowledge, Knowledge::kExact);
  const Device expected{0, {}, MilliGpu::Of(428), Mebibytes::Of(40192), MigDevice{"3g.40gb", 4, 4}};
  EXPECT_EQ(record.containers[1].devices, std::vector<Device>{expected});
  EXPECT_TRUE(node.state().holdings()[0].known);
  EXPECT_EQ(node.Layout(0), "4g.40gb@0 3g.40gb@4");
  EXPECT_EQ(node.Layout(1), "4g.40gb@0 1g.20gb@6");
  std::string problem;
  const auto picks = FromAllocation(node.state().inventory(), request, record, problem);
  ASSERT_TRUE(picks.has_value()) << problem;
  EXPECT_EQ(ToAllocation(node.state().inventory(), request, *picks), record);
}

TEST(PlannedRecord, WhatTheExecutorCouldNotHaveMadeIsNotBelieved) {
  struct Row {
    std::vector<Device> devices;  // for two 2g.20gb
    std::string problem;
  };
  const auto device = [](int card, const std::string& profile, int start, int size) {
    return Device{
        card, {}, MilliGpu::Of(285), Mebibytes::Of(19968), MigDevice{profile, start, size}};
  };
  const Device good = device(0, "2g.20gb", 0, 2);
  Device whole = good;
  whole.mig.reset();
  const std::vector<Row> rows = {
      {{good, device(0, "2g.20gb", 2, 2)}, ""},
      {{good, device(1, "2g.20gb", 0, 2)}, ""},
      {{good, device(0, "2g.20gb", 1, 2)},
       "expected an instance of 2g.20gb of the node, found 2g.20gb at 1 on card 0"},
      {{good, device(0, "2g.20gb", 6, 2)},
       "expected an instance of 2g.20gb of the node, found 2g.20gb at 6 on card 0"},
      {{good, device(2, "2g.20gb", 2, 2)},
       "expected an instance of 2g.20gb of the node, found 2g.20gb at 2 on card 2"},
      {{good, device(0, "1g.20gb", 2, 2)},
       "expected an instance of 2g.20gb of the node, found 1g.20gb at 2 on card 0"},
      {{good, device(0, "2g.20gb", 2, 1)},
       "expected 2 memory units for an instance of 2g.20gb, found 1"},
      {{good, good}, "expected at most 1 users of 2g.20gb at 0 on card 0, found 2"},
      {{good, whole}, "expected a MIG device, found a whole card"},
      {{good}, "expected 2 devices for container 'c0', found 1"},
  };
  const PodRequest request = Pod({{"2g.20gb", 2}});
  for (const Row& row : rows) {
    Allocation record;
    record.knowledge = Knowledge::kExact;
    record.containers = {{"c0", row.devices}};
    TriedNode node(2);
    node.Hold(request, record);
    EXPECT_EQ(node.state().holdings()[0].problem, row.problem);
    EXPECT_EQ(node.state().hard().devices_unknown, !row.problem.empty()) << row.problem;
  }
  Allocation overlapping;
  overlapping.containers = {{"c0", {device(0, "2g.20gb", 0, 2)}},
                            {"c1", {device(0, "1g.10gb", 1, 1)}}};
  std::string problem;
  EXPECT_FALSE(FromAllocation(TriedNode(1).state().inventory(), Pod({{"2g.20gb"}, {"1g.10gb"}}),
                              overlapping, problem));
  EXPECT_EQ(problem, "expected instances that may exist together, found others on card 0");
}

TEST(PlannedRecord, PodsWithoutOneHoldWhatTheyAskedForAndCloseTheNode) {
  TriedNode node(1);
  node.Hold(Pod({{"4g.40gb"}}), std::nullopt);
  EXPECT_EQ(node.Layout(0), "4g.40gb@0");
  EXPECT_TRUE(node.state().hard().devices_unknown) << "where it really is, nobody knows";
  node.Hold(Pod({{"7g.80gb"}}), std::nullopt);
  EXPECT_EQ(node.Layout(0), "broken");
  EXPECT_EQ(node.Put("1g.10gb"), "NoRoom");
}

}  // namespace THIS_FILE
}  // namespace tranche
