#include "scheduler/scoring/waste.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "test/builders/cluster.h"
#include "test/builders/mix.h"

namespace tranche {
namespace THIS_FILE {

using test::FractionPod;
using test::MixOf;
using test::OnModels;
using test::WholePod;
using test::WithCpu;

constexpr MilliCpu kManyCpus = MilliCpu::Of(64'000);

// Waste of a node in one state under one mix.
int64_t WasteOf(const Mix& mix, const NodeFacts& facts, const std::vector<int64_t>& free,
                MilliCpu cpu = MilliCpu::Zero(), MilliCpu cpu_free = MilliCpu::Zero()) {
  const Inventory inventory = BuildInventory(facts, 0);
  NodeKinds kinds;
  WasteTable table(kinds);
  table.SetMix(mix);
  const KindId kind = kinds.Of(inventory, cpu);
  return table.Of(RoomOf(kinds, kind, inventory, test::LoadWithFree(inventory, free), cpu_free));
}

TEST(WasteTest, IsWhatNoRequestOfTheMixCanUse) {
  struct Row {
    Mix mix;
    std::vector<int64_t> free;
    int64_t waste;
  };
  const Mix wholes = MixOf({{WholePod("p", 1), 1}});
  const Mix halves = MixOf({{FractionPod("p", 500), 1}});
  const Mix pairs = MixOf({{WholePod("p", 2), 1}});
  const Mix quads = MixOf({{WholePod("p", 4), 1}});
  const std::vector<Row> rows = {
      {wholes, {1000, 1000, 1000, 1000}, 0},
      {wholes, {1000, 500, 999, 0}, 1499},
      {halves, {1000, 1000, 500, 500}, 0},
      {halves, {700, 499, 1000, 0}, 699},
      {pairs, {1000, 1000, 1000, 300}, 1300},
      {pairs, {1000, 0, 0, 0}, 1000},
      {quads, {1000, 1000, 1000, 0}, 3000},
      {MixOf({{FractionPod("p", 300, 2), 1}}), {700, 600, 300, 100}, 500},
      {wholes, {0, 0, 0, 0}, 0},
      {Mix(), {500, 500, 500, 500}, 0},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(WasteOf(row.mix, test::StockNode("n", 4), row.free), row.waste)
        << testing::PrintToString(row.free);
  }
}

TEST(WasteTest, SharesGoToTheTightestCard) {
  // Only 300 twice at first keeps a whole one out and wastes 100. On the loosest card one such
  // would.
  const Mix mix = MixOf({{FractionPod("p", 300), 1}, {WholePod("p", 1), 1}});
  const int64_t waste = WasteOf(mix, test::StockNode("n", 2), {1000, 300});
  EXPECT_GT(waste, 10);
  EXPECT_LT(waste, 40);
}

TEST(WasteTest, CpuStrandsGpus) {
  const Mix mix = MixOf({{WithCpu(WholePod("p", 1), 16'000), 1}});
  const NodeFacts node = test::StockNode("n", 4);
  struct Row {
    int64_t cpu_free;
    int64_t waste;
  };
  for (const Row& row : std::vector<Row>{
           {64'000, 0}, {63'000, 1000}, {32'000, 2000}, {15'999, 4000}, {0, 4000}, {-5, 4000}}) {
    EXPECT_EQ(WasteOf(mix, node, {1000, 1000, 1000, 1000}, kManyCpus, MilliCpu::Of(row.cpu_free)),
              row.waste)
        << row.cpu_free;
  }
  EXPECT_EQ(WasteOf(mix, node, {1000, 1000, 1000, 1000}), 0) << "a node that does not say";
}

TEST(WasteTest, ModelsAndMemoryBindRequests) {
  const Mix mix = MixOf({{OnModels(FractionPod("p", 500), {"a100"}), 1}});
  EXPECT_EQ(WasteOf(mix, test::StockNode("n", 2), {1000, 700}), 1700) << "an H100";
  EXPECT_EQ(WasteOf(mix, test::StockNode("n", 2, "NVIDIA-A100-SXM4-80GB"), {1000, 700}), 200);
  PodRequest large = FractionPod("p", 100);
  large.asks[0].memory = {MemoryNeed::Kind::kMib, 40'000};
  EXPECT_EQ(WasteOf(MixOf({{large, 1}}), test::StockNode("n", 1, "Tesla-T4", 15'109), {1000}),
            1000);
  // 40,000 of 81,559 MiB are 491 milli: memory binds, two go on a card.
  EXPECT_EQ(WasteOf(MixOf({{large, 1}}), test::StockNode("n", 1), {1000}), 1000 - 2 * 491);
  PodRequest roomy = WholePod("p", 1);
  roomy.min_gpu_memory = Mebibytes::Of(90'000);
  EXPECT_EQ(WasteOf(MixOf({{roomy, 1}}), test::StockNode("n", 1), {1000}), 1000);
}

TEST(WasteTest, InstancesOfStaticPoolsTakePart) {
  const NodeFacts node = test::MigNode("n", 2, 1, {{"1g.10gb", 3}, {"3g.40gb", 1}});
  const Inventory inventory = BuildInventory(node, 0);
  const MigPool& small = inventory.pools[0];
  const MigPool& large = inventory.pools[1];
  const Mix mix = MixOf({{test::MigPod("p", "1g.10gb", 1), 1}});
  EXPECT_EQ(WasteOf(mix, node, {}), 1000 + large.milli.count()) << "nobody asks for the others";
  const Mix both = MixOf({{test::MigPod("p", "3g.40gb", 1), 1}, {WholePod("p", 1), 1}});
  EXPECT_EQ(WasteOf(both, node, {}), 3 * small.milli.count());
  const Mix pairs = MixOf({{test::MigPod("p", "1g.10gb", 2), 1}, {WholePod("p", 1), 1}});
  EXPECT_EQ(WasteOf(pairs, node, {}), small.milli.count() + large.milli.count());
}

TEST(WasteTest, IsTheMeanOverWhatMayCome) {
  // 900 is left 300 by the one, 100 by two of the other: what comes first decides.
  EXPECT_EQ(WasteOf(MixOf({{FractionPod("p", 600), 1}, {FractionPod("p", 400), 1}}),
                    test::StockNode("n", 1), {900}),
            200);
  // Half of all requests want 700, half 500: one of either fits 700, what comes first decides.
  const Mix mix = MixOf({{FractionPod("p", 700), 1}, {FractionPod("p", 500), 1}});
  EXPECT_EQ(WasteOf(mix, test::StockNode("n", 1), {700}), 100)
      << "positions draw evenly from the mix";
}

TEST(WasteTest, CardsUpToTheMostThereCanBe) {
  std::vector<int64_t> free(kMaxCards, 500);
  free.back() = 1000;
  EXPECT_EQ(WasteOf(MixOf({{WholePod("p", 1), 1}}), test::StockNode("n", kMaxCards), free),
            500 * (kMaxCards - 1));
}

TEST(WasteTest, IsRememberedUntilTheMixChanges) {
  const Inventory inventory = BuildInventory(test::StockNode("n", 2), 0);
  NodeKinds kinds;
  WasteTable table(kinds);
  const KindId kind = kinds.Of(inventory, MilliCpu::Zero());
  const auto room = [&](const std::vector<int64_t>& free) {
    return RoomOf(kinds, kind, inventory, test::LoadWithFree(inventory, free), MilliCpu::Zero());
  };
  table.SetMix(MixOf({{WholePod("p", 1), 1}}));
  EXPECT_EQ(table.Of(room({1000, 300})), 300);
  EXPECT_EQ(table.Of(room({300, 1000})), 300) << "the same room";
  EXPECT_EQ(table.valued(), 1U);
  table.SetMix(MixOf({{FractionPod("p", 300), 1}}));
  EXPECT_EQ(table.Of(room({1000, 300})), 100);
  EXPECT_EQ(table.valued(), 2U);
}

TEST(WasteTest, InBalanceOnlyTheNextFewAreExpected) {
  // One in forty wants what is left. While a cluster fills that one comes in time, more or less;
  // where pods also leave, others take the room first.
  Mix mix = MixOf({{FractionPod("p", 200), 1}, {WholePod("p", 8), 39}});
  const int64_t filling = WasteOf(mix, test::StockNode("n", 1), {200});
  mix.turnover = MixLearner::kAll;
  const int64_t balance = WasteOf(mix, test::StockNode("n", 1), {200});
  EXPECT_LT(filling, balance);
  EXPECT_LT(balance, 200);
}

}  // namespace THIS_FILE
}  // namespace tranche
