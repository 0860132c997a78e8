// Small clusters for tests of the planner: quotas in whole H200, work with marks as the engine
// gives them, nodes that count GPUs.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "quota/preemption/reclaim_search.h"
#include "quota/tree/marking.h"

namespace tranche {

inline Charge Gpus(int64_t count) { return {count * kQuantaPerGpu, count * kQuantaPerGpu}; }

inline QuotaNode Quota(std::string name, std::string parent, int64_t nominal,
                       std::optional<int64_t> borrow = std::nullopt,
                       std::optional<int64_t> lend = std::nullopt) {
  LineLimits limits{.nominal = Gpus(nominal)};
  if (borrow.has_value()) limits.borrow_limit = Gpus(*borrow);
  if (lend.has_value()) limits.lend_limit = Gpus(*lend);
  return {std::move(name), std::move(parent), {{"h200", limits}}};
}

// Work of one pod for every entry of `nodes`, each taking `gpus` there (-1: on no node we ask).
struct Work {
  std::string key;
  std::string leaf;  // empty: of no team
  int64_t gpus = 1;
  int rank = 2;
  int64_t lost = 1;
  std::vector<int> nodes = {-1};
};

// A node fits whom it has enough GPUs for.
class CountedNodes : public ReclaimGeometry {
 public:
  explicit CountedNodes(const ReclaimProblem& problem) : problem_(problem) {}
  bool Fits(std::size_t region, std::span<const int> gone) override {
    EXPECT_TRUE(std::ranges::is_sorted(gone));
    ++asked;
    int64_t gpus = free[region];
    for (const int unit : gone) {
      const VictimUnit& victim = problem_.units[static_cast<std::size_t>(unit)];
      const int64_t each = TotalOf(victim) / static_cast<int64_t>(victim.pods.size());
      for (const VictimPod& pod : victim.pods) {
        if (pod.region == region) gpus += each;
      }
    }
    return gpus >= needed;
  }

  std::vector<int64_t> free;  // by region
  int64_t needed = 0;
  int64_t asked = 0;

 private:
  static int64_t TotalOf(const VictimUnit& unit) {
    return unit.parts.front().charge.compute / kQuantaPerGpu;
  }
  const ReclaimProblem& problem_;
};

class ReclaimTest : public testing::Test {
 protected:
  // Resets everything. Nodes of the problem have the free GPUs given with Wants.
  void Cluster(std::vector<QuotaNode> quotas, const std::vector<Work>& works) {
    absl::StatusOr<QuotaTree> tree = QuotaTree::Build(std::move(quotas));
    ASSERT_TRUE(tree.ok()) << tree.status();
    tree_ = *std::move(tree);
    problem_ = {};
    problem_.tree = &tree_;
    for (const Work& work : works) Run(work);
    MarkAll();
  }

  // The preemptor: marked in quota where its leaf has nominal beyond work of its rank and above.
  void Wants(const std::string& leaf, int64_t gpus, int rank, std::vector<int64_t> free) {
    problem_.leaf = tree_.Find(leaf);
    problem_.rank = rank;
    problem_.regions.clear();
    std::vector<MarkUnit> units = MarkUnitsOf(problem_.leaf);
    const LineId line = LineOfWork();
    units.push_back({"~preemptor", true, rank, Instant(Millis(1 << 30)), {{line, Gpus(gpus)}}});
    const LineMarks marks = MarkLines(units, NominalOf(problem_.leaf)).back();
    for (std::size_t i = 0; i < free.size(); ++i) {
      problem_.regions.push_back({{{line, Gpus(gpus)}}, marks, {}});
    }
    nodes_.free = std::move(free);
    nodes_.needed = gpus;
  }

  // What is borrowed may be chosen anew.
  void MayChoose() {
    for (VictimUnit& unit : problem_.units) {
      if (unit.leaf == kNoQuota) continue;
      unit.held = problem_.held.size();
      problem_.held.push_back({unit.leaf, MarkUnitOf(unit)});
    }
  }

  ReclaimAnswer Plan() { return PlanReclaim(problem_, nodes_); }
  // "R1 n0: b-1 b-2", or the result.
  std::string Told(const ReclaimAnswer& answer) const {
    switch (answer.result) {
      case ReclaimAnswer::Result::kFits:
        return "fits";
      case ReclaimAnswer::Result::kImpossible:
        return "impossible";
      case ReclaimAnswer::Result::kUnresolved:
        return "unresolved";
      case ReclaimAnswer::Result::kPlan:
        break;
    }
    std::string told(ReclaimRuleName(answer.plan->rule));
    told += " n" + std::to_string(answer.plan->region) + ":";
    std::set<std::string> keys;
    for (const int victim : answer.plan->victims) {
      keys.insert(problem_.units[static_cast<std::size_t>(victim)].key);
    }
    for (const std::string& key : keys) told += " " + key;
    return told;
  }
  std::string Planned() { return Told(Plan()); }
  VictimUnit& Unit(const std::string& key) {
    return *std::ranges::find(problem_.units, key, &VictimUnit::key);
  }
  int Position(const std::string& key) {
    return static_cast<int>(&Unit(key) - problem_.units.data());
  }
  LineId LineOfWork() const { return tree_.FindLine("h200"); }

  QuotaTree tree_;
  ReclaimProblem problem_;
  CountedNodes nodes_{problem_};

 private:
  void Run(const Work& work) {
    VictimUnit unit;
    unit.key = work.key;
    unit.leaf = tree_.Find(work.leaf);
    unit.rank = work.rank;
    unit.lost_gpu_ms = work.lost;
    unit.start = Instant(Millis(static_cast<int64_t>(problem_.units.size())));
    const int64_t gpus = work.gpus * static_cast<int64_t>(work.nodes.size());
    unit.parts = {{LineOfWork(), Gpus(gpus)}};
    for (const int node : work.nodes) unit.pods.push_back({node, {}});
    if (unit.leaf == kNoQuota) {
      unit.marks = {QuotaState::kBorrowed, false, false};
    } else {
      tree_.Add(unit.leaf, LineOfWork(), Gpus(gpus));
    }
    problem_.units.push_back(std::move(unit));
  }

  std::vector<MarkUnit> MarkUnitsOf(QuotaId leaf) const {
    std::vector<MarkUnit> units;
    for (const VictimUnit& unit : problem_.units) {
      if (unit.leaf != leaf) continue;
      units.push_back(MarkUnitOf(unit));
    }
    return units;
  }
  static MarkUnit MarkUnitOf(const VictimUnit& unit) {
    return {unit.key,
            true,
            unit.rank,
            unit.start,
            {{unit.parts.front().line, unit.parts.front().charge}}};
  }
  std::function<ChargeLimit(LineId)> NominalOf(QuotaId leaf) const {
    return [this, leaf](LineId line) { return tree_.Nominal(leaf, line); };
  }
  void MarkAll() {
    for (QuotaId leaf{0}; leaf < tree_.size(); ++leaf) {
      const std::vector<MarkUnit> units = MarkUnitsOf(leaf);
      const std::vector<LineMarks> marks = MarkLines(units, NominalOf(leaf));
      for (std::size_t i = 0; i < units.size(); ++i) Unit(units[i].key).marks = marks[i];
    }
  }
};

}  // namespace tranche
