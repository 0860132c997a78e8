// Repartition plans on random fleets: no plan touches a GPU in use or makes what is not legal, and
// what it promises is what the nodes, built anew from the changed facts, really serve. With one
// move it serves as many as the best of all legal sets.
#include "scheduler/advice/repartition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>

#include "scheduler/advice/geometry_choice.h"
#include "scheduler/advice/geometry_trial.h"
#include "test/builders/cluster.h"
#include "topology/mig_space.h"

namespace tranche {
namespace THIS_FILE {

using Random = std::mt19937_64;

struct Seeds {
  uint64_t first = 1;
  uint64_t count = 400;

  Seeds() {
    if (const char* text = std::getenv("TRANCHE_SEED")) first = std::strtoull(text, nullptr, 10);
    if (const char* text = std::getenv("TRANCHE_STEPS")) count = std::strtoull(text, nullptr, 10);
    std::cout << "seeds " << first << " to " << first + count - 1 << " (TRANCHE_SEED)\n";
  }
};

// What MigNode of the builders is.
const MigBoard& Board() {
  static const MigBoard& board = *FindMigBoard("NVIDIA-A100-80GB-PCIe", Mebibytes::Of(81251));
  return board;
}

// A node in numbers: static instances are told apart by their profile alone.
struct Numbers {
  int gpus = 0;
  int whole = 0;
  std::map<std::string, int64_t> instances;

  void Add(const Geometry& geometry, int sign) {
    if (geometry.profiles.empty()) whole += sign;
    for (const auto& [profile, count] : geometry.profiles) instances[profile] += sign * count;
  }
  NodeFacts Facts(const std::string& name) const {
    std::vector<test::MigCount> counts;
    for (const auto& [profile, count] : instances) {
      if (count > 0) counts.push_back({profile, count});
    }
    NodeFacts facts = test::MigNode(name, gpus, whole, counts);
    std::ranges::sort(facts.mig, {}, [](const auto& mig) { return FormatMigResource(mig.name); });
    return facts;
  }
};

AdviceNode NodeOf(const NodeFacts& facts) {
  AdviceNode node;
  node.name = facts.name;
  node.inventory = BuildInventory(facts, 0);
  node.load.Reset(node.inventory);
  node.mig_strategy = MigStrategy::kMixed;
  node.has_mig_manager = true;
  return node;
}

PodRequest RandomPod(Random& random) {
  if (random() % 4 == 0) return test::WholePod("pod", 1);
  const auto& profile = Board().profiles[random() % Board().profiles.size()];
  return test::MigPod("pod", std::string(profile.name), 1);
}

struct Scene {
  std::vector<Numbers> numbers;
  std::vector<std::vector<PodRequest>> running;  // of each node
  AdviceCase fleet;
  RepartitionLimits limits;
};

bool Take(TrialPlacer& placer, const PodRequest& request, AdviceCase& with, TrialNode& node) {
  with.waiting.front().request = std::make_shared<const PodRequest>(request);
  return placer.Place(0, node);
}

Scene RandomScene(Random& random, bool idle) {
  Scene scene;
  scene.fleet.now = test::At(0);
  const std::size_t nodes = 1 + random() % 3;
  for (std::size_t i = 0; i < nodes; ++i) {
    Numbers numbers;
    numbers.gpus = 1 + static_cast<int>(random() % 3);
    const MigSpace& space = MigSpaceOf(Board());
    for (int gpu = 0; gpu < numbers.gpus; ++gpu) {
      std::vector<int> counts(Board().profiles.size(), 0);
      if (random() % 2 == 0) {
        const auto layout = static_cast<LayoutId>(1 + random() % (space.size() - 1));
        for (const MigInstance& instance : space.instances(layout)) {
          ++counts[static_cast<std::size_t>(instance.profile - Board().profiles.data())];
        }
      }
      numbers.Add(GeometryOf(Board(), counts), 1);
    }
    scene.numbers.push_back(numbers);
    scene.fleet.nodes.push_back(NodeOf(numbers.Facts("node-" + std::to_string(i))));
    scene.running.emplace_back();
  }
  AdviceCase one;
  one.waiting.resize(1);
  one.waiting.front().request = std::make_shared<const PodRequest>(test::WholePod("pod", 1));
  TrialPlacer placer(one);
  for (std::size_t i = 0; !idle && i < nodes; ++i) {
    TrialNode trial = TrialOf(scene.fleet.nodes[i]);
    for (uint64_t pods = random() % 6; pods > 0; --pods) {
      const PodRequest pod = RandomPod(random);
      if (Take(placer, pod, one, trial)) scene.running[i].push_back(pod);
    }
    scene.fleet.nodes[i].load = trial.load;
  }
  for (uint64_t waiters = random() % 30; waiters > 0; --waiters) {
    AdviceWaiter waiter;
    waiter.request = std::make_shared<const PodRequest>(RandomPod(random));
    waiter.since = test::At(-static_cast<int64_t>(random() % 240));
    waiter.quota_allows = random() % 8 != 0;
    scene.fleet.waiting.push_back(waiter);
  }
  for (const MigProfile& profile : Board().profiles) {
    if (random() % 3 != 0) continue;
    DemandRow row;
    row.kind.mig_profile = profile.name;
    row.kind.milli = 0;
    row.peak = static_cast<int64_t>(random() % 6);
    row.mean_milli = row.peak * 500;
    scene.fleet.demand.push_back(row);
  }
  std::ranges::sort(scene.fleet.demand, {}, &DemandRow::kind);
  scene.limits.most_moves = static_cast<int>(random() % 5);
  scene.limits.most_nodes = static_cast<int>(random() % 3);
  return scene;
}

// How many waiting pods find room on these nodes, run by run in order of waiting; `patient`: only
// those that waited long enough take what the pods before them left.
int64_t Served(const AdviceCase& fleet, const std::vector<AdviceNode>& now,
               const std::vector<AdviceNode>& then) {
  AdviceCase before = fleet;
  before.nodes = now;
  AdviceCase after = fleet;
  after.nodes = then;
  TrialPlacer placer(before);
  std::vector<TrialNode> old_nodes, new_nodes;
  for (const AdviceNode& node : before.nodes) old_nodes.push_back(TrialOf(node));
  for (const AdviceNode& node : after.nodes) new_nodes.push_back(TrialOf(node));
  const auto place = [&placer](std::size_t waiter, std::vector<TrialNode>& nodes) {
    return std::ranges::any_of(nodes, [&](TrialNode& node) { return placer.Place(waiter, node); });
  };
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < fleet.waiting.size(); ++i) {
    if (!fleet.waiting[i].quota_allows) continue;
    if (place(i, old_nodes)) {
      EXPECT_TRUE(place(i, new_nodes)) << "a plan takes the room of " << i;
    } else if (fleet.now - fleet.waiting[i].since >= RepartitionLimits().patience) {
      left.push_back(i);
    }
  }
  return std::ranges::count_if(left, [&](std::size_t i) { return place(i, new_nodes); });
}

void ExpectLegal(const Geometry& geometry) {
  if (geometry.profiles.empty()) return;
  const auto layout = LayOutMig(Board(), CountsOf(Board(), geometry), 1);
  ASSERT_TRUE(layout.has_value()) << GeometryText(geometry);
  EXPECT_TRUE(IsLegalMigSet(Board(), layout->front())) << GeometryText(geometry);
}

TEST(RepartitionProperty, PlansAreLegalWithinLimitsAndKeepTheirPromise) {
  const Seeds seeds;
  int64_t served = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Scene scene = RandomScene(random, false);
    const RepartitionPlan plan = PlanRepartition(scene.fleet, scene.limits);
    EXPECT_LE(std::ssize(plan.nodes), scene.limits.most_nodes);
    EXPECT_TRUE(std::ranges::is_sorted(plan.nodes, {}, &NodeRepartition::node));

    std::vector<AdviceNode> changed = scene.fleet.nodes;
    int moves = 0;
    for (const NodeRepartition& node : plan.nodes) {
      const auto at = static_cast<std::size_t>(
          std::ranges::find(changed, node.node, &AdviceNode::name) - changed.begin());
      Numbers numbers = scene.numbers[at];
      for (const RepartitionStep& step : node.steps) {
        ++moves;
        const AdviceNode& origin = scene.fleet.nodes[at];
        EXPECT_TRUE(IsIdle(origin.inventory, origin.load, step.gpu));
        EXPECT_EQ(GeometryOfCard(origin.inventory, step.gpu), step.from);
        EXPECT_NE(step.from, step.to);
        ExpectLegal(step.to);
        numbers.Add(step.from, -1);
        numbers.Add(step.to, 1);
      }
      // The node as it would be seen then, with the pods that run there.
      changed[at] = NodeOf(numbers.Facts(node.node.str()));
      AdviceCase one;
      one.waiting.resize(1);
      one.waiting.front().request = std::make_shared<const PodRequest>(test::WholePod("pod", 1));
      TrialPlacer placer(one);
      TrialNode trial = TrialOf(changed[at]);
      for (const PodRequest& pod : scene.running[at]) {
        EXPECT_TRUE(Take(placer, pod, one, trial)) << "a plan takes the room of a running pod";
      }
      changed[at].load = trial.load;
    }
    EXPECT_LE(moves, scene.limits.most_moves);
    EXPECT_EQ(plan.waiting_served, Served(scene.fleet, scene.fleet.nodes, changed));
    served += plan.waiting_served;
    if (testing::Test::HasFailure()) return;
  }
  if (seeds.count >= 100) {
    EXPECT_GT(served, static_cast<int64_t>(seeds.count) / 4);
  }
}

TEST(RepartitionProperty, OneMoveServesAsManyAsTheBestOfAllLegalSets) {
  const Seeds seeds;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count / 10; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Scene scene = RandomScene(random, true);
    scene.fleet.nodes.resize(1);
    scene.limits.most_moves = 1;
    scene.limits.most_nodes = 1;
    std::erase_if(scene.fleet.waiting, [](const AdviceWaiter& pod) { return !pod.quota_allows; });
    const RepartitionPlan plan = PlanRepartition(scene.fleet, scene.limits);
    const bool was_bound = std::ranges::any_of(plan.notes, [](const std::string& note) {
      return note.find("goes first") != std::string::npos;
    });

    const AdviceNode& node = scene.fleet.nodes.front();
    TrialPlacer placer(scene.fleet);
    TrialNode settled = TrialOf(node);
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < scene.fleet.waiting.size(); ++i) {
      const bool patient = scene.fleet.now - scene.fleet.waiting[i].since >= scene.limits.patience;
      if (!placer.Place(i, settled) && patient) left.push_back(i);
    }
    int64_t most = 0;
    for (int card = 0; card < static_cast<int>(node.inventory.cards.size()); ++card) {
      if (!IsIdle(settled.inventory, settled.load, card)) continue;
      const MigSpace& space = MigSpaceOf(Board());
      for (std::size_t layout = 0; layout < space.size(); ++layout) {
        GeometryChoice choice;
        if (layout != kEmptyLayout) choice.counts.resize(Board().profiles.size(), 0);
        for (const MigInstance& instance : space.instances(static_cast<LayoutId>(layout))) {
          ++choice.counts[static_cast<std::size_t>(instance.profile - Board().profiles.data())];
        }
        TrialNode cut = settled;
        CutCard(Board(), choice, card, cut);
        most = std::max(most, std::ssize(placer.PlaceAll(left, cut)));
      }
    }
    EXPECT_LE(plan.waiting_served, most);
    if (!was_bound) {
      EXPECT_EQ(plan.waiting_served, most);
    }
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
