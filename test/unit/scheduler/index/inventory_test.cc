#include "scheduler/index/inventory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "scheduler/index/placement.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

// "whole whole mig" and so on, in card order.
std::string Modes(const Inventory& inventory) {
  static const std::map<CardMode, std::string> kNames = {{CardMode::kWhole, "whole"},
                                                         {CardMode::kReplicated, "replicated"},
                                                         {CardMode::kAgent, "hami"},
                                                         {CardMode::kMig, "mig"}};
  std::string text;
  for (const Card& card : inventory.cards) {
    text += (text.empty() ? "" : " ") + kNames.at(card.mode) + (card.healthy ? "" : "!");
  }
  return text;
}

// "1g.10gb: card@start ..." of one pool.
std::string Slots(const Inventory& inventory, const std::string& key) {
  const int pool = inventory.FindPool(key);
  if (pool < 0) return "none";
  std::string text;
  for (const MigSlot& slot : inventory.pools[static_cast<std::size_t>(pool)].slots) {
    text += fmt::format("{}{}@{}", text.empty() ? "" : " ", slot.card, slot.start);
  }
  return text;
}

TEST(InventoryTest, EachKindOfNodeHasItsCards) {
  NodeFacts single = test::StockNode("single", 14, "NVIDIA-A100-80GB-PCIe-MIG-1g.10gb", 9856);
  single.mig_strategy = MigStrategy::kSingle;
  NodeFacts invalid = test::StockNode("invalid", 0, "NVIDIA-A100-80GB-PCIe-MIG-INVALID", 0);
  NodeFacts ill = test::StockNode("ill", 4);
  ill.gpu->allocatable = 3;
  NodeFacts no_replica_label = test::SharedNode("renamed", 2, 4, true);
  no_replica_label.replicas.reset();
  struct Row {
    NodeFacts node;
    std::string modes;
    Knowledge knowledge;
    GpuUnit unit;
  };
  const std::vector<Row> rows = {
      {test::StockNode("stock", 2), "whole whole", Knowledge::kCounts, GpuUnit::kCard},
      {test::StockNode("one", 1), "whole", Knowledge::kPredicted, GpuUnit::kCard},
      {ill, "whole whole whole whole!", Knowledge::kCounts, GpuUnit::kCard},
      {test::SharedNode("sliced", 2, 4, true), "replicated replicated", Knowledge::kCounts,
       GpuUnit::kReplica},
      {test::SharedNode("plain", 1, 4, false), "replicated", Knowledge::kPredicted,
       GpuUnit::kReplica},
      {no_replica_label, "replicated replicated", Knowledge::kCounts, GpuUnit::kReplica},
      {test::MigNode("mixed", 3, 1, {{"1g.10gb", 7}, {"3g.40gb", 2}}), "whole mig mig",
       Knowledge::kCounts, GpuUnit::kCard},
      {single, "mig mig", Knowledge::kCounts, GpuUnit::kMigDevice},
      {invalid, "", Knowledge::kCounts, GpuUnit::kNone},
      {test::HamiNode("hami", 2), "hami hami", Knowledge::kExact, GpuUnit::kCard},
      {NodeFacts{}, "", Knowledge::kCounts, GpuUnit::kNone},
  };
  for (const Row& row : rows) {
    const Inventory inventory = BuildInventory(row.node, 0);
    EXPECT_EQ(Modes(inventory), row.modes) << row.node.name.str();
    EXPECT_EQ(inventory.knowledge, row.knowledge) << row.node.name.str();
    EXPECT_EQ(inventory.gpu_unit, row.unit) << row.node.name.str();
  }
}

TEST(InventoryTest, MigInstancesLieOnLegalPlaces) {
  const Inventory inventory =
      BuildInventory(test::MigNode("n", 2, 0, {{"1g.10gb", 3}, {"2g.20gb", 2}, {"3g.40gb", 2}}), 0);
  EXPECT_THAT(inventory.problems, IsEmpty());
  EXPECT_EQ(inventory.cards.size(), 2U);
  int64_t instances = 0;
  for (const MigPool& pool : inventory.pools) instances += static_cast<int64_t>(pool.slots.size());
  EXPECT_EQ(instances, 7);
  // No two instances of a card overlap.
  std::map<std::pair<int, int>, int> users;
  for (const MigPool& pool : inventory.pools) {
    for (const MigSlot& slot : pool.slots) {
      for (int unit = slot.start; unit < slot.start + slot.size; ++unit) {
        EXPECT_EQ(++users[std::pair(slot.card, unit)], 1) << slot.card << " unit " << unit;
      }
    }
  }
}

TEST(InventoryTest, ReplicasOfInstancesDivideThem) {
  const Inventory inventory = BuildInventory(test::MigNode("n", 1, 0, {{"3g.40gb", 2, 4}}), 0);
  ASSERT_EQ(inventory.pools.size(), 1U);
  const MigPool& pool = inventory.pools[0];
  EXPECT_EQ(pool.key, "nvidia.com/mig-3g.40gb.shared");
  EXPECT_EQ(Slots(inventory, pool.key), "0@0 0@4");
  EXPECT_EQ(pool.replicas, 4);
  EXPECT_EQ(pool.milli, MilliGpu::Of(107)) << "1000 x 3/7 / 4";
  EXPECT_EQ(pool.memory, Mebibytes::Of(40192 / 4));
}

TEST(InventoryTest, LabelsThatLieAreTakenAsHintsAndReported) {
  // gpu.count says one MIG GPU; the advertised instances need two.
  NodeFacts node = test::MigNode("n", 1, 0, {{"3g.40gb", 4}});
  const Inventory inventory = BuildInventory(node, 0);
  EXPECT_EQ(inventory.cards.size(), 2U);
  EXPECT_THAT(inventory.problems, Not(IsEmpty()));
}

TEST(InventoryTest, AProfileTheCatalogueLacksIsServedByItsLabelsOrNotAtAll) {
  NodeFacts node = test::MigNode("n", 1, 0, {{"2g.99gb", 3}});
  EXPECT_EQ(Slots(BuildInventory(node, 0), "nvidia.com/mig-2g.99gb"), "none");
  node.mig[0].memory = Mebibytes::Of(99'000);
  node.mig[0].gi_slices = 2;
  const Inventory inventory = BuildInventory(node, 0);
  EXPECT_EQ(Slots(inventory, "nvidia.com/mig-2g.99gb"), "0@0 0@2 0@4");
  EXPECT_EQ(inventory.pools[0].memory, Mebibytes::Of(99'000));
}

// Neither the catalogue nor somebody's hand-made label makes instances of nothing.
TEST(InventoryTest, LabelsOfAnUnknownProfileAreTakenWhereTheyMakeSense) {
  struct Row {
    std::string product;
    std::optional<int> slices;
    std::optional<int64_t> mib;
    int64_t count;
    std::string slots;  // of the first few
    int64_t instances;
    int64_t milli;
  };
  const std::string a100 = "NVIDIA-A100-80GB-PCIe";
  const std::vector<Row> rows = {
      {a100, 2, 20'000, 3, "0@0 0@2 0@4", 3, 285},
      {a100, {}, 20'000, 3, "none", 0, 0},
      {a100, 0, 20'000, 3, "none", 0, 0},
      {a100, 8, 20'000, 3, "none", 0, 0},
      {a100, 2, {}, 3, "none", 0, 0},
      // A GPU of next year: seven slices, as all so far.
      {"NVIDIA-Next-200GB", 3, 80'000, 3, "0@0 0@3 1@0", 3, 428},
      {"NVIDIA-Next-200GB", 7, 200'000, 1, "0@0", 1, 1000},
      // No node has more than 64 GPUs.
      {"NVIDIA-Next-200GB", 2, 50'000, 200, "0@0", 64 * 3, 285},
      {"NVIDIA-Next-200GB", 1, 25'000, 9000, "0@0", 64 * 7, 142},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << row.product << " " << row.slices.value_or(-1));
    NodeFacts node = test::MigNode("n", 1, 0, {{"9g.99gb", row.count}});
    node.product = row.product;
    node.count.reset();
    node.mig[0].gi_slices = row.slices;
    if (row.mib) node.mig[0].memory = Mebibytes::Of(*row.mib);
    const Inventory inventory = BuildInventory(node, 0);
    EXPECT_THAT(Slots(inventory, "nvidia.com/mig-9g.99gb"), testing::StartsWith(row.slots));
    const bool served = row.instances > 0;
    EXPECT_EQ(inventory.problems.empty(), served && row.count < 448);
    ASSERT_EQ(inventory.pools.size(), served ? 1U : 0U);
    if (!served) continue;
    EXPECT_EQ(std::ssize(inventory.pools[0].slots), row.instances);
    EXPECT_EQ(inventory.pools[0].milli, MilliGpu::Of(row.milli));
  }
}

TEST(InventoryTest, MoreInstancesThanGpusCanHaveAreNotServed) {
  const Inventory full = BuildInventory(test::MigNode("n", 64, 0, {{"7g.80gb", 64}}), 0);
  EXPECT_EQ(full.cards.size(), 64U);
  EXPECT_THAT(full.problems, IsEmpty());
  const Inventory over = BuildInventory(test::MigNode("n", 64, 0, {{"7g.80gb", 65}}), 0);
  EXPECT_THAT(over.problems,
              ElementsAre("expected MIG devices that fit the node's GPUs, found more"));
  EXPECT_THAT(over.cards, IsEmpty());
  EXPECT_THAT(over.pools, IsEmpty());
}

// Of one profile, some may be shared by several pods.
TEST(InventoryTest, TwoKeysOfOneProfileHaveInstancesOfTheirOwn) {
  const Inventory inventory =
      BuildInventory(test::MigNode("n", 2, 0, {{"3g.40gb", 3}, {"3g.40gb", 1, 2}}), 0);
  EXPECT_THAT(inventory.problems, IsEmpty());
  EXPECT_EQ(Slots(inventory, "nvidia.com/mig-3g.40gb"), "0@0 0@4 1@0");
  EXPECT_EQ(Slots(inventory, "nvidia.com/mig-3g.40gb.shared"), "1@4");
}

// Strategy single advertises instances as GPUs; with renamed replicas, as shared ones.
TEST(InventoryTest, InstancesThatAreAdvertisedAsGpus) {
  NodeFacts node = test::StockNode("n", 7, "NVIDIA-A100-80GB-PCIe-MIG-1g.10gb", 9856);
  Ask gpu;
  gpu.resource = Resource::kGpu;
  Ask shared;
  shared.resource = Resource::kGpuShared;
  const Inventory plain = BuildInventory(node, 0);
  EXPECT_EQ(PoolFor(plain, gpu), 0);
  EXPECT_EQ(PoolFor(plain, shared), -1);

  node.gpu.reset();
  node.gpu_shared = ResourceCount{14, 14};
  node.replicas = 2;
  const Inventory renamed = BuildInventory(node, 0);
  ASSERT_EQ(renamed.pools.size(), 1U);
  EXPECT_EQ(renamed.pools[0].key, "nvidia.com/gpu.shared");
  EXPECT_EQ(renamed.pools[0].slots.size(), 7U);
  EXPECT_EQ(renamed.pools[0].replicas, 2);
  EXPECT_EQ(PoolFor(renamed, gpu), -1);
  EXPECT_EQ(PoolFor(renamed, shared), 0);

  node.product = "NVIDIA-A100-80GB-PCIe-MIG-9g.99gb";
  const Inventory unknown = BuildInventory(node, 0);
  EXPECT_THAT(unknown.cards, IsEmpty());
  EXPECT_THAT(unknown.problems, Not(IsEmpty()));
}

// The label of the product and what is advertised may be of different moments.
// As GPU feature discovery writes them: replicas that are not renamed, and a dot for a plus.
TEST(InventoryTest, TheProfileOfAProductIsReadAsItIsWritten) {
  const struct {
    const char* product;
    int64_t units, replicas;
    const char* profile;
    std::size_t instances;
  } rows[] = {
      {"NVIDIA-A100-80GB-PCIe-MIG-4g.40gb-SHARED", 10, 10, "4g.40gb", 1},
      {"NVIDIA-A100-80GB-PCIe-MIG-1g.10gb.me", 1, 1, "1g.10gb+me", 1},
      {"NVIDIA-A100-80GB-PCIe-MIG-1g.10gb.me-SHARED", 4, 4, "1g.10gb+me", 1},
  };
  for (const auto& row : rows) {
    NodeFacts node = test::StockNode("n", static_cast<int>(row.units), row.product, 9856);
    node.replicas = row.replicas;
    const Inventory inventory = BuildInventory(node, 0);
    EXPECT_TRUE(inventory.problems.empty()) << row.product << ": " << inventory.problems[0];
    ASSERT_EQ(inventory.pools.size(), 1U) << row.product;
    EXPECT_EQ(inventory.pools[0].profile, row.profile) << row.product;
    EXPECT_EQ(inventory.pools[0].slots.size(), row.instances) << row.product;
    EXPECT_EQ(inventory.pools[0].replicas, row.replicas) << row.product;
    EXPECT_EQ(inventory.model, "a100-80gb") << row.product;
  }
}

TEST(InventoryTest, AProductOfOneProfileWithoutItsGpusHasNone) {
  NodeFacts node = test::StockNode("n", 7, "NVIDIA-A100-80GB-PCIe-MIG-1g.10gb", 9856);
  node.gpu.reset();
  EXPECT_THAT(BuildInventory(node, 0).cards, IsEmpty());
  // Strategy mixed by now: its keys count.
  node.gpu = ResourceCount{0, 0};
  node.count = 1;
  node.memory = Mebibytes::Of(81'251);
  node.mig = test::MigNode("n", 1, 0, {{"3g.40gb", 2}}).mig;
  const Inventory mixed = BuildInventory(node, 0);
  EXPECT_EQ(mixed.gpu_unit, GpuUnit::kCard);
  EXPECT_EQ(Slots(mixed, "nvidia.com/mig-3g.40gb"), "0@0 0@4");
}

TEST(InventoryTest, SharedUnitsWithoutAReplicasLabelAreDividedByTheCountOfGpus) {
  struct Row {
    std::optional<int64_t> replicas;
    std::optional<int64_t> count;
    std::size_t cards;
    int64_t units_a_card;
  };
  for (const Row& row :
       {Row{4, 2, 2, 4}, Row{4, {}, 2, 4}, Row{{}, 2, 2, 4}, Row{{}, {}, 8, 1}, Row{{}, 0, 8, 1}}) {
    NodeFacts node = test::SharedNode("n", 2, 4, true);
    node.replicas = row.replicas;
    node.count = row.count;
    const Inventory inventory = BuildInventory(node, 0);
    EXPECT_EQ(inventory.cards.size(), row.cards);
    EXPECT_EQ(inventory.replicas, row.units_a_card);
  }
}

// Strategy none, all GPUs in MIG mode, shared: discovery looks at those in no MIG mode alone.
TEST(InventoryTest, NoReplicasOfMoreUnitsThanGpusAreUntold) {
  NodeFacts node = test::StockNode("n", 15, "NVIDIA-A100-80GB-PCIe", 81'920);
  node.replicas = 0;
  node.count = 3;
  const Inventory shared = BuildInventory(node, 0);
  EXPECT_EQ(shared.cards.size(), 3U);
  EXPECT_EQ(shared.replicas, 5);
  node.count = 15;
  EXPECT_EQ(BuildInventory(node, 0).cards.size(), 15U) << "as many as there are GPUs";
}

TEST(InventoryTest, StaleKeysWithNothingAllocatableAreIgnored) {
  NodeFacts node = test::MigNode("n", 2, 1, {{"1g.10gb", 0}, {"7g.80gb", 1}});
  node.mig[0].count.capacity = 7;
  const Inventory inventory = BuildInventory(node, 0);
  EXPECT_EQ(Slots(inventory, "nvidia.com/mig-1g.10gb"), "none");
  EXPECT_EQ(Slots(inventory, "nvidia.com/mig-7g.80gb"), "1@0");
}

NodeFacts Planned(int gpus, const std::vector<test::MigCount>& instances) {
  NodeFacts node = test::MigNode("planned", gpus, 0, instances);
  node.mig_planned = true;
  return node;
}

TEST(InventoryTest, PlannedLayoutsOfferEveryPlaceOfAProfile) {
  NodeFacts node = Planned(2, {{"1g.20gb", 8}, {"3g.40gb", 4, 2}, {"4g.40gb", 0}, {"3g.40gb", 4}});
  for (MigResourceFacts& mig : node.mig) {
    if (mig.name.profile == "3g.40gb") mig.replicas = 2;
  }
  const Inventory inventory = BuildInventory(node, 0);
  EXPECT_THAT(inventory.problems, IsEmpty());
  EXPECT_EQ(Modes(inventory), "mig mig");
  EXPECT_EQ(inventory.knowledge, Knowledge::kExact);
  EXPECT_EQ(inventory.gpu_unit, GpuUnit::kNone);
  EXPECT_TRUE(inventory.planned());
  for (int i = 0; i < 2; ++i) {
    const Card& card = inventory.cards[static_cast<std::size_t>(i)];
    EXPECT_EQ(card.index, i);
    EXPECT_EQ(card.space, &MigSpaceOf(*FindMigBoard(node.product, *node.memory)));
    EXPECT_EQ(card.memory, node.memory);
  }
  EXPECT_EQ(Slots(inventory, "nvidia.com/mig-1g.20gb"), "0@0 0@2 0@4 0@6 1@0 1@2 1@4 1@6");
  EXPECT_EQ(Slots(inventory, "nvidia.com/mig-3g.40gb"), "0@0 0@4 1@0 1@4");
  EXPECT_EQ(Slots(inventory, "nvidia.com/mig-3g.40gb.shared"), "0@0 0@4 1@0 1@4");
  EXPECT_EQ(Slots(inventory, "nvidia.com/mig-4g.40gb"), "0@0 1@0") << "pods may hold some still";
  EXPECT_EQ(Slots(inventory, "nvidia.com/mig-7g.80gb"), "none") << "the executor makes none";
  for (const MigPool& pool : inventory.pools) {
    EXPECT_EQ(pool.replicas, pool.key == "nvidia.com/mig-3g.40gb.shared" ? 2 : 1) << pool.key;
    const MigBoard& board = inventory.cards[0].space->board();
    EXPECT_EQ(board.profiles.at(static_cast<std::size_t>(pool.planned_profile)).name, pool.profile);
  }
  EXPECT_FALSE(BuildInventory(test::MigNode("n", 2, 0, {{"1g.20gb", 8}}), 0).planned());
}

TEST(InventoryTest, PlannedLayoutsNeedABoardACountAndMigAlone) {
  const NodeFacts good = Planned(2, {{"1g.10gb", 14}});
  const auto with = [&good](auto change) {
    NodeFacts node = good;
    change(node);
    return node;
  };
  struct Row {
    NodeFacts node;
    std::string cards;
    std::string problem;
  };
  const std::vector<Row> rows = {
      {with([](NodeFacts& node) { node.product = "NVIDIA-L40S"; }), "",
       "expected a GPU with known MIG placements for planned layouts (label "
       "nvidia.com/gpu.product), found 'NVIDIA-L40S'"},
      {with([](NodeFacts& node) { node.product += "-MIG-1g.10gb"; }), "",
       "expected a GPU with known MIG placements for planned layouts (label "
       "nvidia.com/gpu.product), found 'NVIDIA-A100-80GB-PCIe-MIG-1g.10gb'"},
      {with([](NodeFacts& node) { node.count.reset(); }), "",
       "expected 1 to 64 GPUs for planned MIG layouts (label nvidia.com/gpu.count), found none"},
      {with([](NodeFacts& node) { node.count = 65; }), "",
       "expected 1 to 64 GPUs for planned MIG layouts (label nvidia.com/gpu.count), found 65"},
      {with([](NodeFacts& node) {
         node.gpu = ResourceCount{1, 1};
       }),
       "", "expected MIG devices only on a node of planned layouts, found 1 of nvidia.com/gpu"},
      {with([](NodeFacts& node) {
         node.gpu_shared = ResourceCount{2, 2};
       }),
       "",
       "expected MIG devices only on a node of planned layouts, found 2 of nvidia.com/gpu.shared"},
      {with([](NodeFacts& node) { node.mig[0].name.profile = "1g.99gb"; }), "mig mig",
       "expected a known MIG profile or its labels .slices.gi and .memory, found neither for "
       "nvidia.com/mig-1g.99gb"},
      {with([](NodeFacts& node) {
         node.mig[0].name.profile = "1g.99gb";
         node.mig[0].gi_slices = 1;
         node.mig[0].memory = Mebibytes::Of(99'000);
       }),
       "mig mig", "expected a MIG profile of a100-80, found nvidia.com/mig-1g.99gb"},
      {with([](NodeFacts& node) { node.agent = test::HamiNode("h", 1).agent; }), "hami!",
       "expected either planned MIG layouts (label tranche.dev/mig-layout) or a node agent, "
       "found both; the agent counts"},
  };
  for (const Row& row : rows) {
    const Inventory inventory = BuildInventory(row.node, 0);
    EXPECT_THAT(inventory.problems, ElementsAre(row.problem));
    EXPECT_EQ(Modes(inventory), row.cards) << row.problem;
    EXPECT_THAT(inventory.pools, IsEmpty()) << row.problem;
  }
  EXPECT_TRUE(BuildInventory(with([](NodeFacts& node) {
                               node.gpu = ResourceCount{0, 2};
                             }),
                             0)
                  .planned())
      << "a key of old";
}

TEST(InventoryTest, AHamiAgentThatAdvertisesNothingIsDead) {
  NodeFacts node = test::HamiNode("n", 2);
  node.gpu->allocatable = 0;
  EXPECT_EQ(Modes(BuildInventory(node, 0)), "hami! hami!");
  node = test::HamiNode("n", 2);
  node.cordoned_devices = {GpuUuid("GPU-n-1")};
  EXPECT_TRUE(BuildInventory(node, 0).cards[1].cordoned);
  EXPECT_EQ(BuildInventory(node, 0).agent_minor, 9);
  EXPECT_EQ(BuildInventory(node, 7).agent_minor, 7) << "policy knows better";
}

TEST(InventoryTest, ARegisterMayNameNoGpuOrMoreThanANodeHas) {
  NodeFacts none = test::HamiNode("n", 0);
  none.product.clear();
  EXPECT_EQ(Modes(BuildInventory(none, 0)), "");
  EXPECT_THAT(BuildInventory(none, 0).problems, IsEmpty());
  const Inventory many = BuildInventory(test::HamiNode("n", 65), 0);
  EXPECT_EQ(many.cards.size(), 64U);
  EXPECT_THAT(many.problems, ElementsAre("expected at most 64 GPUs, found more"));
  // What the label does not say, the agent does.
  NodeFacts unlabelled = test::HamiNode("n", 1);
  unlabelled.product.clear();
  EXPECT_EQ(BuildInventory(unlabelled, 0).product, "NVIDIA-Tesla T4");
}

TEST(InventoryTest, CardsUnderMpsTakeACappedNumberOfClients) {
  struct Row {
    std::string product;
    int64_t contexts;
  };
  const std::vector<Row> rows = {
      {"NVIDIA-H100-80GB-HBM3", 48},
      {"NVIDIA-L4-SHARED", 48},
      {"Tesla-T4", 48},
      {"NVIDIA-Quadro-RTX-6000", 48},
      {"NVIDIA-New-Board", 48},
      {"", 48},
      {"Tesla-V100-SXM2-16GB", 16},
      {"Tesla-V100S-PCIE-32GB", 16},
      {"Tesla-P100-PCIE-16GB", 16},
      {"Tesla-P40", 16},
      {"Tesla-P4-SHARED", 16},
      {"Quadro-P4000", 16},
      {"Tesla-M60", 16},
      {"Tesla-K80", 16},
  };
  for (const Row& row : rows) {
    NodeFacts node = test::SharedNode("n", 1, 100, true, SharingMethod::kMps);
    node.product = row.product;
    const Inventory inventory = BuildInventory(node, 0);
    EXPECT_EQ(inventory.cards.at(0).contexts, row.contexts) << row.product;
    EXPECT_EQ(inventory.cards.at(0).MostUsers(), row.contexts) << row.product;
    EXPECT_THAT(inventory.problems, Not(IsEmpty())) << "100 replicas, which the server refuses";
    node.sharing = SharingMethod::kTimeSlicing;
    const Inventory sliced = BuildInventory(node, 0);
    EXPECT_EQ(sliced.cards.at(0).contexts, 0) << row.product;
    EXPECT_EQ(sliced.cards.at(0).MostUsers(), 100) << row.product;
    EXPECT_THAT(sliced.problems, IsEmpty()) << row.product;
  }
}

TEST(InventoryTest, AbsurdCountsAreCut) {
  const Inventory inventory = BuildInventory(test::StockNode("n", 1'000'000), 0);
  EXPECT_EQ(inventory.cards.size(), static_cast<std::size_t>(kMaxCards));
  EXPECT_THAT(inventory.problems, Not(IsEmpty()));
}

}  // namespace THIS_FILE
}  // namespace tranche
