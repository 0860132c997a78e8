// Where borrowers are interleaved R1 chooses anew what is borrowed: as trying every set says, and
// nobody has less in quota afterwards.
//
//   TRANCHE_SEED=7 TRANCHE_STEPS=1 property_tests --gtest_filter='ReclaimChoice.*'
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "quota/preemption/reclaim_search.h"
#include "test/property/marked_work.h"
#include "test/property/reclaim_oracle.h"
#include "test/property/reclaim_scenes.h"

namespace tranche {
namespace THIS_FILE {

constexpr LineId kLine{1};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Charge Gpus(int count) { return {kQuantaPerGpu * count, kQuantaPerGpu * count}; }

// Two borrowers and some work of no team, spread over full nodes of four GPUs; `a` has most of the
// nominal, uses none of it, and wants a whole node or half of one.
class CrowdMaker {
 public:
  CrowdMaker(uint64_t seed, ReclaimScene& scene) : random_(seed), scene_(scene) {
    std::vector<QuotaNode> nodes = {{.name = "org", .parent = "", .lines = {}}};
    const int nodes_of_four = Roll(2, 3);
    const int gpus = 4 * nodes_of_four;
    for (const std::string& leaf : std::vector<std::string>{"a", "b", "c"}) {
      const int nominal = leaf == "a" ? Roll(4, gpus - 2) : Roll(0, gpus / 2);
      nodes.push_back({.name = leaf, .parent = "org", .lines = {}});
      nodes.back().lines.emplace_back("h", LineLimits{.nominal = Gpus(nominal)});
    }
    scene.tree = QuotaTree::Build(std::move(nodes)).value();
    ReclaimProblem& problem = scene.problem;
    problem.tree = &scene.tree;
    problem.leaf = scene.tree.Find("a");
    problem.rank = Roll(1, 3);
    problem.weights.assign(scene.tree.size(), 1);
    const int wanted = 2 * Roll(1, 2);
    for (int i = 0; i < nodes_of_four; ++i) {
      scene.geometry.regions.push_back({{1000, 1000, 1000, 1000}, wanted, 1000});
      problem.regions.emplace_back().parts = {{kLine, Gpus(wanted)}};
    }
    for (std::size_t tries = 0; tries < 30 && problem.units.size() < kExactUnits; ++tries) Run();
    Tell();
  }

 private:
  int Roll(int from, int to) {
    return from + static_cast<int>(random_() % static_cast<uint64_t>(to - from + 1));
  }

  void Run() {
    const auto region =
        static_cast<std::size_t>(Roll(0, static_cast<int>(scene_.geometry.regions.size()) - 1));
    std::vector<int>& free = scene_.geometry.regions[region].free_milli;
    const int gpus = std::min(Roll(1, 2), Roll(1, 4));
    if (std::ranges::count(free, 1000) < gpus) return;
    VictimUnit unit;
    const int team = Roll(0, 9);
    unit.leaf = scene_.tree.Find(team == 0 ? "" : (team < 7 ? "b" : "c"));
    unit.key = "u" + std::to_string(10 + scene_.problem.units.size());
    unit.rank = Roll(1, 3) == 1 ? Roll(0, 3) : 2;
    unit.start = Instant(Millis(Roll(0, 20)));
    unit.lost_gpu_ms = Roll(0, 9);
    unit.parts = {{kLine, Gpus(gpus)}};
    unit.pods = {{region, {}}};
    unit.marks = {QuotaState::kBorrowed, false, false};
    std::vector<TableGeometry::Held>& held = scene_.geometry.held.emplace_back();
    for (int gpu = 0; gpu < gpus; ++gpu) {
      const auto card = std::ranges::find(free, 1000);
      *card = 0;
      held.push_back({region, static_cast<std::size_t>(card - free.begin()), 1000, Gpus(1)});
    }
    if (unit.leaf != kNoQuota) scene_.tree.Add(unit.leaf, kLine, Gpus(gpus));
    scene_.problem.units.push_back(std::move(unit));
  }

  void Tell() {
    ReclaimProblem& problem = scene_.problem;
    for (VictimUnit& unit : problem.units) {
      if (unit.leaf == kNoQuota) continue;
      unit.held = problem.held.size();
      MarkUnit mark{.key = unit.key, .rank = unit.rank, .start = unit.start, .parts = {}};
      mark.parts = {{kLine, unit.parts.front().charge}};
      problem.held.push_back({unit.leaf, std::move(mark)});
    }
    for (QuotaId leaf{0}; leaf < scene_.tree.size(); ++leaf) {
      std::vector<MarkUnit> units;
      for (const HeldUnit& held : problem.held) {
        if (held.leaf == leaf) units.push_back(held.unit);
      }
      const std::vector<LineMarks> marks =
          MarkLines(units, [&](LineId line) { return scene_.tree.Nominal(leaf, line); });
      auto mark = marks.begin();
      for (VictimUnit& unit : problem.units) {
        if (unit.leaf == leaf) unit.marks = *mark++;
      }
    }
  }

  std::mt19937_64 random_;
  ReclaimScene& scene_;
};

// Afterwards nobody has less in quota than before.
void ExpectEverybodyKeepsTheirDue(const ReclaimProblem& problem, const std::vector<int>& victims) {
  for (QuotaId leaf{0}; leaf < problem.tree->size(); ++leaf) {
    MarkedWork before = MarkedWithout(problem, leaf, {});
    MarkedWork after = MarkedWithout(problem, leaf, victims);
    EXPECT_GE(after.by_line[kLine].compute, before.by_line[kLine].compute)
        << problem.tree->name(leaf);
  }
}

TEST(ReclaimChoice, InterleavedBorrowersMakeRoomAsByTryingEverySet) {
  const uint64_t first = FromEnvironment("TRANCHE_SEED", 1);
  const uint64_t steps = FromEnvironment("TRANCHE_STEPS", 1'000);
  std::cout << "seeds " << first << " to " << first + steps - 1 << " (TRANCHE_SEED)\n";
  int64_t by_marks = 0;
  int64_t by_choice = 0;
  for (uint64_t seed = first; seed < first + steps && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ReclaimScene scene;
    CrowdMaker(seed, scene);
    ReclaimOracle oracle(scene.problem, scene.geometry);
    const ReclaimOracle::Answer expected = oracle.Solve();
    const ReclaimAnswer answer = PlanReclaim(scene.problem, scene.geometry);
    ASSERT_EQ(answer.plan.has_value(), expected.result == ReclaimOracle::Result::kPlan);
    if (!answer.plan) continue;
    EXPECT_TRUE(answer.plan->optimal);
    EXPECT_EQ(answer.plan->rule, expected.step.rule);
    EXPECT_EQ(answer.plan->region, expected.region);
    EXPECT_EQ(answer.plan->victims, expected.victims);
    EXPECT_TRUE(answer.plan->cost == expected.cost);
    ExpectEverybodyKeepsTheirDue(scene.problem, answer.plan->victims);
    ++(expected.step.by_choice ? by_choice : by_marks);
  }
  std::cout << by_marks << " plans by the marks, " << by_choice << " by choice\n";
  EXPECT_TRUE(HasFailure() || steps < 1'000 || (by_marks > 100 && by_choice > 50));
}

}  // namespace THIS_FILE
}  // namespace tranche
