#include "scheduler/scoring/room.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "test/builders/cluster.h"
#include "test/builders/mix.h"

namespace tranche {
namespace THIS_FILE {

std::vector<int> Words(std::span<const uint16_t> words) { return {words.begin(), words.end()}; }

TEST(RoomTest, WhichCardHasHowMuchDoesNotMatter) {
  const Inventory inventory = BuildInventory(test::StockNode("n", 3), 0);
  NodeKinds kinds;
  const KindId kind = kinds.Of(inventory, MilliCpu::Of(64'000));
  const auto room = [&](const std::vector<int64_t>& free, int64_t cpu) {
    return RoomOf(kinds, kind, inventory, test::LoadWithFree(inventory, free), MilliCpu::Of(cpu));
  };
  const Room one = room({1000, 250, 600}, 9'999);
  EXPECT_EQ(Words(one.card_milli()), (std::vector{250, 600, 1000}));
  EXPECT_EQ(one.milli, 1850);
  EXPECT_EQ(one.idle, 1);
  EXPECT_EQ(one.words[1], 9) << "steps of 1000";
  EXPECT_EQ(one, room({600, 1000, 250}, 9'999));
  EXPECT_TRUE(std::ranges::equal(one.key(), room({600, 1000, 250}, 9'000).key()));
  EXPECT_FALSE(std::ranges::equal(one.key(), room({600, 1000, 250}, 8'999).key()));
  EXPECT_EQ(room({0, 0, 0}, -4).cpu, 0);
}

TEST(RoomTest, TheScarcerOfComputeAndMemoryCounts) {
  Card card;
  card.memory = Mebibytes::Of(10'000);
  CardLoad load;
  load.milli = MilliGpu::Of(300);
  load.memory = Mebibytes::Of(6'000);
  EXPECT_EQ(FreeMilli(card, load), 400);
  load.memory = Mebibytes::Of(1'000);
  EXPECT_EQ(FreeMilli(card, load), 700);
  load = {};
  EXPECT_EQ(FreeMilli(card, load), 1000);
  load.slots = 1;
  EXPECT_EQ(FreeMilli(card, load), 999) << "used, if for nothing: not idle";
  load.exclusive = 1;
  EXPECT_EQ(FreeMilli(card, load), 0);
  load = {};
  load.milli = MilliGpu::Of(1500);
  EXPECT_EQ(FreeMilli(card, load), 0) << "over-used";
  card.slots = 4;
  card.contexts = 2;
  load = {MilliGpu::Of(100), Mebibytes::Zero(), 2, 0};
  EXPECT_EQ(FreeMilli(card, load), 0) << "no MPS context left";
  card.contexts = 0;
  card.healthy = false;
  EXPECT_EQ(FreeMilli(card, {}), 0);
  card.healthy = true;
  card.cordoned = true;
  EXPECT_EQ(FreeMilli(card, {}), 0);
}

TEST(RoomTest, PoolsCountFreeReplicas) {
  const Inventory inventory =
      BuildInventory(test::MigNode("n", 2, 1, {{"1g.10gb", 3, 2}, {"3g.40gb", 1}}), 0);
  NodeKinds kinds;
  Load load;
  load.Reset(inventory);
  load.slots[0][1] = 1;
  load.slots[1][0] = 5;
  const Room room =
      RoomOf(kinds, kinds.Of(inventory, MilliCpu::Zero()), inventory, load, MilliCpu::Zero());
  EXPECT_EQ(Words(room.card_milli()), (std::vector{1000}));
  EXPECT_EQ(Words(room.pool_replicas()), (std::vector{5, 0})) << "over-used is full";
  EXPECT_EQ(room.milli, 1000 + 5 * inventory.pools[0].milli.count());
}

TEST(NodeKindsTest, KindsDifferInWhatRequestsCanTellApart) {
  NodeKinds kinds;
  const MilliCpu cpu = MilliCpu::Of(64'000);
  const auto kind_of = [&](const NodeFacts& facts, MilliCpu capacity) {
    return kinds.Of(BuildInventory(facts, 0), capacity);
  };
  const KindId first = kind_of(test::StockNode("a", 8), cpu);
  EXPECT_NE(first, kNoKind);
  EXPECT_EQ(kind_of(test::StockNode("b", 8), cpu), first) << "a name is no difference";
  const std::vector<KindId> others = {
      kind_of(test::StockNode("b", 4), cpu),
      kind_of(test::StockNode("b", 8), MilliCpu::Of(96'000)),
      kind_of(test::StockNode("b", 8, "NVIDIA-H200"), cpu),
      kind_of(test::StockNode("b", 8, "NVIDIA-H100-80GB-HBM3", 40'000), cpu),
      kind_of(test::SharedNode("b", 8, 4, true), cpu),
      kind_of(test::HamiNode("b", 8), cpu),
      kind_of(test::MigNode("b", 2, 1, {{"1g.10gb", 7}}), cpu),
      kind_of(test::MigNode("b", 2, 1, {{"2g.20gb", 3}}), cpu),
  };
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(others[i], first) << i;
    EXPECT_EQ(std::ranges::count(others, others[i]), 1) << i;
  }
}

TEST(NodeKindsTest, BeyondTheBoundNothingIsKnownOfANode) {
  NodeKinds kinds;
  const Inventory inventory = BuildInventory(test::StockNode("n", 2), 0);
  for (int64_t cpu = 1; cpu < static_cast<int64_t>(kMaxKinds); ++cpu) {
    EXPECT_NE(kinds.Of(inventory, MilliCpu::Of(cpu)), kNoKind);
  }
  EXPECT_EQ(kinds.Of(inventory, MilliCpu::Of(100'000)), kNoKind);
  EXPECT_NE(kinds.Of(inventory, MilliCpu::Of(1)), kNoKind) << "those known stay";
}

TEST(NeedTest, SaysWhatARequestTakesOfAKindOfNode) {
  NodeKinds kinds;
  const auto need = [&](const NodeFacts& facts, const PodRequest& request) {
    const KindId kind = kinds.Of(BuildInventory(facts, 0), MilliCpu::Zero());
    return NeedOf(kinds[kind], request, request.asks.front());
  };
  const NodeFacts stock = test::StockNode("n", 4);
  EXPECT_EQ(need(stock, test::WholePod("p", 4)).milli, 1000);
  EXPECT_EQ(need(stock, test::WholePod("p", 4)).count, 4);
  EXPECT_FALSE(need(stock, test::WholePod("p", 5)).possible);
  EXPECT_FALSE(need(stock, test::SharedPod("p", 1)).possible);
  EXPECT_FALSE(need(stock, test::MigPod("p", "1g.10gb", 1)).possible);
  EXPECT_FALSE(need(stock, test::OnModels(test::WholePod("p", 1), {"a100"})).possible);
  EXPECT_FALSE(need(stock, test::HamiPod("p", 1, 3000)).possible) << "no agent";
  const Need replica = need(test::SharedNode("n", 2, 4, true), test::SharedPod("p", 1));
  EXPECT_TRUE(replica.possible);
  EXPECT_EQ(replica.milli, 250);
  const Need hami = need(test::HamiNode("n", 2), test::HamiPod("p", 1, 3000));
  EXPECT_TRUE(hami.possible);
  EXPECT_EQ(hami.milli, 199) << "3000 of 15,109 MiB, rounded up";
  const Need instance =
      need(test::MigNode("n", 2, 1, {{"1g.10gb", 7}}), test::MigPod("p", "1g.10gb", 2));
  EXPECT_TRUE(instance.possible);
  EXPECT_EQ(instance.pool, 0);
  EXPECT_EQ(instance.count, 2);
}

}  // namespace THIS_FILE
}  // namespace tranche
