// Which work of a leaf goes when its quota was lowered.
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "quota/preemption/reclaim_cost.h"
#include "quota/preemption/reclaim_search.h"

namespace tranche {
namespace {

class Shrinker {
 public:
  Shrinker(const ReclaimProblem& problem, QuotaId leaf, ShrinkTarget target);
  ShrinkPlan Plan();

 private:
  const VictimUnit& UnitAt(int unit) const {
    return problem_.units[static_cast<std::size_t>(unit)];
  }
  std::vector<int64_t> Excess() const;
  bool Enough() const;
  bool Allowed(int unit, const std::vector<int>& beside) const;
  void Remove(int unit);
  void Add(int unit);
  void ReverseDelete();
  void Descend(std::size_t next);

  const ReclaimProblem& problem_;
  QuotaId leaf_;
  ShrinkTarget target_;
  QuotaTree trial_;
  std::vector<LineId> lines_;
  std::vector<int> order_;      // units, what costs least alone first
  std::vector<int64_t> least_;  // the excess that stays whatever goes
  ReclaimTally tally_;          // of the victims Descend has taken
  ShrinkPlan best_;
};

Shrinker::Shrinker(const ReclaimProblem& problem, QuotaId leaf, ShrinkTarget target)
    : problem_(problem),
      leaf_(leaf),
      target_(target),
      trial_(*problem.tree),
      order_(problem.units.size()),
      tally_(problem, problem.regions.size()) {
  for (const QuotaLineView& view : trial_.View(leaf)) {
    lines_.push_back(trial_.FindLine(view.name));
  }
  std::vector<PlanCost> prices;
  for (std::size_t i = 0; i < problem.units.size(); ++i) {
    const int unit = static_cast<int>(i);
    prices.push_back(CostOf(problem, problem.regions.size(), std::span(&unit, 1)));
  }
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::sort(order_, {}, [&](int unit) -> const PlanCost& {
    return prices[static_cast<std::size_t>(unit)];
  });
}

// By line and dimension, how far the leaf is from the target.
std::vector<int64_t> Shrinker::Excess() const {
  std::vector<int64_t> excess;
  for (const LineId line : lines_) {
    Charge over = trial_.Borrowed(leaf_, line);
    if (target_ == ShrinkTarget::kReach) {
      const ChargeLimit left = trial_.Available(leaf_, line);
      over = {std::max<int64_t>(0, -left.compute.saturated()),
              std::max<int64_t>(0, -left.memory.saturated())};
    }
    // What it does not use, it does not use beyond anything.
    const Charge used = trial_.Used(leaf_, line);
    excess.push_back(used.compute == 0 ? 0 : over.compute);
    excess.push_back(used.memory == 0 ? 0 : over.memory);
  }
  return excess;
}

bool Shrinker::Enough() const {
  const std::vector<int64_t> excess = Excess();
  return std::ranges::equal(excess, least_,
                            [](int64_t now, int64_t least) { return now <= least; });
}

// Not more pods of a gang than it can spare, and none of them beside the whole gang.
bool Shrinker::Allowed(int unit, const std::vector<int>& beside) const {
  const VictimUnit& victim = UnitAt(unit);
  if (!victim.spare_of && !victim.whole_of) return true;
  int spares = 0;
  for (const int other : beside) {
    const VictimUnit& gone = UnitAt(other);
    if (victim.spare_of && gone.whole_of == victim.spare_of) return false;
    if (victim.whole_of && gone.spare_of == victim.whole_of) return false;
    if (victim.spare_of && gone.spare_of == victim.spare_of) ++spares;
  }
  return !victim.spare_of || spares < problem_.spare_left[*victim.spare_of];
}

void Shrinker::Remove(int unit) {
  for (const LineCharge& part : UnitAt(unit).parts) trial_.Remove(leaf_, part.line, part.charge);
}

void Shrinker::Add(int unit) {
  for (const LineCharge& part : UnitAt(unit).parts) trial_.Add(leaf_, part.line, part.charge);
}

// Everything that may go together, whole gangs rather than the pods they can spare; then what is
// not needed stays, the dearest first.
void Shrinker::ReverseDelete() {
  std::vector<int> victims;
  for (const bool spares : {false, true}) {
    for (const int unit : order_) {
      if (UnitAt(unit).spare_of.has_value() != spares || !Allowed(unit, victims)) continue;
      Remove(unit);
      victims.push_back(unit);
    }
  }
  least_ = Excess();
  std::vector<int> needed;
  for (auto unit = order_.rbegin(); unit != order_.rend(); ++unit) {
    if (std::ranges::find(victims, *unit) == victims.end()) continue;
    Add(*unit);
    if (Enough()) continue;
    Remove(*unit);
    needed.push_back(*unit);
  }
  for (const int unit : needed) Add(unit);
  std::ranges::sort(needed);
  best_.cost = CostOf(problem_, problem_.regions.size(), needed);
  best_.victims = std::move(needed);
}

void Shrinker::Descend(std::size_t next) {
  if (Enough()) {
    std::vector<int> victims = tally_.victims();
    std::ranges::sort(victims);
    PlanCost cost = CostOf(problem_, problem_.regions.size(), victims);
    if (cost < best_.cost) {
      best_.victims = std::move(victims);
      best_.cost = std::move(cost);
    }
    return;
  }
  for (; next < order_.size(); ++next) {
    const int unit = order_[next];
    if (!Allowed(unit, tally_.victims())) continue;
    Remove(unit);
    tally_.Push(unit);
    // Without its last ties a cost is no larger than with them.
    if (tally_.numbers() < best_.cost) Descend(next + 1);
    tally_.Pop();
    Add(unit);
  }
}

ShrinkPlan Shrinker::Plan() {
  ReverseDelete();
  if (order_.size() <= static_cast<std::size_t>(kExactUnits)) {
    Descend(0);
    best_.optimal = true;
  }
  best_.meets_target = std::ranges::all_of(least_, [](int64_t excess) { return excess == 0; });
  return std::move(best_);
}

}  // namespace

ShrinkPlan PlanShrink(const ReclaimProblem& problem, QuotaId leaf, ShrinkTarget target) {
  return Shrinker(problem, leaf, target).Plan();
}

}  // namespace tranche
