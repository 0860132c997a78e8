// What a pod's team may have: policy, class, quota and budget of a request.
//
// Quota is asked once per kind of node in a call, not once per node: nodes of one kind charge a
// request the same. Tentative placements are no use of quota: bind asks again (DESIGN section 1).
// Externally synchronised, as the state is. Cost: a look-up, and the lines of the team's quota.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/request_context.h"
#include "scheduler/engine/teams/namespace_use.h"

namespace tranche {

class TeamRules {
 public:
  TeamRules(ClusterState& cluster, const NamespaceUse& namespaces)
      : cluster_(cluster), namespaces_(namespaces) {}

  RequestContext ContextOf(const PodRequest& request);
  Reason Admit(const RequestContext& context, std::span<const ModelCharge> parts, Instant now,
               Admission& admission);
  // Before the first AskQuota of a question.
  void ForgetKindAnswers();
  // Good until the next call of either.
  const KindAnswer& AskQuota(const RequestContext& context, NodeId id, Instant now);
  // Nodes may be kept for a gang of that class and team (empty: none); not from work of a higher
  // class, nor from another team's work that is within its quota on that node.
  bool MayPassHold(const RequestContext& context, NodeId id, int rank, const std::string& leaf,
                   Instant now);
  // The kinds AskQuota was asked of since, and what it said, by kind.
  const std::vector<ChargeKind>& kinds_asked() const { return kinds_asked_; }
  const std::vector<KindAnswer>& kind_answers() const { return kind_answers_; }
  // The first refusal of what quota said in this call; empty: none.
  std::string DescribeQuotaAnswers(const RequestContext& context, Instant now);

  // What was cached of the policies in force. TrimPolicies does it when there is too much of it.
  void ForgetPolicies() { policy_of_namespace_.clear(); }
  void ForgetPolicyOf(const std::string& ns) { policy_of_namespace_.erase(ns); }
  void TrimPolicies();
  // Quota cannot be kept because the ledger cannot: what it would have to count is refused.
  void CloseLedger(bool closed) { ledger_closed_ = closed; }

 private:
  ClusterState& cluster_;
  const NamespaceUse& namespaces_;
  std::unordered_map<std::string, std::size_t> policy_of_namespace_;
  bool ledger_closed_ = false;
  std::vector<KindAnswer> kind_answers_;  // by kind, of the question at hand
  std::vector<ChargeKind> kinds_asked_;
};

}  // namespace tranche
