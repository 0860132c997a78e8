#include "scheduler/scoring/score.h"

#include <gtest/gtest.h>

#include "scheduler/scoring/mix.h"
#include "test/builders/cluster.h"
#include "test/builders/mix.h"

namespace tranche {
namespace THIS_FILE {

using test::FractionPod;
using test::WholePod;
using test::WithCpu;

GpuPolicy Lenient(Strategy strategy = Strategy::kFragmentation) {
  GpuPolicy policy;
  policy.unenforced_sharing = Permission::kAllow;
  policy.strategy = strategy;
  return policy;
}

void ArriveMany(Scorer& scorer, const std::vector<PodRequest>& requests) {
  for (int i = 0; i < 200; ++i) {
    for (const PodRequest& request : requests) scorer.Arrived(request);
  }
}

struct Answer {
  Reason reason = Reason::kNone;
  Worth worth;
  Picks picks;
};

// A node with the given milli free on its cards, for one question.
class ScoredNode {
 public:
  explicit ScoredNode(const NodeFacts& facts, const std::vector<int64_t>& free = {},
                      int64_t cpu = 0, int64_t cpu_free = 0)
      : inventory_(BuildInventory(facts, 0)),
        load_(test::LoadWithFree(inventory_, free)),
        room_{&inventory_, &load_, MilliCpu::Of(cpu), MilliCpu::Of(cpu_free)} {}

  Answer Ask(Scorer& scorer, const PodRequest& request, const GpuPolicy& policy = Lenient(),
             const std::vector<SharingMode>* sharing = nullptr) const {
    Answer answer;
    answer.reason = scorer.Evaluate(room_, request, policy, answer.picks, answer.worth, sharing);
    return answer;
  }
  const NodeRoom& room() const { return room_; }
  Load& load() { return load_; }
  const Inventory& inventory() const { return inventory_; }

 private:
  Inventory inventory_;
  Load load_;
  NodeRoom room_;
};

TEST(ScoreTest, AShareGoesWhereItLeavesTheLeastUnusable) {
  const ScoredNode node(test::StockNode("n", 2), {1000, 600});
  const PodRequest request = FractionPod("p", 400);
  Scorer wholes;
  ArriveMany(wholes, {WholePod("p", 1)});
  EXPECT_EQ(node.Ask(wholes, request).picks.at(0).card, 1) << "whole cards come: keep one whole";
  Scorer shares;
  ArriveMany(shares, {FractionPod("p", 600)});
  EXPECT_EQ(node.Ask(shares, request).picks.at(0).card, 0)
      << "600 come: each card then holds one of them";
}

TEST(ScoreTest, TheCostIsTheWasteItMakesInSteps) {
  Scorer scorer;
  ArriveMany(scorer, {WholePod("p", 1)});
  struct Row {
    std::vector<int64_t> free;
    int64_t take;
    int32_t base;
  };
  const std::vector<Row> rows = {
      {{1000}, 200, 832},                                 // 800 made useless: 13 steps of 64
      {{600}, 200, -192},                                 // useless anyway: 200 less of it, 3 steps
      {{600}, 31, 0},                                     // less than half a step
      {{600}, 33, -64},        {{1000, 600}, 200, -192},  // the used card is taken
      {{1000, 1000}, 960, 64},
  };
  for (const Row& row : rows) {
    const ScoredNode node(test::StockNode("n", static_cast<int>(row.free.size())), row.free);
    const Answer answer = node.Ask(scorer, FractionPod("p", row.take));
    EXPECT_EQ(answer.reason, Reason::kNone);
    EXPECT_EQ(answer.worth.base, row.base) << testing::PrintToString(row.free) << row.take;
    EXPECT_TRUE(answer.worth.priced);
  }
}

TEST(ScoreTest, EquallyGoodCardsAreFilledTightestFirst) {
  Scorer scorer;
  ArriveMany(scorer, {FractionPod("p", 100)});
  const ScoredNode node(test::StockNode("n", 4), {900, 400, 1000, 600});
  EXPECT_EQ(node.Ask(scorer, FractionPod("p", 300)).picks.at(0).card, 1);
}

TEST(ScoreTest, APodWithoutGpusIsValuedByTheCpuItTakes) {
  Scorer scorer;
  ArriveMany(scorer, {WithCpu(WholePod("p", 1), 16'000)});
  const PodRequest plain = WithCpu(test::EmptyRequest("cpu"), 16'000);
  const auto base_on = [&](const std::vector<int64_t>& free, int64_t cpu_free) {
    const Answer answer =
        ScoredNode(test::StockNode("n", 4), free, 64'000, cpu_free).Ask(scorer, plain);
    EXPECT_EQ(answer.reason, Reason::kNone);
    EXPECT_TRUE(answer.picks.empty());
    return answer.worth.base;
  };
  EXPECT_EQ(base_on({1000, 1000, 1000, 1000}, 64'000), 1024) << "one card has no CPU left";
  EXPECT_EQ(base_on({1000, 0, 0, 0}, 64'000), 0) << "plenty for what is free";
  EXPECT_EQ(base_on({0, 0, 0, 0}, 64'000), 0);
}

TEST(ScoreTest, BestFitAndSpreadLookAtTheRoomLeftAndHaveNoPrices) {
  Scorer scorer;
  ArriveMany(scorer, {WholePod("p", 8)});
  const ScoredNode full(test::StockNode("n", 4), {500, 0, 0, 0});
  const ScoredNode idle(test::StockNode("n", 8), std::vector<int64_t>(8, 1000));
  scorer.SetNode(0, full.room());
  scorer.SetNode(1, idle.room());
  const PodRequest half = FractionPod("p", 500);
  scorer.Price(half);
  const auto cost = [&](const ScoredNode& node, Strategy strategy) {
    return scorer.CostOf(node.Ask(scorer, half, Lenient(strategy)).worth);
  };
  EXPECT_EQ(cost(full, Strategy::kBestFit), 0);
  EXPECT_EQ(cost(idle, Strategy::kBestFit), 7500);
  EXPECT_EQ(cost(full, Strategy::kSpread), 0);
  EXPECT_EQ(cost(idle, Strategy::kSpread), -7500);
  EXPECT_GT(cost(idle, Strategy::kFragmentation), 7500) << "eight whole ones are wanted together";
  PodRequest spread = half;
  spread.strategy = Strategy::kSpread;
  EXPECT_EQ(idle.Ask(scorer, spread, Lenient(Strategy::kBestFit)).worth.base, -7500)
      << "the pod's own wish";
}

TEST(ScoreTest, PricesAreAddedAtSelection) {
  Scorer scorer;
  const PodRequest half = FractionPod("p", 500);
  ArriveMany(scorer, {WholePod("p", 8), half});
  const ScoredNode idle(test::StockNode("n", 8), std::vector<int64_t>(8, 1000));
  const ScoredNode used(test::StockNode("n", 8), {500, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
  for (uint32_t node = 0; node < 20; ++node) scorer.SetNode(node, idle.room());
  scorer.Price(half);
  const Worth on_idle = idle.Ask(scorer, half).worth;
  const Worth on_used = used.Ask(scorer, half).worth;
  EXPECT_NE(on_idle.loss, 0);
  EXPECT_EQ(on_used.loss, 0);
  EXPECT_GT(scorer.CostOf(on_idle) - on_idle.base, 7000);
  EXPECT_EQ(scorer.CostOf(on_used), on_used.base);
  scorer.Price(WholePod("p", 8));
  EXPECT_EQ(scorer.CostOf(idle.Ask(scorer, WholePod("p", 8)).worth), 0)
      << "the slot is there for it";
}

TEST(ScoreTest, NodesThatCloseCountNoMore) {
  Scorer scorer;
  const PodRequest half = FractionPod("p", 500);
  std::vector<PodRequest> mix(60, half);
  mix.push_back(WholePod("p", 8));
  ArriveMany(scorer, mix);
  ScoredNode idle(test::StockNode("n", 8), std::vector<int64_t>(8, 1000));
  const ScoredNode cards(test::StockNode("n", 8), {900, 900, 900, 900, 900, 900, 900, 900});
  for (uint32_t node = 0; node < 3; ++node) scorer.SetNode(node, idle.room());
  for (uint32_t node = 3; node < 9; ++node) scorer.SetNode(node, cards.room());
  const auto price = [&] {
    for (int i = 0; i < 8; ++i) scorer.Refresh();
    scorer.Price(half);
    const Worth worth = idle.Ask(scorer, half).worth;
    return scorer.CostOf(worth) - worth.base;
  };
  const int64_t before = price();
  scorer.SetNode(0, NodeRoom{});
  idle.load().devices_unknown = true;
  scorer.SetNode(1, idle.room());
  idle.load().devices_unknown = false;
  EXPECT_GT(price(), before) << "one machine of eight is left";
}

TEST(ScoreTest, WasteIsWhatNobodyIsExpectedToUse) {
  Scorer scorer;
  const ScoredNode node(test::StockNode("n", 2), {1000, 400});
  EXPECT_EQ(scorer.Waste(node.room()), 400) << "the commonest requests stand for the mix";
  ArriveMany(scorer, {FractionPod("p", 400)});
  EXPECT_EQ(scorer.Waste(node.room()), 200) << "of a card two halves of 400 leave 200";
}

TEST(ScoreTest, ACardWithoutAnyContextLeftHasNothingFree) {
  ScoredNode node(test::SharedNode("n", 1, 100, true, SharingMethod::kMps));
  Scorer scorer;
  ArriveMany(scorer, {FractionPod("p", 900)});
  node.load().cards[0].milli = MilliGpu::Of(470);
  node.load().cards[0].slots = 47;
  EXPECT_EQ(scorer.Waste(node.room()), 530) << "too little for the mix";
  node.load().cards[0].slots = 48;
  EXPECT_EQ(scorer.Waste(node.room()), 0) << "nothing";
}

TEST(ScoreTest, VersionsTellMigRequestsFromOthers) {
  Scorer scorer;
  const PodRequest mig = test::MigPod("p", "1g.10gb", 1);
  const uint32_t before = scorer.version(WholePod("p", 1));
  ArriveMany(scorer, {WholePod("p", 1)});
  EXPECT_NE(scorer.version(WholePod("p", 1)), before) << "a mix was learned";
  NodeFacts planned = test::MigNode("n", 2, 0, {{"1g.10gb", 14}, {"3g.40gb", 4}});
  planned.mig_planned = true;
  const ScoredNode node(planned);
  ASSERT_TRUE(node.inventory().planned());
  ArriveMany(scorer, {mig, test::MigPod("p", "3g.40gb", 1)});
  scorer.SetNode(0, node.room());
  scorer.Price(mig);
  const uint32_t others = scorer.version(WholePod("p", 1));
  const uint32_t unlearned = scorer.version(mig);
  EXPECT_TRUE(scorer.HasWork());
  while (scorer.Work()) {
  }
  EXPECT_FALSE(scorer.HasWork());
  EXPECT_EQ(scorer.layout_values().size(), 1U);
  EXPECT_EQ(scorer.version(WholePod("p", 1)), others);
  EXPECT_NE(scorer.version(mig), unlearned);
}

TEST(ScoreTest, WhatAnotherLearnedCanBeTakenOver) {
  NodeFacts planned = test::MigNode("m", 2, 0, {{"1g.10gb", 14}, {"3g.40gb", 4}});
  planned.mig_planned = true;
  const ScoredNode cut(planned);
  const ScoredNode idle(test::StockNode("n", 8));
  const ScoredNode broken(test::StockNode("n", 8), {1000, 600, 500, 0, 0, 0, 0, 0});
  const auto show = [&](Scorer& scorer) {
    for (uint32_t node = 0; node < 4; ++node) scorer.SetNode(node, idle.room());
    scorer.SetNode(4, broken.room());
    scorer.SetNode(5, cut.room());
  };
  const PodRequest small = FractionPod("p", 400);
  const PodRequest large = WholePod("p", 8);
  const PodRequest instance = test::MigPod("p", "3g.40gb", 1);
  Scorer learned;
  show(learned);
  ArriveMany(learned, {small, small, large, instance});
  while (learned.Work()) {
  }
  for (int i = 0; i < 8; ++i) learned.Refresh();

  Scorer other;
  show(other);
  const auto costs = [&](Scorer& scorer) {
    std::vector<int64_t> all;
    for (const PodRequest& request : {small, large, instance}) {
      scorer.Price(request);
      for (const ScoredNode* node : {&idle, &broken, &cut}) {
        const Answer answer = node->Ask(scorer, request);
        all.push_back(answer.reason == Reason::kNone ? scorer.CostOf(answer.worth) : -1);
      }
    }
    return all;
  };
  EXPECT_NE(costs(other), costs(learned)) << "it has learned nothing";
  other.Take(learned.Memory());
  EXPECT_EQ(costs(other), costs(learned));
  EXPECT_EQ(other.layout_values(), learned.layout_values());
  EXPECT_FALSE(other.HasWork()) << "tables are taken over, not made again";
  ArriveMany(other, {FractionPod("p", 700)});
  for (int i = 0; i < 8; ++i) other.Refresh();
  EXPECT_NE(costs(other), costs(learned)) << "it goes on learning by itself";
}

TEST(ScoreTest, PlannedLayoutsCostWhatTheirValueFallsBy) {
  Scorer scorer;
  const PodRequest small = test::MigPod("p", "1g.10gb", 1);
  NodeFacts planned = test::MigNode("n", 1, 0, {{"1g.10gb", 7}, {"7g.80gb", 1}});
  planned.mig_planned = true;
  const ScoredNode empty(planned);
  ScoredNode used(planned);
  scorer.SetNode(0, empty.room());
  const Answer first = empty.Ask(scorer, small);
  ASSERT_EQ(first.reason, Reason::kNone);
  AddUse(used.load(), UseOf(small, first.picks));
  EXPECT_GT(first.worth.base, used.Ask(scorer, small).worth.base)
      << "nothing is learned yet: fuller cards first";
  ArriveMany(scorer, {small, small, small, test::MigPod("p", "7g.80gb", 1)});
  scorer.SetNode(0, empty.room());
  while (scorer.Work()) {
  }
  const Worth on_empty = empty.Ask(scorer, small).worth;
  const Worth on_used = used.Ask(scorer, small).worth;
  EXPECT_GT(on_empty.base, on_used.base) << "whole cards are wanted";
  EXPECT_FALSE(on_empty.priced);
  scorer.Price(small);
  EXPECT_EQ(scorer.CostOf(on_empty), on_empty.base);
  EXPECT_EQ(scorer.Waste(empty.room()), 0);
}

// The rank of the best way to do the request on an empty node.
uint32_t RankOn(const NodeFacts& facts, const PodRequest& request,
                const std::vector<SharingMode>* sharing) {
  Scorer scorer;
  const Answer answer = ScoredNode(facts).Ask(scorer, request, Lenient(), sharing);
  EXPECT_EQ(answer.reason, Reason::kNone);
  return answer.worth.rank;
}

TEST(SharingRankTest, TheClassesOrderRanksAboveTheKindOfDevice) {
  using enum SharingMode;
  // By its own merits the MPS node is better: it enforces the share.
  const NodeFacts mps = test::SharedNode("mps", 1, 4, true, SharingMethod::kMps);
  const NodeFacts sliced = test::SharedNode("sliced", 8, 4, true);
  const PodRequest half = FractionPod("p", 500);
  const std::vector<SharingMode> mps_first = {kMps, kTimeSliced};
  const std::vector<SharingMode> mps_last = {kExclusive, kMig, kTimeSliced, kMps};
  const std::vector<SharingMode> none;
  EXPECT_LT(RankOn(mps, half, nullptr), RankOn(sliced, half, nullptr));
  EXPECT_LT(RankOn(mps, half, &mps_first), RankOn(sliced, half, &mps_first));
  EXPECT_GT(RankOn(mps, half, &mps_last), RankOn(sliced, half, &mps_last));
  for (const NodeFacts& node : {mps, sliced}) {
    EXPECT_EQ(RankOn(node, half, &none), RankOn(node, half, nullptr)) << "no list, no wish";
  }
  EXPECT_LT(RankOn(test::StockNode("n", 1), WholePod("p", 1), nullptr),
            RankOn(test::SharedNode("n", 1, 4, false), WholePod("p", 1), nullptr))
      << "a plain GPU is happiest on a whole card";
}

TEST(SharingRankTest, TheWorstOfSeveralDevicesCounts) {
  using enum SharingMode;
  NodeFacts one_mps = test::HamiNode("n", 2);
  one_mps.agent->devices[1].mode = "mps";
  const NodeFacts no_mps = test::HamiNode("n", 2);
  const std::vector<SharingMode> mps_first = {kMps, kTimeSliced};
  EXPECT_EQ(RankOn(one_mps, test::HamiPod("p", 2, 3000), &mps_first) >> 4, 1U);
  EXPECT_EQ(RankOn(one_mps, test::HamiPod("p", 1, 3000), &mps_first) >> 4, 0U);
  EXPECT_EQ(RankOn(no_mps, test::HamiPod("p", 1, 3000), &mps_first) >> 4, 1U);
  PodRequest card_and_instance = WholePod("p", 1);
  card_and_instance.asks.push_back(test::MigPod("p", "1g.10gb", 1).asks[0]);
  const std::vector<SharingMode> instances_first = {kMps, kMig, kExclusive};
  EXPECT_EQ(
      RankOn(test::MigNode("n", 2, 1, {{"1g.10gb", 7}}), card_and_instance, &instances_first) >> 4,
      2U);
}

TEST(SharingRankTest, AmongCardsOfTheWantedWayTheCheapestIsTaken) {
  using enum SharingMode;
  // 590 come: the used MPS card holds one of them, and the idle one too after this pod.
  NodeFacts facts = test::HamiNode("n", 3);
  facts.agent->devices[1].mode = "mps";
  facts.agent->devices[2].mode = "mps";
  ScoredNode node(facts);
  node.load().cards[1] = {MilliGpu::Of(400), Mebibytes::Of(15109 * 4 / 10), 1, 0};
  const std::vector<SharingMode> mps_first = {kMps, kTimeSliced};
  Scorer scorer;
  ArriveMany(scorer, {FractionPod("p", 590)});
  const Answer answer = node.Ask(scorer, test::HamiPod("p", 1, 6000, 40), GpuPolicy{}, &mps_first);
  EXPECT_EQ(answer.reason, Reason::kNone);
  EXPECT_EQ(answer.picks.at(0).card, 2) << "not card 0, which is as idle but not shared by MPS";
}

}  // namespace THIS_FILE
}  // namespace tranche
