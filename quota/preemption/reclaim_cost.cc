#include "quota/preemption/reclaim_cost.h"

#include <algorithm>

namespace tranche {
namespace {

const VictimUnit& UnitAt(const ReclaimProblem& problem, int unit) {
  return problem.units[static_cast<std::size_t>(unit)];
}

// Pods that find a budget used up, the pods before them having taken one from each of theirs.
int64_t PdbViolations(const ReclaimProblem& problem, std::vector<int> victims) {
  std::ranges::sort(victims, [&](int left, int right) {
    return UnitAt(problem, left).key < UnitAt(problem, right).key;
  });
  std::vector<int64_t> allowed = problem.pdb_allowed;
  int64_t violations = 0;
  for (const int victim : victims) {
    for (const VictimPod& pod : UnitAt(problem, victim).pods) {
      bool violates = false;
      for (const int budget : pod.budgets) {
        violates |= allowed[static_cast<std::size_t>(budget)]-- <= 0;
      }
      violations += violates ? 1 : 0;
    }
  }
  return violations;
}

}  // namespace

Charge TotalCharge(const VictimUnit& unit) { return TotalOf(unit.parts); }

bool HoldsDevicesIn(const VictimUnit& unit, std::size_t region) {
  return std::ranges::any_of(unit.pods,
                             [region](const VictimPod& pod) { return pod.region == region; });
}

int64_t CollateralOf(const VictimUnit& unit, std::size_t region) {
  const auto inside = std::ranges::count_if(
      unit.pods, [region](const VictimPod& pod) { return pod.region == region; });
  return inside == 0 ? 0 : static_cast<int64_t>(unit.pods.size()) - inside;
}

std::vector<std::pair<Millis, std::string>> LastTies(const ReclaimProblem& problem,
                                                     std::span<const int> victims) {
  std::vector<std::pair<Millis, std::string>> order;
  order.reserve(victims.size());
  for (const int victim : victims) {
    const VictimUnit& unit = UnitAt(problem, victim);
    order.emplace_back(-unit.start.time_since_epoch(), unit.key);
  }
  std::ranges::sort(order);
  return order;
}

ReclaimTally::ReclaimTally(const ReclaimProblem& problem, std::size_t region, bool with_collateral)
    : problem_(problem), region_(region), with_collateral_(with_collateral), sums_(1) {
  if (region < problem.regions.size()) {
    asked_ = GpuEquivalents(TotalOf(problem.regions[region].parts));
  }
}

void ReclaimTally::Push(int unit) {
  const VictimUnit& victim = UnitAt(problem_, unit);
  Sum sum = sums_.back();
  victims_.push_back(unit);
  const Charge charge = TotalCharge(victim);
  sum.freed = AddSaturating(sum.freed, charge);
  sum.budgets |=
      std::ranges::any_of(victim.pods, [](const VictimPod& pod) { return !pod.budgets.empty(); });
  PlanCost& cost = sum.cost;
  if (sum.budgets) cost.pdb_violations = PdbViolations(problem_, victims_);
  cost.rank = std::max<std::optional<int64_t>>(cost.rank, victim.rank);
  if (victim.marks.state == QuotaState::kInQuota) cost.in_quota += GpuEquivalents(charge);
  cost.gangs += victim.breaks ? 1 : 0;
  if (with_collateral_) cost.collateral += CollateralOf(victim, region_);
  cost.lost_gpu_ms = AddSaturating(cost.lost_gpu_ms, victim.lost_gpu_ms);
  cost.pods += static_cast<int64_t>(victim.pods.size());
  cost.surplus = std::max<int64_t>(0, GpuEquivalents(sum.freed) - asked_);
  sums_.push_back(std::move(sum));
}

void ReclaimTally::Pop() {
  victims_.pop_back();
  sums_.pop_back();
}

}  // namespace tranche
