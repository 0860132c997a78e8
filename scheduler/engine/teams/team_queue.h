// Pods that quota refused, and who of them comes first.
//
// Externally synchronised, as the state is. Cost: O(1) to note a refusal; DescribeQuota O(pods that
// quota refused).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/preemption_state.h"
#include "scheduler/engine/state/request_context.h"
#include "scheduler/engine/teams/namespace_use.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

// What a waiting pod is ordered by.
struct TeamTurn {
  int rank = 0;
  QuotaId leaf = kNoQuota;
  bool returned = false;
  Instant since;
  PodUid uid;
};

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
  TeamTurn TurnOf(const PodRecord& record) const;
  static bool ComesFirst(const TeamTurn& left, const TeamTurn& right, QuotaBook::Shares& shares);
  // Why quota keeps the pod waiting, and its place in the line; empty: it does not.
  std::string DescribeQuota(const RequestContext& context, const PodRecord& record, Instant now);

  // When a budget will let the pod in; nullopt, or a moment that is over: nothing is waited for.
  void WakeAt(const PodUid& uid, std::optional<Instant> when, Instant now);
  // The first whose moment has come; nullopt: none.
  std::optional<PodUid> TakeAwake(Instant now);
  std::optional<Instant> NextWake() const;
  // The pod is no more.
  void Forget(const PodUid& uid);
  std::size_t wakeups() const { return wakeups_.size(); }

  std::set<PodUid> contenders;  // quota refused them; they wait for what others borrow

 private:
  ClusterState& cluster_;
  TeamRules& rules_;
  const NamespaceUse& namespaces_;
  const PreemptionState& reclaims_;
  std::set<std::pair<Instant, PodUid>> wakeups_;
  std::unordered_map<PodUid, Instant> wakes_at_;  // the one entry of each
};

// Waiting pods in the order of TeamQueue::ComesFirst, one by one. Good until anything changes.
// Cost: O(pods) to make, O(log pods) for each that is asked for; a leaf is looked at once.
class TeamLine {
 public:
  TeamLine(const ClusterState& cluster, const TeamQueue& queue, const std::vector<PodUid>& pods,
           Instant now);
  // nullopt: that were all.
  std::optional<PodUid> Next();

 private:
  auto After() {
    return [this](const TeamTurn& left, const TeamTurn& right) {
      return TeamQueue::ComesFirst(right, left, shares_);
    };
  }

  QuotaBook::Shares shares_;
  std::vector<TeamTurn> heap_;
};

}  // namespace tranche
