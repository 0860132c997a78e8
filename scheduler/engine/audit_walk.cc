#include "scheduler/engine/audit_walk.h"

#include <array>

namespace tranche {

std::string_view AuditKindName(AuditKind kind) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(AuditKind::kCount)> kNames = {
      "load",
      "tally",
      "quotaSum",
      "holding",
      "pod",
      "charge",
      "agent",
      "gang",
      "claim",
      "namespaceQuota",
      "shownPod",
      "shownNode",
      "forgottenPod",
      "unreadable",
      "disputedDevices",
      "unownedWork",
      "stuckReservation",
      "invalidObject"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace tranche
