#include "scheduler/scoring/prices.h"

#include <gtest/gtest.h>

#include "test/builders/cluster.h"
#include "test/builders/mix.h"

namespace tranche {
namespace THIS_FILE {

using test::FractionPod;
using test::MixOf;
using test::OnModels;
using test::WholePod;
using test::WithCpu;

// A cluster whose nodes are set by hand.
class PricesTest : public testing::Test {
 protected:
  Room RoomWith(const NodeFacts& facts, const std::vector<int64_t>& free,
                int64_t cpu_free = 128'000) {
    const Inventory inventory = BuildInventory(facts, 0);
    return RoomOf(kinds_, kinds_.Of(inventory, MilliCpu::Of(128'000)), inventory,
                  test::LoadWithFree(inventory, free), MilliCpu::Of(cpu_free));
  }
  Room Idle(const NodeFacts& facts) {
    return RoomWith(facts, std::vector<int64_t>(static_cast<std::size_t>(*facts.count), 1000));
  }
  void SetMix(const Mix& mix) {
    waste_.SetMix(mix);
    prices_.SetMix(mix, MixChange::kAll);
  }
  void SetNodes(uint32_t from, uint32_t count, const Room& room) {
    for (uint32_t node = from; node < from + count; ++node) prices_.SetNode(node, &room);
  }
  // Prices follow what there is, and are those `request` meets.
  void Ask(const PodRequest& request) {
    for (int i = 0; i < 8; ++i) prices_.Follow();
    prices_.Prepare(request);
  }
  // What `request` pays for going from one room to the other.
  int64_t Loss(const PodRequest& request, const Room& before, const Room& after) {
    Ask(request);
    return prices_.OfLoss(prices_.LossOf(before, after));
  }

  NodeKinds kinds_;
  WasteTable waste_{kinds_};
  Prices prices_{kinds_, waste_};
};

TEST_F(PricesTest, RoomForMultiGpuWorkCostsByTheChanceThatItIsShort) {
  const NodeFacts node = test::StockNode("n", 8);
  const Room idle = Idle(node);
  const Room used = RoomWith(node, {500, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
  const PodRequest half = FractionPod("p", 500);
  struct Row {
    int64_t eights;  // of 1000 arrivals, the others take 500 milli
    int64_t least;
    int64_t most;
  };
  // Eight cards of eights among cards of halves: demand until full, twice over, is
  // 2 x 8 e / (8 e + 0.5 (1000 - e)) of what there is: a fifth, all of it, and more than there is.
  for (const Row& row : std::vector<Row>{{7, 0, 0}, {59, 2000, 6500}, {500, 8000, 8000}}) {
    SetMix(MixOf({{WholePod("p", 8), row.eights}, {half, 1000 - row.eights}}));
    SetNodes(0, 100, idle);
    const int64_t found = Loss(half, idle, used);
    EXPECT_GE(found, row.least) << row.eights;
    EXPECT_LE(found, row.most) << row.eights;
  }
}

TEST_F(PricesTest, OnlySlotsThatAreLostCost) {
  const NodeFacts node = test::StockNode("n", 8);
  SetMix(MixOf({{WholePod("p", 8), 1}, {FractionPod("p", 500), 1}}));
  const Room idle = Idle(node);
  SetNodes(0, 50, idle);
  const Room used = RoomWith(node, {500, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
  const Room less = RoomWith(node, {500, 500, 1000, 1000, 1000, 1000, 1000, 1000});
  EXPECT_EQ(Loss(FractionPod("p", 500), idle, idle), 0);
  EXPECT_EQ(Loss(FractionPod("p", 500), idle, used), 8000);
  EXPECT_EQ(Loss(FractionPod("p", 500), used, less), 0) << "eight do not fit there any more";
  EXPECT_EQ(Loss(WholePod("p", 8), idle, RoomWith(node, std::vector<int64_t>(8, 0))), 0)
      << "that is what the slot is for";
  EXPECT_EQ(Loss(WholePod("p", 4), idle, RoomWith(node, {0, 0, 0, 0, 1000, 1000, 1000, 1000})),
            8000)
      << "work that fits elsewhere pays for all of it";
}

TEST_F(PricesTest, SlotsNeedCpuToo) {
  const NodeFacts node = test::StockNode("n", 8);
  SetMix(MixOf({{WithCpu(WholePod("p", 8), 120'000), 1}, {FractionPod("p", 500), 1}}));
  const Room idle = Idle(node);
  SetNodes(0, 50, idle);
  const std::vector<int64_t> all(8, 1000);
  const PodRequest plain = test::EmptyRequest("cpu");
  EXPECT_EQ(Loss(plain, idle, RoomWith(node, all, 120'000)), 0);
  EXPECT_EQ(Loss(plain, idle, RoomWith(node, all, 119'999)), 8000);
  EXPECT_EQ(Loss(WholePod("p", 8), idle, RoomWith(node, std::vector<int64_t>(8, 0))), 8000)
      << "eight cards without the CPU fit elsewhere";
}

TEST_F(PricesTest, TheLargestMachinesAreProtectedBeforeAnyoneWantsThem) {
  const NodeFacts node = test::StockNode("n", 8);
  Mix mix = MixOf({{FractionPod("p", 500), 1}});
  const Room idle = Idle(node);
  const Room used = RoomWith(node, {500, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
  SetMix(mix);
  SetNodes(0, 1, idle);
  EXPECT_EQ(Loss(FractionPod("p", 500), idle, used), 0);
  mix.one = MixLearner::kAll / 16;  // sixteen arrivals seen: one more would have wanted it all
  SetMix(mix);
  EXPECT_GT(Loss(FractionPod("p", 500), idle, used), 2000);
  SetNodes(0, 100, idle);
  EXPECT_GT(Loss(FractionPod("p", 500), idle, used), 2000);
}

TEST_F(PricesTest, UsingAModelThatOthersAreBoundToCosts) {
  const NodeFacts scarce = test::StockNode("n", 8);
  const NodeFacts common = test::StockNode("n", 8, "NVIDIA-L40S", 46'068);
  const PodRequest bound = OnModels(WholePod("p", 1), {"h100"});
  const PodRequest both = OnModels(WholePod("p", 1), {"h100", "l40s"});
  const PodRequest half = FractionPod("p", 500);
  struct Row {
    int64_t bound;  // of 100 arrivals
    int64_t least;  // of the price of 1000 milli
    int64_t most;
  };
  // Half of the cluster is scarce; demand bound to it is twice its share of all work.
  for (const Row& row : std::vector<Row>{{10, 0, 0}, {25, 300, 700}, {60, 1000, 1000}}) {
    SetMix(MixOf({{bound, row.bound}, {WholePod("p", 1), 100 - row.bound}}));
    SetNodes(0, 10, Idle(scarce));
    SetNodes(10, 10, Idle(common));
    const KindId kind = Idle(scarce).kind();
    Ask(WholePod("p", 1));
    const int64_t whole = prices_.OfKind(kind);
    EXPECT_GE(whole, row.least) << row.bound;
    EXPECT_LE(whole, row.most) << row.bound;
    EXPECT_EQ(prices_.OfKind(Idle(common).kind()), 0);
    Ask(both);
    EXPECT_EQ(prices_.OfKind(kind), whole) << "could go elsewhere";
    Ask(half);
    EXPECT_EQ(prices_.OfKind(kind), whole / 2);
    Ask(bound);
    EXPECT_EQ(prices_.OfKind(kind), 0);
    Ask(test::EmptyRequest("cpu"));
    EXPECT_EQ(prices_.OfKind(kind), 0);
  }
}

TEST_F(PricesTest, WorkThatOnlyLargeMemoryHoldsIsBoundToo) {
  PodRequest large = FractionPod("p", 900);
  large.asks[0].memory = {MemoryNeed::Kind::kMib, 60'000};
  SetMix(MixOf({{large, 9}, {FractionPod("p", 500), 1}}));
  const Room scarce = Idle(test::StockNode("n", 8));
  SetNodes(0, 10, scarce);
  SetNodes(10, 10, Idle(test::StockNode("n", 8, "NVIDIA-L40S", 46'068)));
  Ask(FractionPod("p", 500));
  EXPECT_EQ(prices_.OfKind(scarce.kind()), 500);
  Ask(large);
  EXPECT_EQ(prices_.OfKind(scarce.kind()), 0);
}

TEST_F(PricesTest, NothingIsChargedBeforeAMixIsKnown) {
  const Room idle = Idle(test::StockNode("n", 8));
  SetNodes(0, 10, idle);
  EXPECT_EQ(Loss(FractionPod("p", 500), idle,
                 RoomWith(test::StockNode("n", 8), std::vector<int64_t>(8, 500))),
            0);
  EXPECT_EQ(prices_.OfKind(idle.kind()), 0);
}

TEST_F(PricesTest, ChangesOfManyNodesAreTakenUpBitByBit) {
  SetMix(MixOf({{FractionPod("p", 500), 1}}));
  const PodRequest half = FractionPod("p", 500);
  const NodeFacts node = test::StockNode("n", 2);
  // A thousand rooms nobody has met, of which nothing above 500 a card is usable in halves.
  int64_t usable = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    const int64_t one = 501 + i % 499;
    const int64_t other = 501 + i / 2;
    const Room room = RoomWith(node, {one, other}, 128'000 - 2000 * (i % 2));
    usable += one / 500 * 500 + other / 500 * 500;
    prices_.SetNode(i, &room);
  }
  prices_.Prepare(half);
  const int64_t first = prices_.usable();
  EXPECT_GT(first, usable) << "as good as all is free until it is looked at";
  const uint64_t valued = waste_.valued();
  EXPECT_LE(valued, 64U);
  for (int i = 0; i < 200; ++i) prices_.Follow();
  EXPECT_EQ(prices_.usable(), usable);
}

TEST_F(PricesTest, VersionsChangeWithTheTypesLossesAreCountedIn) {
  SetMix(MixOf({{WholePod("p", 2), 1}}));
  SetNodes(0, 2, Idle(test::StockNode("n", 4)));
  prices_.Prepare(WholePod("p", 1));
  const uint32_t version = prices_.version();
  const Room used = RoomWith(test::StockNode("n", 4), {500, 500, 500, 500});
  prices_.SetNode(1, &used);
  prices_.SetNode(2, &used);
  prices_.SetNode(0, nullptr);
  prices_.Prepare(WholePod("p", 1));
  EXPECT_EQ(prices_.version(), version) << "only nodes changed";
  SetNodes(0, 1, Idle(test::StockNode("n", 8)));
  prices_.Prepare(WholePod("p", 1));
  EXPECT_NE(prices_.version(), version) << "a new kind of node";
}

}  // namespace THIS_FILE
}  // namespace tranche
