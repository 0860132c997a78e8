// The search for the cheapest plan.
//
// Necessary conditions first, region by region: quota and geometry with every candidate gone. Then
// a greedy answer with fill-back (victims that turn out not to be needed are dropped), then branch
// and bound, exact for up to kExactUnits candidates of a region (after leaving out those that
// cheaper ones of equal leaf, rank and charge make useless). Deterministic: the answer depends on
// the problem's values and not on the order of units or regions; of regions that cost the same the
// earliest is taken.
//
// Pure; any thread, one problem at a time. Cost: bounded by `evaluations` questions of geometry.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "quota/preemption/reclaim.h"

namespace tranche {

inline constexpr int kExactUnits = 12;

struct SearchLimits {
  int64_t evaluations = 200'000;
  // Only what R1 does by choice; for who has asked all else of the same work.
  bool only_by_choice = false;
};

struct ReclaimAnswer {
  enum class Result : uint8_t {
    kPlan,
    kFits,        // a region takes the preemptor as it is, by quota and devices; nobody needs to go
    kImpossible,  // proven: no set of victims the rules allow makes room
    kUnresolved,  // the search ended before it knew; never to be told as impossible
  };
  Result result = Result::kImpossible;
  std::optional<ReclaimPlan> plan;  // kPlan
  int64_t evaluations = 0;          // of geometry
};

ReclaimAnswer PlanReclaim(const ReclaimProblem& problem, ReclaimGeometry& geometry,
                          SearchLimits limits = {});

// Only region `region`, for a caller that has chosen it.
ReclaimAnswer PlanReclaimIn(const ReclaimProblem& problem, std::size_t region,
                            ReclaimGeometry& geometry, SearchLimits limits = {});

// Does the plan still hold for this problem: its rule allows the victims (ascending positions) and
// the preemptor fits the region once they are gone? Looks at no cost.
bool StillHolds(const ReclaimProblem& problem, ReclaimRule rule, std::size_t region,
                std::span<const int> victims, ReclaimGeometry& geometry);

// Cost of taking `victims` (ascending positions) for the region.
PlanCost CostOf(const ReclaimProblem& problem, std::size_t region, std::span<const int> victims);

// Which of the problem's units (all of one leaf) must go so that `target` of the leaf is met:
// least cost, exact up to kExactUnits, else greedy with fill-back. For quotas that were lowered.
enum class ShrinkTarget : uint8_t {
  kReach,    // nothing is used beyond what the leaf may have now (QuotaTree::Available >= 0)
  kNominal,  // the leaf borrows nothing
};
struct ShrinkPlan {
  // Ascending positions; all that can be done where the target cannot be met.
  std::vector<int> victims;
  PlanCost cost;
  bool meets_target = false;
  bool optimal = false;
};
ShrinkPlan PlanShrink(const ReclaimProblem& problem, QuotaId leaf, ShrinkTarget target);

}  // namespace tranche
