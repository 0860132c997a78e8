// Backfill: nodes are kept for a gang that has waited long, until work there has ended as it
// declared; who ends before may use them meanwhile. Source: quota-model section 4, "Starvation".
//
// Others lose idle nodes by it, so it is done for what is within the gang's own quota alone, a day
// ahead at most, not against work of a higher class or of other teams within their quota; and it
// ends at the moment it was made for, whether the gang has started or not.
//
// Externally synchronised, as the state is. Cost: at most eight plans for one gang every ten
// seconds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

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
  bool IsEntitled(const QuotaMembership& membership, std::vector<ModelCharge> parts, Instant start,
                  Instant now) const;

  GangParts parts_;
  ClusterState& cluster_;
  HeldNodes& held_nodes_;
  const Gangs& gangs_;
  std::map<std::string, Instant> rests_;  // gangs whose hold came to nothing, until then
};

}  // namespace tranche
