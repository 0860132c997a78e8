#include "scheduler/scoring/score.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "scheduler/scoring/mix.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace {

MixClass Type(int64_t milli, int64_t cards, int64_t count) {
  MixClass type;
  type.milli = milli;
  type.memory = {MemoryNeed::Kind::kMilliOfCard, milli};
  if (milli == 1000) type.memory = {MemoryNeed::Kind::kWholeCard, 0};
  type.cards = cards;
  type.count = count;
  return type;
}

Mix MixOf(std::vector<MixClass> classes) {
  Mix mix;
  for (const MixClass& type : classes) mix.total += type.count;
  mix.classes = std::move(classes);
  mix.version = 1;
  return mix;
}

// A stock node with the given free milli on its cards.
Load LoadOf(const Inventory& inventory, const std::vector<int64_t>& free) {
  Load load;
  load.Reset(inventory);
  for (std::size_t i = 0; i < free.size(); ++i) {
    load.cards[i].milli = MilliGpu::Of(1000 - free[i]);
    load.cards[i].memory = Mebibytes::Of(test::kH100Mib * (1000 - free[i]) / 1000);
    load.cards[i].slots = free[i] < 1000;
  }
  return load;
}

TEST(ScoreTest, FragmentationIsWhatARequestOfTheMixCannotUse) {
  const Inventory inventory = BuildInventory(test::StockNode("n", 4), 0);
  const Mix mix = MixOf({Type(1000, 2, 1), Type(500, 1, 3)});
  struct Row {
    std::vector<int64_t> free;
    int64_t fragmentation;  // times mix.total
  };
  const std::vector<Row> rows = {
      // Two whole cards: the pair leaves nothing unusable, nor do the halves.
      {{1000, 1000, 0, 0}, 0},
      // One whole card: useless for the pair (1 x 1000), fine for halves.
      {{1000, 0, 0, 0}, 1000},
      // 300 free on a card is too little for anyone; the pair cannot use the rest either.
      {{1000, 300, 0, 0}, 1 * 1300 + 3 * 300},
      {{1000, 1000, 300, 0}, 1 * 300 + 3 * 300},
      {{0, 0, 0, 0}, 0},
  };
  Scorer scorer;
  for (const Row& row : rows) {
    EXPECT_EQ(scorer.Fragmentation(inventory, LoadOf(inventory, row.free), mix), row.fragmentation)
        << testing::PrintToString(row.free);
  }
}

TEST(ScoreTest, AShareGoesWhereItLeavesTheLeastUnusable) {
  const Inventory inventory = BuildInventory(test::StockNode("n", 2), 0);
  const Load load = LoadOf(inventory, {1000, 600});
  GpuPolicy policy;
  policy.unenforced_sharing = Permission::kAllow;
  Scorer scorer;
  Picks picks;
  Cost cost = 0;
  const auto card_for = [&](const Mix& mix) {
    EXPECT_EQ(
        scorer.Evaluate(inventory, load, test::FractionPod("p", 500), policy, mix, picks, cost),
        Reason::kNone);
    return picks.at(0).card;
  };
  EXPECT_EQ(card_for(MixOf({Type(1000, 1, 1)})), 1) << "whole cards come: keep one whole";
  EXPECT_EQ(card_for(MixOf({Type(500, 1, 1)})), 0)
      << "halves come: on the used card 100 would be lost, on the whole one nothing";
}

TEST(ScoreTest, LevelsAreFgdsSigmoidRoundedDown) {
  // Through the public face: one card, a mix whose class gives a known drop.
  const Inventory inventory = BuildInventory(test::StockNode("n", 8), 0);
  GpuPolicy policy;
  policy.unenforced_sharing = Permission::kAllow;
  Scorer scorer;
  for (int64_t take = 50; take <= 950; take += 50) {
    const Mix mix = MixOf({Type(1000, 8, 1)});
    // All eight are free: taking a part of one makes 8000 - take unusable at a stroke.
    const Load load = LoadOf(inventory, {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
    Picks picks;
    Cost cost = 0;
    scorer.Evaluate(inventory, load, test::FractionPod("p", take), policy, mix, picks, cost);
    const double drop = -static_cast<double>(8000 - take);
    const auto level = static_cast<Cost>(std::floor(100.0 / (1.0 + std::exp(-drop / 1000.0))));
    const Cost found = 100 - ((cost >> 20) & 0xff);
    EXPECT_EQ(found, level) << take;
  }
  for (int64_t free = 50; free <= 950; free += 50) {
    // Filling a card that nobody in the mix could use removes its fragmentation.
    const Mix mix = MixOf({Type(1000, 1, 1)});
    const Load load = LoadOf(inventory, {free, 0, 0, 0, 0, 0, 0, 0});
    Picks picks;
    Cost cost = 0;
    scorer.Evaluate(inventory, load, test::FractionPod("p", free), policy, mix, picks, cost);
    const auto level = static_cast<Cost>(
        std::floor(100.0 / (1.0 + std::exp(-static_cast<double>(free) / 1000.0))));
    EXPECT_NEAR(100 - ((cost >> 20) & 0xff), level, 1) << free << ": memory rounds by a MiB";
  }
}

using SharingModes = std::vector<SharingMode>;

// The price of the pod on an empty node.
Cost PriceOn(const NodeFacts& facts, const PodRequest& request, const SharingModes* sharing) {
  const Inventory inventory = BuildInventory(facts, 0);
  Load load;
  load.Reset(inventory);
  GpuPolicy policy;
  policy.unenforced_sharing = Permission::kAllow;
  Scorer scorer;
  Picks picks;
  Cost cost = 0;
  EXPECT_EQ(scorer.Evaluate(inventory, load, request, policy, MixOf({Type(500, 1, 1)}), picks, cost,
                            sharing),
            Reason::kNone);
  return cost;
}

TEST(SharingPriceTest, TheClassesOrderRanksAboveAllElse) {
  using enum SharingMode;
  // By its own merits the idle MPS node is better: it enforces the share.
  const NodeFacts mps = test::SharedNode("mps", 1, 4, true, SharingMethod::kMps);
  const NodeFacts sliced = test::SharedNode("sliced", 8, 4, true);
  const PodRequest half = test::FractionPod("p", 500);
  const SharingModes mps_first = {kMps, kTimeSliced};
  const SharingModes mps_last = {kExclusive, kMig, kTimeSliced, kMps};
  const SharingModes none;
  EXPECT_LT(PriceOn(mps, half, nullptr), PriceOn(sliced, half, nullptr));
  EXPECT_LT(PriceOn(mps, half, &mps_first), PriceOn(sliced, half, &mps_first));
  EXPECT_GT(PriceOn(mps, half, &mps_last), PriceOn(sliced, half, &mps_last));
  for (const NodeFacts& node : {mps, sliced}) {
    EXPECT_EQ(PriceOn(node, half, &none), PriceOn(node, half, nullptr)) << "no list, no wish";
  }
}

TEST(SharingPriceTest, TheWorstOfSeveralDevicesCounts) {
  using enum SharingMode;
  NodeFacts one_mps = test::HamiNode("n", 2);
  one_mps.hami->devices[1].mode = "mps";
  const NodeFacts no_mps = test::HamiNode("n", 2);
  const SharingModes mps_first = {kMps, kTimeSliced};
  EXPECT_EQ(PriceOn(one_mps, test::HamiPod("p", 2, 3000), &mps_first) >> 29, 1U);
  EXPECT_EQ(PriceOn(one_mps, test::HamiPod("p", 1, 3000), &mps_first) >> 29, 0U);
  EXPECT_EQ(PriceOn(no_mps, test::HamiPod("p", 1, 3000), &mps_first) >> 29, 1U);
  PodRequest card_and_instance = test::WholePod("p", 1);
  card_and_instance.asks.push_back(test::MigPod("p", "1g.10gb", 1).asks[0]);
  const SharingModes instances_first = {kMps, kMig, kExclusive};
  EXPECT_EQ(
      PriceOn(test::MigNode("n", 2, 1, {{"1g.10gb", 7}}), card_and_instance, &instances_first) >>
          29,
      2U);
}

TEST(SharingPriceTest, AmongCardsOfTheWantedWayTheCheapestIsTaken) {
  using enum SharingMode;
  // Halves come: on the used MPS card a tenth would be lost, on the idle one nothing.
  NodeFacts facts = test::HamiNode("n", 3);
  facts.hami->devices[1].mode = "mps";
  facts.hami->devices[2].mode = "mps";
  const Inventory inventory = BuildInventory(facts, 0);
  Load load;
  load.Reset(inventory);
  load.cards[1] = {MilliGpu::Of(400), Mebibytes::Of(15109 * 4 / 10), 1, 0};
  const SharingModes mps_first = {kMps, kTimeSliced};
  Scorer scorer;
  Picks picks;
  Cost cost = 0;
  EXPECT_EQ(scorer.Evaluate(inventory, load, test::HamiPod("p", 1, 7500, 50), GpuPolicy{},
                            MixOf({Type(500, 1, 1)}), picks, cost, &mps_first),
            Reason::kNone);
  EXPECT_EQ(picks.at(0).card, 2) << "not card 0, which is as idle but not shared by MPS";
}

TEST(ScoreTest, ACardWithoutAnyContextLeftHasNothingFree) {
  const NodeFacts facts = test::SharedNode("n", 1, 100, true, SharingMethod::kMps);
  const Inventory inventory = BuildInventory(facts, 0);
  Load load;
  load.Reset(inventory);
  const Mix mix = MixOf({Type(900, 1, 1)});
  Scorer scorer;
  load.cards[0].milli = MilliGpu::Of(470);
  load.cards[0].slots = 47;
  EXPECT_EQ(scorer.Fragmentation(inventory, load, mix), 530) << "too little for the mix";
  load.cards[0].slots = 48;
  EXPECT_EQ(scorer.Fragmentation(inventory, load, mix), 0) << "nothing";
}

TEST(MixTest, LearnsSharesFromArrivalsAndForgets) {
  MixLearner learner;
  const uint32_t first = learner.mix().version;
  EXPECT_EQ(learner.mix().classes.size(), 5U) << "the prior";
  for (int i = 0; i < 500; ++i) learner.Arrived(test::FractionPod("p", 250));
  EXPECT_GT(learner.mix().version, first);
  EXPECT_EQ(learner.mix().classes[0].milli, 250);
  EXPECT_GT(learner.mix().classes[0].count * 100, learner.mix().total * 90);
  for (int i = 0; i < 20'000; ++i) learner.Arrived(test::WholePod("p", 4));
  EXPECT_EQ(learner.mix().classes[0].cards, 4);
}

TEST(MixTest, ASteadyMixMakesNoNewVersions) {
  MixLearner learner;
  const auto arrive = [&learner](int i) {
    learner.Arrived(i % 2 == 0 ? test::FractionPod("p", 500) : test::WholePod("p", 1));
  };
  for (int i = 0; i < 10'000; ++i) arrive(i);
  const uint32_t version = learner.mix().version;
  for (int i = 0; i < 50'000; ++i) arrive(i);
  EXPECT_EQ(learner.mix().version, version);
}

}  // namespace
}  // namespace tranche
