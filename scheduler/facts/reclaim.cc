#include "scheduler/facts/reclaim.h"

#include <algorithm>

namespace tranche {

std::string_view ReclaimPhaseName(ReclaimPhase phase) {
  switch (phase) {
    case ReclaimPhase::kPlanned:
      return "Planned";
    case ReclaimPhase::kEvicting:
      return "Evicting";
    case ReclaimPhase::kReserved:
      return "Reserved";
    case ReclaimPhase::kDone:
      return "Done";
    case ReclaimPhase::kAborted:
      break;
  }
  return "Aborted";
}

std::size_t Reclaim::gone() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      victims, [](const auto& victim) { return victim.gone_at.has_value(); }));
}

std::string_view SourceKind(ReclaimRule rule) {
  if (rule == ReclaimRule::kGang) return "Gang";
  return rule == ReclaimRule::kDrain ? "GPUBudget" : "GPUQuota";
}

}  // namespace tranche
