#include "quota/preemption/reclaim.h"

namespace tranche {

std::string_view ReclaimRuleName(ReclaimRule rule) {
  // In the order of ReclaimRule.
  static constexpr std::string_view kNames[] = {
      "",          "R0",    "R1",          "R2a",       "R2b",         "R3",
      "R5",        "Drain", "Shrink",      "Gang",      "MaxRuntime",  "Maintenance",
      "Unhealthy", "Idle",  "Consolidate", "MigLayout", "Interruption"};
  return kNames[static_cast<std::size_t>(rule)];
}

}  // namespace tranche
