// Whether a pod that filter would place has to give way to another that waits.
//
// Asked after Selection::Select, about its best node. Externally synchronised, as the state is.
// Cost: at most sixteen waiting pods looked at.
#pragma once

#include <optional>

#include "scheduler/engine/selection/selection.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/preemption_state.h"
#include "scheduler/engine/teams/team_queue.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

class Precedence {
 public:
  Precedence(ClusterState& cluster, const PreemptionState& reclaims, TeamRules& rules,
             const TeamQueue& team_queue, Selection& selection)
      : cluster_(cluster),
        reclaims_(reclaims),
        rules_(rules),
        team_queue_(team_queue),
        selection_(selection) {}

  // Another borrower that fits now and comes first; nullopt: none.
  std::optional<PodUid> YieldsTo(const RequestContext& context, const PodRecord& record,
                                 Instant now);
  // A pod of an owner that was evicted, of the same team and class; nullopt: none.
  std::optional<PodUid> GivesWayToReturned(const RequestContext& context, const PodRecord& record,
                                           Instant now);

 private:
  ClusterState& cluster_;
  const PreemptionState& reclaims_;
  TeamRules& rules_;
  const TeamQueue& team_queue_;
  Selection& selection_;
};

}  // namespace tranche
