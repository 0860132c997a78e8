// Random fleets: what is planned to empty nodes is carried out move by move with the placement
// rules alone, and afterwards nobody is there.
#include "scheduler/advice/emptying.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <set>

#include "test/builders/cluster.h"
#include "test/builders/defrag_case.h"

namespace tranche {
namespace THIS_FILE {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }

 private:
  std::mt19937_64 random_;
};

AdviceCase SomeFleet(Dice& dice) {
  test::DefragCase fleet;
  const int nodes = 2 + static_cast<int>(dice.Below(6));
  for (int n = 0; n < nodes; ++n) {
    NodeFacts facts = test::StockNode("n" + std::to_string(n), 1 + static_cast<int>(dice.Below(8)));
    if (dice.Below(4) == 0) facts.product = "NVIDIA-A100-SXM4-80GB";
    AdviceNode& node = fleet.Node(facts);
    node.open = dice.Below(8) != 0;
    if (dice.Below(3) == 0) node.cpu_capacity = MilliCpu::Of(16'000);
  }
  AdviceCase built = fleet.Build();
  const int64_t pods = dice.Below(25);
  Placer placer;
  for (int64_t i = 0; i < pods; ++i) {
    const auto at = static_cast<std::size_t>(dice.Below(nodes));
    const std::string name = "p" + std::to_string(i);
    PodRequest request = dice.Below(2) == 0
                             ? test::WholePod(name, 1 + static_cast<int>(dice.Below(3)))
                             : test::FractionPod(name, 100 + 100 * static_cast<int>(dice.Below(7)));
    request.cpu = MilliCpu::Of(1000 * dice.Below(5));
    PlaceRules rules;
    rules.policy = &built.policy;
    AdviceNode& node = built.nodes[at];
    AdvicePod pod;
    if (placer.Place(node.inventory, node.load, request, rules, pod.picks) != Reason::kNone) {
      continue;
    }
    pod.name = request.name;
    pod.uid = request.uid;
    pod.node = at;
    pod.use = UseOf(request, pod.picks);
    pod.request = std::make_shared<const PodRequest>(request);
    pod.lost_gpu_ms = dice.Below(4'000'000);
    pod.moves_to_consolidate = dice.Below(6) != 0;
    pod.moves_for_layout = pod.moves_to_consolidate && dice.Below(6) != 0;
    test::DefragCase::AddTo(node.load, node.inventory, pod);
    node.load.cpu += request.cpu;
    built.pods.push_back(std::move(pod));
  }
  for (AdviceNode& node : built.nodes) node.cpu_free = node.cpu_capacity - node.load.cpu;
  std::ranges::sort(built.pods, {},
                    [](const AdvicePod& pod) { return std::tuple(pod.node, pod.uid); });
  return built;
}

// The case after the moves, or why they cannot be made.
std::string CarryOut(AdviceCase& fleet, const EmptiedNode& entry) {
  Placer placer;
  for (const DefragMove& move : entry.moves) {
    const auto pod = std::ranges::find(fleet.pods, move.uid, &AdvicePod::uid);
    const auto to = std::ranges::find(fleet.nodes, move.to, &AdviceNode::name);
    if (pod == fleet.pods.end() || to == fleet.nodes.end()) return "moves what is not there";
    if (fleet.nodes[pod->node].name != entry.node) return "moves a pod of another node";
    if (to->name == entry.node) return "moves it to where it is";
    if (!to->open) return "moves it to a closed node";
    const bool cpu_said = to->cpu_capacity > MilliCpu::Zero();
    if (cpu_said && to->cpu_free < pod->request->cpu) return "moves it where no CPU is left";
    const std::string& model = fleet.nodes[pod->node].inventory.cards.front().product;
    if (to->inventory.cards.front().product != model) return "moves it to another model";
    PlaceRules rules;
    rules.policy = &fleet.policy;
    Picks picks;
    if (placer.Place(to->inventory, to->load, *pod->request, rules, picks) != Reason::kNone) {
      return "moves it where it does not fit";
    }
    pod->node = static_cast<std::size_t>(to - fleet.nodes.begin());
    pod->picks = picks;
    pod->use = UseOf(*pod->request, picks);
    test::DefragCase::AddTo(to->load, to->inventory, *pod);
    to->cpu_free -= pod->request->cpu;
  }
  const auto node = std::ranges::find(fleet.nodes, entry.node, &AdviceNode::name);
  const auto here = static_cast<std::size_t>(node - fleet.nodes.begin());
  const bool left =
      std::ranges::any_of(fleet.pods, [here](const AdvicePod& pod) { return pod.node == here; });
  return left ? "leaves somebody on the node" : "";
}

struct Tally {
  int64_t emptied = 0;
  int64_t moved = 0;
};

void CheckFleet(uint64_t seed, Tally& tally) {
  Dice dice(seed);
  const AdviceCase fleet = SomeFleet(dice);
  AdviceCase after = fleet;
  std::set<NodeName> emptied;
  for (const EmptiedNode& entry : PlanConsolidation(fleet, {})) {
    const auto node = std::ranges::find(fleet.nodes, entry.node, &AdviceNode::name);
    EXPECT_TRUE(node->open);
    int64_t lost = 0;
    for (const DefragMove& move : entry.moves) {
      const auto pod = std::ranges::find(fleet.pods, move.uid, &AdvicePod::uid);
      EXPECT_TRUE(pod->moves_to_consolidate);
      EXPECT_FALSE(emptied.contains(move.to)) << "a node that is emptied is no place";
      const auto to = std::ranges::find(fleet.nodes, move.to, &AdviceNode::name);
      EXPECT_FALSE(NobodyHolds(fleet, *to)) << "nor one nobody works on";
      lost += pod->lost_gpu_ms;
    }
    EXPECT_EQ(entry.lost_gpu_ms, lost);
    EXPECT_LE(lost / entry.gpus, EmptyingLimits().most_lost.count());
    EXPECT_EQ(CarryOut(after, entry), "");
    emptied.insert(entry.node);
    ++tally.emptied;
    tally.moved += std::ssize(entry.moves);
  }
  for (const AdviceNode& node : fleet.nodes) {
    const auto entry = PlanEmptying(fleet, node.name, EmptyFor::kLayout, {});
    if (!entry) continue;
    AdviceCase alone = fleet;
    EXPECT_EQ(CarryOut(alone, *entry), "");
    for (const DefragMove& move : entry->moves) {
      EXPECT_TRUE(std::ranges::find(fleet.pods, move.uid, &AdvicePod::uid)->moves_for_layout);
    }
  }
}

TEST(EmptyingProperty, WhatIsPlannedCanBeDone) {
  uint64_t first = 1;
  uint64_t count = 4'000;
  if (const char* text = std::getenv("TRANCHE_SEED")) first = std::strtoull(text, nullptr, 10);
  if (const char* text = std::getenv("TRANCHE_STEPS")) count = std::strtoull(text, nullptr, 10);
  std::cout << "seeds " << first << " to " << first + count - 1 << " (TRANCHE_SEED)\n";
  Tally tally;
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CheckFleet(seed, tally);
  }
  std::cout << tally.emptied << " nodes emptied by " << tally.moved << " moves\n";
  EXPECT_GT(tally.emptied, 0);
}

}  // namespace THIS_FILE
}  // namespace tranche
