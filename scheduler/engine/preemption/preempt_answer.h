// The preempt verb: what kube-scheduler would evict, held to the rules (quota-model section 7,
// kube-scheduler-extender 3.5).
//
// Externally synchronised, as the state is. Cost: a search on each candidate node.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/engine/preemption/awaited_nodes.h"
#include "scheduler/engine/preemption/reclaim_case.h"
#include "scheduler/engine/state/answers.h"

namespace tranche {

class PreemptAnswer {
 public:
  PreemptAnswer(const PlanParts& parts, TeamRules& rules, const AwaitedNodes& awaited)
      : parts_(parts),
        cluster_(parts.cluster),
        reclaims_(parts.reclaims),
        rules_(rules),
        awaited_(awaited) {}

  // Of the candidates, those where evicting helps and the rules allow it; see Engine::Preempt.
  std::vector<PreemptNode> Of(const PodRequest& request, std::span<const PreemptNode> candidates,
                              Instant now);

 private:
  std::optional<std::vector<PodUid>> NeededOf(const RequestContext& context, NodeId id,
                                              std::span<const PodUid> victims);
  int64_t PlainViolations(const PreemptNode& candidate, std::span<const PodUid> victims) const;
  int64_t CountViolations(std::span<const PodUid> victims) const;
  std::vector<PodUid> InOrder(std::span<const PodUid> named, std::span<const PodUid> needed);

  PlanParts parts_;
  ClusterState& cluster_;
  const PreemptionState& reclaims_;
  TeamRules& rules_;
  const AwaitedNodes& awaited_;
  Picks picks_;
};

}  // namespace tranche
