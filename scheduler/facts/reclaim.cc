#include "scheduler/facts/reclaim.h"

#include <algorithm>

namespace tranche {

std::string_view ReclaimPhaseName(ReclaimPhase phase) {
  // In the order of ReclaimPhase.
  static constexpr std::string_view kNames[] = {"Planned", "Evicting", "Reserved", "Done",
                                                "Aborted"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::size_t Reclaim::gone() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      victims, [](const auto& victim) { return victim.gone_at.has_value(); }));
}

std::string_view SourceKind(ReclaimRule rule) {
  if (rule == ReclaimRule::kGang) return "Gang";
  if (HadItsTime(rule)) return "GPUClass";
  if (rule == ReclaimRule::kMaintenance) return "GPUPool";
  if (rule == ReclaimRule::kUnhealthy || rule == ReclaimRule::kInterruption || MovesWork(rule))
    return "Node";
  return rule == ReclaimRule::kDrain ? "GPUBudget" : "GPUQuota";
}

}  // namespace tranche
