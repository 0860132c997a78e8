// Backfill: nodes are kept for a gang that has waited long, until work there has ended as it
// declared; who ends before may use them meanwhile. Source: quota-model section 4, "Starvation".
//
// Externally synchronised, as the state is. Cost: at most eight plans for one gang every ten
// seconds.
#pragma once

#include <optional>
#include <string>

#include "scheduler/engine/gangs/gangs.h"

namespace tranche {

class GangBackfill {
 public:
  GangBackfill(const GangParts& parts, HeldNodes& held_nodes, const Gangs& gangs)
      : parts_(parts), cluster_(parts.cluster), held_nodes_(held_nodes), gangs_(gangs) {}

  // Keeps the nodes on which a gang that has waited long can start the soonest.
  void Tend(Instant now);

 private:
  std::optional<std::string> GangToHoldFor(Instant now) const;
  void PlanHold(const Gang& gang, Instant now);

  GangParts parts_;
  ClusterState& cluster_;
  HeldNodes& held_nodes_;
  const Gangs& gangs_;
};

}  // namespace tranche
