// What a set of victims costs, counted as it grows and shrinks.
//
// Everything but the last ties (PlanCost::order, which holds strings and is built only when all
// numbers are equal). Taking one more victim never lowers a number and raises `pods`, so a set
// costs less than every set that contains it. Not thread-safe. Cost: Push O(pods of the unit), with
// budgets O(pods of all victims).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quota/preemption/reclaim.h"

namespace tranche {

// Sum over its lines.
Charge TotalCharge(const VictimUnit& unit);
bool HoldsDevicesIn(const VictimUnit& unit, std::size_t region);
// Its pods outside of the region, if it has any in it.
int64_t CollateralOf(const VictimUnit& unit, std::size_t region);
// PlanCost::order.
std::vector<std::pair<Millis, std::string>> LastTies(const ReclaimProblem& problem,
                                                     std::span<const int> victims);

class ReclaimTally {
 public:
  // A region the problem does not have: for no region, nothing is asked.
  ReclaimTally(const ReclaimProblem& problem, std::size_t region, bool with_collateral = true);

  void Push(int unit);
  void Pop();
  const std::vector<int>& victims() const { return victims_; }   // as pushed
  const PlanCost& numbers() const { return sums_.back().cost; }  // `order` is empty

 private:
  struct Sum {
    PlanCost cost;
    Charge freed;
    bool budgets = false;  // a victim has a budget
  };

  const ReclaimProblem& problem_;
  std::size_t region_;
  bool with_collateral_;
  int64_t asked_ = 0;  // GPU-equivalents
  std::vector<int> victims_;
  std::vector<Sum> sums_;  // of the first 0, 1, ... victims
};

}  // namespace tranche
