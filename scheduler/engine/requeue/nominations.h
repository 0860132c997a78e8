// Room kept for pods that kube-scheduler has nominated to a node, where it evicts (hazard 18).
//
// Externally synchronised, as the state is. Cost: O(holdings of the node).
#pragma once

#include "scheduler/engine/requeue/early_nominations.h"
#include "scheduler/engine/requeue/requeuer.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/earmarks.h"
#include "scheduler/engine/state/preemption_state.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

class Nominations {
 public:
  Nominations(ClusterState& cluster, Earmarks& earmarks, PreemptionState& reclaims,
              TeamRules& rules, Requeuer& requeue, const EarlyNominations& early)
      : cluster_(cluster),
        earmarks_(earmarks),
        reclaims_(reclaims),
        rules_(rules),
        requeue_(requeue),
        early_(early) {}

  void Note(const PodUid& uid, PodRecord& record, const NodeName& node, Instant now);
  // Somebody leaves the node.
  void Keep(const NodeName& node, Instant now);
  // Everybody has been seen: for all that are nominated.
  void KeepAll(Instant now);
  void End(const PodUid& uid, PodRecord& record, Instant now);
  // At a start: what no plan, no place in a gang and nobody who leaves explains is taken back,
  // since kube-scheduler counts such a pod on its node.
  void WithdrawUnexplained(Instant now);

 private:
  ClusterState& cluster_;
  Earmarks& earmarks_;
  PreemptionState& reclaims_;
  TeamRules& rules_;
  Requeuer& requeue_;
  const EarlyNominations& early_;
  Picks picks_;
};

}  // namespace tranche
