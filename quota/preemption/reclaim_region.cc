#include "quota/preemption/reclaim_region.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace tranche {

// ---- geometry ---------------------------------------------------------------------------------

SparingGeometry::SparingGeometry(const ReclaimProblem& problem, ReclaimGeometry& geometry,
                                 int64_t limit)
    : problem_(problem),
      geometry_(geometry),
      left_(limit),
      as_it_is_(problem.regions.size(), Known::kNo) {}

bool SparingGeometry::Ask(std::size_t region) {
  if (left_ <= 0) {
    exhausted_ = true;
    return false;
  }
  --left_;
  ++evaluations_;
  return geometry_.Fits(region, inside_);
}

bool SparingGeometry::Fits(std::size_t region, std::span<const int> gone) {
  inside_.clear();
  Charge freed;
  for (const int unit : gone) {
    const VictimUnit& victim = problem_.units[static_cast<std::size_t>(unit)];
    if (!HoldsDevicesIn(victim, region)) continue;
    inside_.push_back(unit);
    freed = AddSaturating(freed, TotalCharge(victim));
  }
  const Charge& short_by = problem_.regions[region].short_by;
  if (freed.compute < short_by.compute || freed.memory < short_by.memory) return false;
  if (inside_.empty()) {
    Known& known = as_it_is_[region];
    if (known == Known::kNo) known = Ask(region) ? Known::kFits : Known::kDoesNot;
    return known == Known::kFits;
  }
  std::ranges::sort(inside_);
  if (region != region_) answers_.clear();
  region_ = region;
  auto at = answers_.find(inside_);
  if (at == answers_.end()) at = answers_.emplace(inside_, Ask(region)).first;
  return at->second;
}

// ---- the incumbent ----------------------------------------------------------------------------

void Incumbent::Offer(ReclaimPlan other) {
  if (plan.has_value() &&
      std::tie(plan->cost, plan->region) <= std::tie(other.cost, other.region)) {
    return;
  }
  plan = std::move(other);
  numbers = plan->cost;
  numbers.order.clear();
}

// ---- one region -------------------------------------------------------------------------------

RegionSearch::RegionSearch(const ReclaimProblem& problem, ReclaimRules& rules,
                           SparingGeometry& geometry, Incumbent& incumbent)
    : problem_(problem), rules_(rules), geometry_(geometry), incumbent_(incumbent) {}

void RegionSearch::Load(const ReclaimRules::Step& step, std::size_t region, std::vector<int> units,
                        Collateral collateral) {
  step_ = step;
  region_ = region;
  with_collateral_ = collateral == Collateral::kCounts;
  units_ = std::move(units);
  std::ranges::sort(units_, [&](int left, int right) { return rules_.Before(left, right); });
  tally_.emplace(problem_, region, with_collateral_);
  rules_.Start(step, region);
}

void RegionSearch::Clear() {
  while (!tally_->victims().empty()) Pop();
}

bool RegionSearch::Push(int candidate) {
  const int unit = units_[static_cast<std::size_t>(candidate)];
  if (pushes_left_ <= 0) return false;
  pushes_left_ -= rules_.EffortOf(unit);
  if (!rules_.Push(unit)) return false;
  tally_->Push(unit);
  return true;
}

void RegionSearch::Pop() {
  rules_.Pop();
  tally_->Pop();
}

// Pushes those in canonical order; false if the rules do not allow all of them.
bool RegionSearch::Build(const std::vector<char>& taken) {
  Clear();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] != 0 && !Push(static_cast<int>(i))) return false;
  }
  return true;
}

// What is pushed makes room.
bool RegionSearch::Good() {
  return rules_.Admitted() && geometry_.Fits(region_, tally_->victims());
}

void RegionSearch::Offer() {
  // R1 takes devices for lacking where the question of them went unanswered.
  if (step_.rule == ReclaimRule::kR1 && geometry_.exhausted()) return;
  const PlanCost& numbers = tally_->numbers();
  if (incumbent_.BeatsNumbers(numbers)) return;
  ReclaimPlan plan{
      .rule = step_.rule, .region = region_, .victims = tally_->victims(), .cost = numbers};
  plan.cost.order = LastTies(problem_, plan.victims);
  std::ranges::sort(plan.victims);
  incumbent_.Offer(std::move(plan));
}

// ---- the quick answer -------------------------------------------------------------------------

// Candidates by what each costs alone.
std::vector<int> RegionSearch::ByPrice() const {
  std::vector<PlanCost> prices;
  ReclaimTally alone(problem_, region_, with_collateral_);
  for (const int unit : units_) {
    alone.Push(unit);
    prices.push_back(alone.numbers());
    alone.Pop();
  }
  std::vector<int> order(units_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](int left, int right) {
    const PlanCost& a = prices[static_cast<std::size_t>(left)];
    const PlanCost& b = prices[static_cast<std::size_t>(right)];
    if (a != b) return a < b;
    return std::tie(UnitAt(right).start, UnitAt(left).key) <
           std::tie(UnitAt(left).start, UnitAt(right).key);
  });
  return order;
}

void RegionSearch::Greedy(int64_t& pushes) {
  // Pricing them is as much work as judging them.
  pushes_left_ = pushes - static_cast<int64_t>(units_.size());
  std::vector<int> order = ByPrice();
  GreedyIn(order);
  std::ranges::stable_sort(order, [&](int left, int right) {
    return GpuEquivalents(TotalCharge(UnitAt(left))) > GpuEquivalents(TotalCharge(UnitAt(right)));
  });
  GreedyIn(order);
  if (step_.rule == ReclaimRule::kR1) {
    // What R1 judges: a victim that is taken early may keep smaller ones from being allowed.
    std::ranges::sort(order);
    GreedyIn(order);
  } else if (step_.rule == ReclaimRule::kR5) {
    // All of one leaf: not only of the one that has the cheapest.
    std::set<QuotaId> leaves;
    for (const int candidate : order) leaves.insert(UnitAt(candidate).leaf);
    for (const QuotaId leaf : leaves) {
      std::vector<int> of_leaf;
      std::ranges::copy_if(order, std::back_inserter(of_leaf),
                           [&](int candidate) { return UnitAt(candidate).leaf == leaf; });
      GreedyIn(of_leaf);
    }
  }
  pushes = pushes_left_;
}

// Rounds over all candidates, since one that was refused may be allowed once nearer ones are gone.
// First only those that give devices where devices are missing, or quota where quota is.
void RegionSearch::GreedyIn(const std::vector<int>& order) {
  Clear();
  std::vector<char> taken(units_.size(), 0);
  bool admitted = rules_.Admitted();
  bool fits = geometry_.Fits(region_, tally_->victims());
  for (const bool only_helpful : {true, false}) {
    for (bool added = true; added;) {
      added = false;
      for (const int candidate : order) {
        if (admitted && fits) return FillBack(taken, order);
        char& is_taken = taken[static_cast<std::size_t>(candidate)];
        const bool inside = !fits && HoldsDevicesIn(UnitAt(candidate), region_);
        if (is_taken != 0 || (only_helpful && admitted && !inside) || !Push(candidate)) continue;
        is_taken = 1;
        added = true;
        admitted = admitted || rules_.Admitted();
        fits = fits || (inside && geometry_.Fits(region_, tally_->victims()));
      }
    }
  }
  if (admitted && fits) FillBack(taken, order);
}

// Drops what is not needed, the dearest first, until nothing can be dropped.
void RegionSearch::FillBack(std::vector<char>& taken, const std::vector<int>& order) {
  for (bool dropped = true; dropped;) {
    dropped = false;
    for (auto candidate = order.rbegin(); candidate != order.rend(); ++candidate) {
      char& is_taken = taken[static_cast<std::size_t>(*candidate)];
      if (is_taken == 0) continue;
      is_taken = 0;
      const bool needed = !Build(taken) || !Good();
      is_taken = needed ? 1 : 0;
      dropped = dropped || !needed;
    }
  }
  if (Build(taken) && Good()) Offer();
}

// ---- the exact answer -------------------------------------------------------------------------

void RegionSearch::Exhaust() {
  pushes_left_ = std::numeric_limits<int64_t>::max();
  Clear();
  Descend(0, units_.size());
}

bool RegionSearch::ExhaustWithin(int64_t& pushes) {
  pushes_left_ = pushes;
  Clear();
  for (std::size_t most = 1; most <= units_.size(); ++most) {
    cut_ = false;
    Descend(0, most);
    if (!cut_ || pushes_left_ <= 0 || geometry_.exhausted()) break;
  }
  pushes = pushes_left_;
  return !cut_ && pushes > 0 && !geometry_.exhausted();
}

void RegionSearch::Descend(int next, std::size_t most) {
  for (int candidate = next; candidate < static_cast<int>(units_.size()); ++candidate) {
    if (pushes_left_ <= 0 || geometry_.exhausted()) return;
    if (!Push(candidate)) continue;
    if (!incumbent_.BeatsNumbers(tally_->numbers())) {
      if (Good()) {
        Offer();
      } else if (tally_->victims().size() < most) {
        Descend(candidate + 1, most);
      } else {
        cut_ = true;
      }
    }
    Pop();
  }
}

}  // namespace tranche
