// Scoring over random clusters: what is kept as nodes change is what there is, rooms are worth the
// same whichever card is which, and two scorers that saw the same say the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <optional>
#include <random>

#include "scheduler/scoring/prices.h"
#include "scheduler/scoring/score.h"
#include "test/builders/cluster.h"
#include "test/builders/mix.h"

namespace tranche {
namespace THIS_FILE {

uint64_t Seed() {
  const char* text = std::getenv("TRANCHE_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device()();
  std::cout << "TRANCHE_SEED=" << seed << '\n';
  return seed;
}

int Steps(int usual) {
  const char* text = std::getenv("TRANCHE_STEPS");
  return text != nullptr ? std::atoi(text) : usual;
}

class RandomCluster {
 public:
  explicit RandomCluster(uint64_t seed) : random_(seed) {}

  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  PodRequest Request() {
    PodRequest request = Below(2) == 0 ? test::WholePod("p", int64_t{1} << Below(4))
                                       : test::FractionPod("p", 50 * (1 + Below(19)), 1 + Below(2));
    request.cpu = MilliCpu::Of(2000 * Below(12));
    if (Below(4) == 0) request.models_any = {Below(2) == 0 ? "h100" : "l40s"};
    return request;
  }
  const Inventory& Hardware() { return hardware_[static_cast<std::size_t>(Below(4))]; }
  std::vector<int64_t> Free(const Inventory& inventory) {
    std::vector<int64_t> free(inventory.cards.size());
    for (int64_t& milli : free) milli = Below(3) == 0 ? 1000 : 50 * Below(21);
    return free;
  }
  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_;
  const std::array<Inventory, 4> hardware_ = {
      BuildInventory(test::StockNode("n", 8), 0),
      BuildInventory(test::StockNode("n", 4), 0),
      BuildInventory(test::StockNode("n", 8, "NVIDIA-L40S", 46'068), 0),
      BuildInventory(test::StockNode("n", 2, "Tesla-T4", 15'109), 0),
  };
};

constexpr MilliCpu kCpu = MilliCpu::Of(96'000);

TEST(ScoringProperty, WhatIsKeptAsNodesChangeIsWhatThereIs) {
  RandomCluster cluster(Seed());
  NodeKinds kinds;
  WasteTable waste(kinds);
  Prices kept(kinds, waste);
  MixLearner learner;
  waste.SetMix(learner.mix());
  kept.SetMix(learner.mix(), MixChange::kAll);
  std::vector<std::optional<Room>> nodes(40);
  for (int step = 0; step < Steps(3000); ++step) {
    if (const MixChange change = learner.Arrived(cluster.Request()); change != MixChange::kNone) {
      if (change == MixChange::kAll) waste.SetMix(learner.mix());
      kept.SetMix(learner.mix(), change);
    }
    const auto node = static_cast<uint32_t>(cluster.Below(static_cast<int64_t>(nodes.size())));
    const Inventory& inventory = cluster.Hardware();
    if (cluster.Below(5) == 0) {
      nodes[node].reset();
    } else {
      nodes[node] = RoomOf(kinds, kinds.Of(inventory, kCpu), inventory,
                           test::LoadWithFree(inventory, cluster.Free(inventory)),
                           MilliCpu::Of(1500 * cluster.Below(65)));
    }
    kept.SetNode(node, nodes[node] ? &*nodes[node] : nullptr);
    if (cluster.Below(10) != 0) continue;
    // Everything has been looked at after a while; then nothing tells it from sums made anew.
    const PodRequest request = cluster.Request();
    for (int i = 0; i < 17; ++i) kept.Follow();
    kept.Prepare(request);
    Prices anew(kinds, waste);
    anew.SetMix(learner.mix(), MixChange::kAll);
    for (uint32_t at = 0; at < nodes.size(); ++at) {
      if (nodes[at]) anew.SetNode(at, &*nodes[at]);
    }
    for (int i = 0; i < 17; ++i) anew.Follow();
    anew.Prepare(request);
    ASSERT_EQ(kept.usable(), anew.usable()) << step;
    for (KindId kind{1}; kind < kinds.size(); ++kind) {
      ASSERT_EQ(kept.OfKind(kind), anew.OfKind(kind)) << step;
    }
    for (int i = 0; i < 10; ++i) {
      const Inventory& some = cluster.Hardware();
      std::vector<int64_t> free = cluster.Free(some);
      const auto room = [&] {
        return RoomOf(kinds, kinds.Of(some, kCpu), some, test::LoadWithFree(some, free), kCpu);
      };
      const Room before = room();
      for (int64_t& milli : free) milli = cluster.Below(2) == 0 ? milli : milli / 2;
      const Room after = room();
      ASSERT_EQ(kept.OfLoss(kept.LossOf(before, after)), anew.OfLoss(anew.LossOf(before, after)))
          << step;
    }
  }
}

TEST(ScoringProperty, EqualRoomsAreWorthTheSameAndTwoScorersAgree) {
  RandomCluster cluster(Seed());
  Scorer one;
  Scorer two;
  GpuPolicy policy;
  policy.unenforced_sharing = Permission::kAllow;
  for (int step = 0; step < Steps(4000); ++step) {
    const PodRequest request = cluster.Request();
    const Inventory& inventory = cluster.Hardware();
    std::vector<int64_t> free = cluster.Free(inventory);
    const Load load = test::LoadWithFree(inventory, free);
    std::ranges::shuffle(free, cluster.random());
    const Load shuffled = test::LoadWithFree(inventory, free);
    const MilliCpu cpu = MilliCpu::Of(1500 * cluster.Below(65));
    const NodeRoom room{&inventory, &load, kCpu, cpu};
    const NodeRoom same{&inventory, &shuffled, kCpu, cpu};
    const auto node = static_cast<uint32_t>(cluster.Below(60));
    for (Scorer* scorer : {&one, &two}) {
      scorer->Arrived(request);
      scorer->SetNode(node, room);
      scorer->Price(request);
    }
    // The second is asked for more than the first: answers do not depend on what was asked before.
    const PodRequest other = cluster.Request();
    Picks ignored;
    Worth worth_ignored;
    two.Evaluate(same, other, policy, ignored, worth_ignored);

    Picks picks_one;
    Picks picks_two;
    Worth worth_one;
    Worth worth_two;
    const Reason fits = one.Evaluate(room, request, policy, picks_one, worth_one);
    ASSERT_EQ(fits, two.Evaluate(same, request, policy, picks_two, worth_two)) << step;
    if (fits != Reason::kNone) continue;
    ASSERT_EQ(worth_one.rank, worth_two.rank) << step;
    ASSERT_EQ(worth_one.base, worth_two.base) << step;
    ASSERT_EQ(one.CostOf(worth_one), two.CostOf(worth_two)) << step;
    Worth again;
    ASSERT_EQ(one.Evaluate(same, request, policy, picks_two, again), Reason::kNone);
    ASSERT_EQ(again, worth_one) << step << ": whichever card is which";
    ASSERT_EQ(picks_one.size(), picks_two.size());
  }
}

TEST(ScoringProperty, WasteNeverExceedsWhatIsFreeAndFullRoomsWasteNothing) {
  RandomCluster cluster(Seed());
  Scorer scorer;
  for (int step = 0; step < Steps(4000); ++step) {
    scorer.Arrived(cluster.Request());
    const Inventory& inventory = cluster.Hardware();
    const std::vector<int64_t> free = cluster.Free(inventory);
    const Load load = test::LoadWithFree(inventory, free);
    const int64_t waste = scorer.Waste({&inventory, &load, kCpu, kCpu});
    ASSERT_GE(waste, 0);
    ASSERT_LE(waste, std::accumulate(free.begin(), free.end(), int64_t{0}));
    const Load full = test::LoadWithFree(inventory, std::vector<int64_t>(free.size(), 0));
    ASSERT_EQ(scorer.Waste({&inventory, &full, kCpu, kCpu}), 0);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
