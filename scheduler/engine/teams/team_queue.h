// Pods that quota refused, and who of them comes first.
//
// Externally synchronised, as the state is. Cost: O(1) to note a refusal; DescribeQuota O(pods that
// quota refused).
#pragma once

#include <set>
#include <string>
#include <utility>

#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/preemption_state.h"
#include "scheduler/engine/state/request_context.h"
#include "scheduler/engine/teams/namespace_use.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

class TeamQueue {
 public:
  TeamQueue(ClusterState& cluster, TeamRules& rules, const NamespaceUse& namespaces,
            const PreemptionState& reclaims)
      : cluster_(cluster), rules_(rules), namespaces_(namespaces), reclaims_(reclaims) {}

  // What quota said in this call goes to the pod's record. `allows_one`: there was a node that fits
  // and that quota does not refuse.
  void NoteQuotaRefusal(const RequestContext& context, PodRecord& record, bool allows_one,
                        Instant now);
  // By class, then by the lower share of what is borrowed, then who was evicted or waits longer.
  bool ComesFirst(const PodRecord& left, const PodRecord& right, Instant now) const;
  // Why quota keeps the pod waiting, and its place in the line; empty: it does not.
  std::string DescribeQuota(const RequestContext& context, const PodRecord& record, Instant now);

  std::set<PodUid> contenders;  // quota refused them; they wait for what others borrow
  std::set<std::pair<Instant, PodUid>> wakeups;  // when a budget will let the pod in

 private:
  ClusterState& cluster_;
  TeamRules& rules_;
  const NamespaceUse& namespaces_;
  const PreemptionState& reclaims_;
};

}  // namespace tranche
