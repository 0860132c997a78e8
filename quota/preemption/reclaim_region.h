// The cheapest plan of one step in one region, among given candidates.
//
// Sets are built in the canonical order of the rules, so that each further victim is judged once. A
// set that is good enough is not extended: more victims cost more. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "quota/preemption/reclaim_cost.h"
#include "quota/preemption/reclaim_rules.h"

namespace tranche {

// The caller's geometry, asked as seldom as possible: what short_by refuses is not asked, answers
// of the latest region are remembered, units without devices in the region do not count. After
// `limit` questions nothing fits any more.
class SparingGeometry : public ReclaimGeometry {
 public:
  SparingGeometry(const ReclaimProblem& problem, ReclaimGeometry& geometry, int64_t limit);

  bool Fits(std::size_t region, std::span<const int> gone) override;  // in any order
  int64_t evaluations() const { return evaluations_; }
  bool exhausted() const { return exhausted_; }  // a question went unanswered

 private:
  enum class Known : uint8_t { kNo, kFits, kDoesNot };
  bool Ask(std::size_t region);

  const ReclaimProblem& problem_;
  ReclaimGeometry& geometry_;
  int64_t left_;
  int64_t evaluations_ = 0;
  bool exhausted_ = false;
  std::vector<Known> as_it_is_;  // by region, with nobody gone
  std::size_t region_ = 0;
  std::map<std::vector<int>, bool> answers_;  // of region_
  std::vector<int> inside_;
};

// The cheapest plan so far, over all regions of a step.
struct Incumbent {
  std::optional<ReclaimPlan> plan;
  PlanCost numbers;  // its cost without the last ties

  bool BeatsNumbers(const PlanCost& other) const { return plan.has_value() && numbers < other; }
  // Takes the plan if it costs less, or the same in an earlier region.
  void Offer(ReclaimPlan other);
};

// Do pods of victims outside the region, of victims with pods in it, cost anything?
enum class Collateral : uint8_t { kCounts, kIgnored };

class RegionSearch {
 public:
  // All must outlive this.
  RegionSearch(const ReclaimProblem& problem, ReclaimRules& rules, SparingGeometry& geometry,
               Incumbent& incumbent);

  // `units`: the candidates, in any order.
  void Load(const ReclaimRules::Step& step, std::size_t region, std::vector<int> units,
            Collateral collateral);
  // Each further victim that is judged is one of `pushes`, which are taken off; with none left the
  // search ends.
  //
  // Quick sets: cheapest victims first, largest first; victims that turn out not to be needed are
  // dropped.
  void Greedy(int64_t& pushes);
  // Looks at every set that could be cheaper than the incumbent.
  void Exhaust();
  // The same, small sets first; false: not all.
  bool ExhaustWithin(int64_t& pushes);

 private:
  const VictimUnit& UnitAt(int candidate) const {
    return problem_.units[static_cast<std::size_t>(units_[static_cast<std::size_t>(candidate)])];
  }
  void Clear();
  bool Push(int candidate);
  void Pop();
  bool Build(const std::vector<char>& taken);
  bool Good();
  void Offer();

  std::vector<int> ByPrice() const;
  void GreedyIn(const std::vector<int>& order);
  void FillBack(std::vector<char>& taken, const std::vector<int>& order);
  void Descend(int next, std::size_t most);

  const ReclaimProblem& problem_;
  ReclaimRules& rules_;
  SparingGeometry& geometry_;
  Incumbent& incumbent_;

  ReclaimRules::Step step_;
  std::size_t region_ = 0;
  bool with_collateral_ = true;
  std::vector<int> units_;             // in canonical order; a candidate is a position here
  std::optional<ReclaimTally> tally_;  // of what is pushed
  int64_t pushes_left_ = 0;
  bool cut_ = false;  // Descend stopped at `most`
};

}  // namespace tranche
