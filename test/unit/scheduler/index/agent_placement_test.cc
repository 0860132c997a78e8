// Nodes whose cards an agent divides: which pods they take, and onto which cards.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/facts/reason.h"
#include "scheduler/index/agent_cards.h"
#include "scheduler/index/node_state.h"
#include "scheduler/index/placement.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;

constexpr AgentKind kEveryAgent[] = {
    AgentKind::kNone,        AgentKind::kHami,       AgentKind::kFourPd,   AgentKind::kVolcano,
    AgentKind::kVolcanoOld,  AgentKind::kGpushare,   AgentKind::kTkestack, AgentKind::kElastic,
    AgentKind::kVgpuManager, AgentKind::kKoordinator};

MemoryNeed Mib(int64_t mib) { return {MemoryNeed::Kind::kMib, mib}; }
MemoryNeed Units(int64_t units) { return {MemoryNeed::Kind::kAgentUnits, units}; }

// One node with pods put on it one after another, as bindings would.
class PlacementNode {
 public:
  explicit PlacementNode(NodeFacts facts, Permission unenforced = Permission::kRefuse) {
    policy_.unenforced_sharing = unenforced;
    state_.SetFacts(std::move(facts), 0);
  }

  Reason Try(const PodRequest& request) {
    const CardChoice choice =
        request.card_choice == CardChoice::kStrategy ? CardChoice::kTightest : request.card_choice;
    const PlaceRules rules{&policy_, choice, -1, nullptr};
    return placer_.Place(state_.inventory(), state_.hard(), request, rules, picks_);
  }
  // Empty: it fits.
  std::string Why(const PodRequest& request) {
    const Reason reason = Try(request);
    return reason == Reason::kNone ? "" : std::string(Describe(reason).code);
  }

  // The published index of the card it got; -1: there was no room.
  int Put(PodRequest request) {
    if (Try(request) != Reason::kNone) return -1;
    Allocation allocation = ToAllocation(state_.inventory(), request, picks_);
    return Hold(std::move(request), std::move(allocation));
  }
  // A pod with the devices that its record says. -2: the record names none of this node's.
  int Hold(PodRequest request, Allocation allocation) {
    request.uid = PodUid(fmt::format("uid-{}", pods_++));
    Holding holding;
    holding.uid = request.uid;
    holding.allocation = std::move(allocation);
    holding.request = std::make_shared<const PodRequest>(std::move(request));
    const PodUid uid = holding.uid;
    state_.Hold(std::move(holding));
    const Holding& held = *state_.Find(uid);
    if (!held.known || held.picks.empty()) return -2;
    return state_.inventory().cards[static_cast<std::size_t>(held.picks[0].card)].index;
  }
  int Fill(const PodRequest& request) {
    int count = 0;
    while (Put(request) >= 0) ++count;
    return count;
  }
  std::vector<int64_t> FreeMib() const {
    std::vector<int64_t> free;
    for (std::size_t i = 0; i < state_.inventory().cards.size(); ++i) {
      free.push_back((state_.inventory().cards[i].memory - state_.hard().cards[i].memory).count());
    }
    return free;
  }
  const Inventory& inventory() const { return state_.inventory(); }

 private:
  GpuPolicy policy_;
  NodeState state_;
  Placer placer_;
  Picks picks_;
  int pods_ = 0;
};

// The pod of every style that asks for 4 GiB of a card.
PodRequest PodOf(RequestStyle style) {
  switch (style) {
    case RequestStyle::kNative:
      return test::WholePod("p", 1);
    case RequestStyle::kHami:
      return test::SharePod("p", style, "nvidia.com/gpu", 1, Mib(4096));
    case RequestStyle::kVolcano:
      return test::SharePod("p", style, "volcano.sh/vgpu-number", 1, Units(4));
    case RequestStyle::kVolcanoOld:
      return test::SharePod("p", style, "volcano.sh/gpu-memory", 4, Units(4));
    case RequestStyle::kGpushare:
      return test::SharePod("p", style, "aliyun.com/gpu-mem", 4, Units(4));
    case RequestStyle::kTkestack:
      return test::SharePod("p", style, "tencent.com/vcuda-core", 100,
                            {MemoryNeed::Kind::kWholeCard, 0}, 100);
    case RequestStyle::kElastic:
      return test::SharePod("p", style, "elasticgpu.io/gpu-core", 25, Mib(4096), 25);
    case RequestStyle::kVgpuManager:
      return test::SharePod("p", style, "nvidia.com/vgpu-number", 1, Units(4));
    default:
      return test::SharePod("p", style, "", 0, Mib(4096));
  }
}

NodeFacts NodeOf(AgentKind kind) {
  if (kind == AgentKind::kNone) return test::StockNode("n", 2);
  return test::AgentNode(kind, "n", 2, 22, 1024);
}

// Each style runs on the agent made for it, and nowhere else; styles that need none run on stock
// nodes and on agents that let them (HAMi's family, Koordinator).
TEST(AgentPlacement, AStyleRunsWhereItsAgentIs) {
  for (const AgentKind kind : kEveryAgent) {
    for (int d = static_cast<int>(RequestStyle::kNative); d < kRequestStyles; ++d) {
      const auto style = static_cast<RequestStyle>(d);
      PlacementNode node(NodeOf(kind), Permission::kAllow);
      EXPECT_EQ(node.Why(PodOf(style)), Serves(kind, style) ? "" : "NoAgent")
          << AgentName(kind) << " " << StyleName(style);
    }
  }
}

TEST(AgentPlacement, ANodeWithoutGpusLacksGpusAndNotAgents) {
  NodeFacts bare;
  bare.name = NodeName("cpu");
  for (const RequestStyle style :
       {RequestStyle::kNative, RequestStyle::kGpushare, RequestStyle::kKai}) {
    EXPECT_EQ(PlacementNode(bare).Why(PodOf(style)), "NoGpu") << StyleName(style);
  }
}

// Where the policy wants shares held to their size, somebody must be called who holds them.
TEST(AgentPlacement, SharesAreEnforcedWhereTheAgentIsCalled) {
  struct Row {
    AgentKind agent;
    RequestStyle style;
    int64_t plugin_count;
    const char* why;
  };
  const Row rows[] = {
      {AgentKind::kNone, RequestStyle::kTranche, 0, "NoAgent"},
      {AgentKind::kNone, RequestStyle::kKai, 0, "NoAgent"},
      {AgentKind::kNone, RequestStyle::kOpenGpuShare, 0, "NoAgent"},
      {AgentKind::kNone, RequestStyle::kHived, 0, "NoAgent"},
      {AgentKind::kHami, RequestStyle::kTranche, 1, ""},
      {AgentKind::kHami, RequestStyle::kTranche, 0, "NoAgent"},
      {AgentKind::kHami, RequestStyle::kKai, 1, ""},
      {AgentKind::kHami, RequestStyle::kKai, 0, "NoAgent"},
      {AgentKind::kFourPd, RequestStyle::kOpenGpuShare, 1, ""},
      {AgentKind::kKoordinator, RequestStyle::kKai, 0, ""},
      {AgentKind::kKoordinator, RequestStyle::kTranche, 0, ""},
  };
  for (const Row& row : rows) {
    PodRequest pod = PodOf(row.style);
    pod.containers[0].plugin_count = row.plugin_count;
    EXPECT_EQ(PlacementNode(NodeOf(row.agent)).Why(pod), row.why)
        << AgentName(row.agent) << " " << StyleName(row.style) << " " << row.plugin_count;
  }
}

// 24 pods of 2000 MiB on a card of 46,068 MiB: a share rounded to hundredths admits them all, and
// the last one finds no memory. By the MiB 23 fit.
TEST(AgentPlacement, MemoryIsCountedInMibNotInRoundedShares) {
  PlacementNode hami(test::AgentNode(AgentKind::kHami, "n", 1, 46068));
  // HAMi's plugin would stop at ten containers a card.
  NodeFacts roomy = test::AgentNode(AgentKind::kHami, "n", 1, 46068);
  roomy.agent->devices[0].slots = 100;
  roomy.gpu = ResourceCount{100, 100};
  EXPECT_EQ(PlacementNode(roomy).Fill(
                test::SharePod("p", RequestStyle::kHami, "nvidia.com/gpu", 1, Mib(2000))),
            23);
  EXPECT_EQ(hami.Fill(test::SharePod("p", RequestStyle::kHami, "nvidia.com/gpu", 1, Mib(2000))),
            10);
  PlacementNode stock(test::StockNode("n", 1, "NVIDIA-L40S", 46068), Permission::kAllow);
  EXPECT_EQ(stock.Fill(test::SharePod("p", RequestStyle::kKai, "", 0, Mib(2000))), 23);
}

// Five pods of 10 GiB on four cards of 23 GiB: the fifth shares a card, none waits.
TEST(AgentPlacement, FivePodsOfTenGibFitOnFourCards) {
  PlacementNode hami(test::AgentNode(AgentKind::kHami, "n", 4, 23552));
  EXPECT_EQ(hami.Fill(test::SharePod("p", RequestStyle::kHami, "nvidia.com/gpu", 1, Mib(10240))),
            8);
  PlacementNode gpushare(test::AgentNode(AgentKind::kGpushare, "n", 4, 23, 1024));
  const PodRequest pod =
      test::SharePod("p", RequestStyle::kGpushare, "aliyun.com/gpu-mem", 10, Units(10));
  EXPECT_EQ(gpushare.Put(pod), 0);
  EXPECT_EQ(gpushare.Put(pod), 0) << "packs";
  EXPECT_EQ(gpushare.Put(pod), 1);
  EXPECT_EQ(gpushare.Put(pod), 1);
  EXPECT_EQ(gpushare.Put(pod), 2);
  EXPECT_THAT(gpushare.FreeMib(), ElementsAre(3072, 3072, 13312, 23552));
}

// 3 GiB are free on each of two cards, and the node advertises 6: a pod of 4 has no card.
TEST(AgentPlacement, TheSumOfAllCardsIsNoRoomOnOne) {
  PlacementNode node(test::AgentNode(AgentKind::kGpushare, "n", 2, 23, 1024));
  const auto pod = [](int64_t gib) {
    return test::SharePod("p", RequestStyle::kGpushare, "aliyun.com/gpu-mem", gib, Units(gib));
  };
  EXPECT_EQ(node.Fill(pod(20)), 2);
  EXPECT_EQ(node.Why(pod(4)), "NoRoom");
  EXPECT_EQ(node.Why(pod(24)), "TooLarge") << "larger than any card";
  EXPECT_EQ(node.Put(pod(3)), 0);
}

// Cards with 75 and 50 of 100 free: a 50 packs onto the card with 50 free, so that a 75 still fits.
TEST(AgentPlacement, AHalfPacksOntoTheCardWithAHalfFree) {
  struct Row {
    AgentKind agent;
    RequestStyle style;
    const char* key;
  };
  const Row rows[] = {
      {AgentKind::kElastic, RequestStyle::kElastic, "elasticgpu.io/gpu-core"},
      {AgentKind::kHami, RequestStyle::kHami, "nvidia.com/gpu"},
      {AgentKind::kVolcano, RequestStyle::kVolcano, "volcano.sh/vgpu-number"},
      {AgentKind::kVgpuManager, RequestStyle::kVgpuManager, "nvidia.com/vgpu-number"},
      {AgentKind::kKoordinator, RequestStyle::kKoordinator, ""},
  };
  for (const Row& row : rows) {
    PlacementNode node(test::AgentNode(row.agent, "n", 2, 16000));
    const auto pod = [&row](int64_t cores) {
      return test::SharePod("p", row.style, row.key, 1, Mib(160 * cores), cores);
    };
    const auto on_card = [&](int card, int64_t cores) {
      const PodRequest request = pod(cores);
      Device device;
      device.card = card;
      device.uuid = node.inventory().cards[static_cast<std::size_t>(card)].uuid;
      device.milli = MilliGpu::Of(cores * 10);
      Allocation allocation;
      allocation.knowledge = Knowledge::kExact;
      allocation.containers.push_back({"main", {device}});
      return node.Hold(request, allocation);
    };
    EXPECT_EQ(on_card(0, 25), 0) << AgentName(row.agent);
    EXPECT_EQ(on_card(1, 50), 1) << AgentName(row.agent);
    EXPECT_EQ(node.Put(pod(50)), 1) << AgentName(row.agent);
    EXPECT_EQ(node.Put(pod(75)), 0) << AgentName(row.agent);
  }
}

TEST(AgentPlacement, RequestsInTheAgentsUnitsTakeItsMib) {
  PlacementNode node(test::AgentNode(AgentKind::kVolcano, "n", 1, 1510, 10));
  EXPECT_EQ(node.inventory().cards[0].memory, Mebibytes::Of(15100));
  node.Put(test::SharePod("p", RequestStyle::kVolcano, "volcano.sh/vgpu-number", 1, Units(400)));
  EXPECT_THAT(node.FreeMib(), ElementsAre(11100));
}

// With no core left, HAMi's family finds no room for pods that name none; the others do.
TEST(AgentPlacement, PodsWithoutCoresOnCardsWithoutFreeCores) {
  struct Row {
    AgentKind agent;
    RequestStyle style;
    const char* key;
    const char* why;
  };
  const Row rows[] = {
      {AgentKind::kHami, RequestStyle::kHami, "nvidia.com/gpu", "NoRoom"},
      {AgentKind::kFourPd, RequestStyle::kHami, "nvidia.com/gpu", "NoRoom"},
      {AgentKind::kVolcano, RequestStyle::kVolcano, "volcano.sh/vgpu-number", "NoRoom"},
      {AgentKind::kElastic, RequestStyle::kElastic, "elasticgpu.io/gpu-memory", ""},
      {AgentKind::kKoordinator, RequestStyle::kKoordinator, "", ""},
  };
  for (const Row& row : rows) {
    PlacementNode node(test::AgentNode(row.agent, "n", 1, 16000));
    const auto pod = [&row](int64_t cores) {
      return test::SharePod("p", row.style, row.key, 1, Mib(1000), cores);
    };
    ASSERT_EQ(node.Fill(pod(50)), 2) << AgentName(row.agent);
    EXPECT_EQ(node.Why(pod(0)), row.why) << AgentName(row.agent);
  }
}

// A hundred percent of a HAMi card whose cores are scaled to two hundred is a part of it.
TEST(AgentPlacement, OnlyAHundredPercentOfAHundredIsExclusive) {
  for (const int64_t cores : {100, 200}) {
    NodeFacts facts = test::AgentNode(AgentKind::kHami, "n", 1, 16000);
    facts.agent->devices[0].cores_percent = static_cast<int>(cores);
    PodRequest pod = test::SharePod("p", RequestStyle::kHami, "nvidia.com/gpu", 1, Mib(1000), 100);
    pod.asks[0].exclusive = true;
    EXPECT_EQ(PlacementNode(facts).Fill(pod), cores / 100);
  }
}

// One card has more pods, the other more memory in use: what is fuller is what the weights say.
TEST(AgentPlacement, WeightsSayWhichCardIsFuller) {
  struct Row {
    CardWeights weights;
    CardChoice choice;
    int card;
  };
  for (const Row& row :
       {Row{{1, 0, 0}, CardChoice::kTightest, 0}, Row{{1, 0, 0}, CardChoice::kLoosest, 1},
        Row{{0, 0, 1}, CardChoice::kTightest, 1}, Row{{0, 0, 1}, CardChoice::kLoosest, 0},
        Row{{0, 1, 0}, CardChoice::kTightest, 0}, Row{{1, 1, 9}, CardChoice::kTightest, 1}}) {
    PlacementNode node(test::AgentNode(AgentKind::kHami, "n", 2, 16000));
    const auto put = [&node](const char* name, int64_t mib, int64_t cores, const char* uuid) {
      PodRequest pod =
          test::SharePod(name, RequestStyle::kHami, "nvidia.com/gpu", 1, Mib(mib), cores);
      pod.uuids_any = {uuid};
      ASSERT_GE(node.Put(pod), 0);
    };
    put("a", 1000, 30, "GPU-n-0");
    put("b", 1000, 30, "GPU-n-0");
    put("c", 9000, 10, "GPU-n-1");
    PodRequest next = test::SharePod("d", RequestStyle::kHami, "nvidia.com/gpu", 1, Mib(1000), 10);
    next.card_weights = row.weights;
    next.card_choice = row.choice;
    EXPECT_EQ(node.Put(next), row.card)
        << row.weights.slot << row.weights.core << row.weights.memory;
  }
}

// gpu-manager picks for parts of a card by itself, by what is free when the kubelet calls it, and
// fails the pod whose record names another card: it serves whole cards only.
TEST(AgentPlacement, AnAgentThatChoosesItselfServesWholeCardsOnly) {
  PlacementNode node(test::AgentNode(AgentKind::kTkestack, "n", 3, 60, 256));
  const PodRequest part =
      test::SharePod("p", RequestStyle::kTkestack, "tencent.com/vcuda-core", 30, Units(10), 30);
  EXPECT_EQ(node.Why(part), "NoAgent");
  const PodRequest whole = test::SharePod("p", RequestStyle::kTkestack, "tencent.com/vcuda-core",
                                          200, {MemoryNeed::Kind::kWholeCard, 0}, 100, 2);
  EXPECT_EQ(node.Put(whole), 0);
  EXPECT_THAT(node.FreeMib(), ElementsAre(0, 0, 60 * 256));
}

// Records name whole cards by UUID, and none that its register calls ill.
TEST(AgentPlacement, TrancheNodeGivesWholeCardsAsTheRecordSays) {
  NodeFacts facts = test::AgentNode(AgentKind::kTranche, "n", 3, 81559);
  facts.gpu = ResourceCount{2, 3};
  for (AgentDevice& device : facts.agent->devices) device.slots = 1;
  facts.agent->devices[0].healthy = false;
  const Inventory inventory = BuildInventory(facts, 0);
  EXPECT_EQ(inventory.knowledge, Knowledge::kExact);
  PlacementNode node(std::move(facts), Permission::kAllow);
  EXPECT_EQ(node.Why(test::FractionPod("part", 500)), "NoAgent");
  EXPECT_NE(node.Why(test::WholePod("three", 3)), "");
  EXPECT_GT(node.Put(test::WholePod("two", 2)), 0) << "the first is ill";
  EXPECT_NE(node.Why(test::WholePod("one", 1)), "");
}

// By MPS, as many containers on a card as it has slots for.
TEST(AgentPlacement, TrancheNodeGivesPartsOfCardsThatItShares) {
  NodeFacts facts = test::AgentNode(AgentKind::kTranche, "n", 2, 80000);
  facts.gpu = ResourceCount{6, 6};
  for (AgentDevice& device : facts.agent->devices) {
    device.mode = "mps";
    device.slots = 3;
  }
  PlacementNode node(std::move(facts));
  const auto part = [](const char* name, int64_t milli) {
    PodRequest request = test::FractionPod(name, milli);
    request.containers.at(0).plugin_count = 1;  // nvidia.com/gpu: 1
    return request;
  };
  const int card = node.Put(part("a", 300));
  ASSERT_GE(card, 0);
  EXPECT_EQ(node.Put(part("b", 300)), card) << "where a part is taken already";
  EXPECT_EQ(node.Put(part("c", 100)), card);
  EXPECT_EQ(node.Put(part("d", 100)), 1 - card) << "there are three slots";
  EXPECT_NE(node.Why(test::WholePod("whole", 1)), "");
  EXPECT_THAT(node.FreeMib(), ElementsAre(card == 0 ? 24000 : 72000, card == 0 ? 72000 : 24000));
  EXPECT_EQ(node.Why(test::FractionPod("by annotation alone", 100)), "NoAgent")
      << "the kubelet would not ask the agent for it";
}

TEST(AgentPlacement, TellsWhatHoldsAContainerToItsPart) {
  const auto by = [](const NodeFacts& facts) {
    const Inventory inventory = BuildInventory(facts, 0);
    return std::string(EnforcementOf(inventory, inventory.cards.front()));
  };
  NodeFacts stock = test::StockNode("n", 1, "NVIDIA-L40S", 46068);
  EXPECT_EQ(by(stock), "");
  stock.sharing = SharingMethod::kTimeSlicing;
  stock.replicas = 4;
  EXPECT_EQ(by(stock), "") << "time-slicing limits nothing";
  stock.sharing = SharingMethod::kMps;
  EXPECT_EQ(by(stock), "mps");
  EXPECT_EQ(by(test::AgentNode(AgentKind::kHami, "n", 1, 46068)), "hami-core");
  EXPECT_EQ(by(test::AgentNode(AgentKind::kGpushare, "n", 1, 23, 1024)), "") << "it counts alone";
  NodeFacts own = test::AgentNode(AgentKind::kTranche, "n", 1, 46068);
  EXPECT_EQ(by(own), "");
  own.agent->devices[0].mode = "mps";
  EXPECT_EQ(by(own), "mps");
}

// Agents that go by index: the record's number finds the card, whatever its place in the list.
TEST(AgentRecords, AreFoundByIndexOrUuidAsTheAgentHasThem) {
  struct Row {
    AgentKind agent;
    int index;
    const char* uuid;
    int found;
  };
  const Row rows[] = {
      {AgentKind::kGpushare, 1, "", 1},
      {AgentKind::kGpushare, 7, "", -2},
      {AgentKind::kElastic, 0, "GPU-else", 0},
      {AgentKind::kKoordinator, 1, "", 1},
      {AgentKind::kKoordinator, 9, "GPU-n-0", 0},
      {AgentKind::kKoordinator, 0, "GPU-else", -2},
      {AgentKind::kHami, 1, "", -2},
      {AgentKind::kHami, 9, "GPU-n-1", 1},
      {AgentKind::kVgpuManager, 0, "GPU-n-1", 1},
  };
  for (const Row& row : rows) {
    PlacementNode node(test::AgentNode(row.agent, "n", 2, 16000));
    Device device;
    device.card = row.index;
    device.uuid = GpuUuid(row.uuid);
    Allocation allocation;
    allocation.knowledge = Knowledge::kExact;
    allocation.containers.push_back({"main", {device}});
    EXPECT_EQ(node.Hold(test::SharePod("p", RequestStyle::kHami, "", 0, Mib(100)), allocation),
              row.found)
        << AgentName(row.agent) << " " << row.index << " '" << row.uuid << "'";
  }
}

TEST(AgentInventory, AnAgentThatAdvertisesNothingIsDead) {
  for (const AgentKind kind : kEveryAgent) {
    if (kind == AgentKind::kNone || kind == AgentKind::kKoordinator) continue;
    NodeFacts facts = test::AgentNode(kind, "n", 2, 22, 1024);
    EXPECT_TRUE(BuildInventory(facts, 0).has_devices()) << AgentName(kind);
    if (facts.gpu) facts.gpu->allocatable = 0;
    for (AgentAmount& amount : facts.agent_amounts) amount.count.allocatable = 0;
    const Inventory inventory = BuildInventory(facts, 0);
    EXPECT_FALSE(inventory.has_devices()) << AgentName(kind);
    for (const Card& card : inventory.cards) EXPECT_FALSE(card.healthy) << AgentName(kind);
  }
}

TEST(AgentInventory, WhatTheAgentAdvertisesIsCounted) {
  NodeFacts facts = test::AgentNode(AgentKind::kGpushare, "n", 2, 22, 1024);
  // A card is ill: the plugin advertises fewer units, and does not say which card it is.
  facts.agent_amounts[1].count.allocatable = 22;
  PlacementNode node(facts);
  ASSERT_NE(node.inventory().FindKey("aliyun.com/gpu-mem"), nullptr);
  EXPECT_EQ(node.inventory().FindKey("aliyun.com/gpu-mem")->allocatable, 22);
  const PodRequest pod =
      test::SharePod("p", RequestStyle::kGpushare, "aliyun.com/gpu-mem", 20, Units(20));
  EXPECT_EQ(node.Fill(pod), 1) << "kubelet has no more to give";
}

TEST(AgentInventory, OnlyHamiHasAVersionThePolicyMayState) {
  EXPECT_EQ(BuildInventory(test::AgentNode(AgentKind::kHami, "n", 1, 16000), 8).agent_minor, 8);
  EXPECT_EQ(BuildInventory(test::AgentNode(AgentKind::kVolcano, "n", 1, 16000), 8).agent_minor, 0);
}

// Koordinator's nodes advertise the stock plugin's cards at most.
TEST(AgentInventory, KoordinatorsCardsCountWithoutAPlugin) {
  NodeFacts facts = test::AgentNode(AgentKind::kKoordinator, "n", 2, 16000);
  facts.gpu.reset();
  EXPECT_TRUE(BuildInventory(facts, 0).has_devices());
  EXPECT_EQ(PlacementNode(facts).Why(PodOf(RequestStyle::kKoordinator)), "");
  EXPECT_EQ(PlacementNode(facts).Why(PodOf(RequestStyle::kNative)), "NoGpu")
      << "nobody gives nvidia.com/gpu";
  for (AgentDevice& device : facts.agent->devices) device.healthy = false;
  EXPECT_FALSE(BuildInventory(facts, 0).has_devices());
}

}  // namespace THIS_FILE
}  // namespace tranche
