// Which pods of a ReplicaSet free the most when they go, as costs by which Kubernetes takes them
// away at a scale-down: the lower first (annotation controller.kubernetes.io/pod-deletion-cost).
//
//   -1000  it was asked to leave
//    -500  its node takes no new pods, or is one of those to be emptied next (PlanConsolidation)
//    -300  half or less of its node is used, by pods of this ReplicaSet alone
//    -200  half or less of its node is used
//     -20  beside: it is borrowed
//     -10  beside: nobody else uses its GPUs, so that whole ones are free
//
// Pods of which none of it is true cost nothing, which is what a pod without the annotation costs.
// Of a ReplicaSet with a pod whose cost somebody else wrote nothing is said: numbers of two hands
// do not compare. Pure, deterministic. Cost: O(pods log pods), and that of PlanConsolidation where
// there is a ReplicaSet to judge.
// Source: kubernetes pkg/controller/controller_utils.go (ActivePodsWithRanks), KEP-2255.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/advice/case.h"

namespace tranche {

struct CostChange {
  PodName pod;
  PodUid uid;
  DeletionCostMark had;
  std::optional<int32_t> cost;  // nullopt: none, the annotation goes
  friend bool operator==(const CostChange&, const CostChange&) = default;
};

struct ReplicaSetCosts {
  std::string replica_set;  // uid
  std::vector<CostChange> changes;
  friend bool operator==(const ReplicaSetCosts&, const ReplicaSetCosts&) = default;
};

// The ReplicaSets whose pods would not go in that order now, ascending uid, and what would mend it,
// the lowest cost first. Where the order is right already, its numbers are nobody's concern.
std::vector<ReplicaSetCosts> PlanDeletionCosts(const AdviceCase& fleet);

// All costs that are ours, to be taken back.
std::vector<CostChange> OurDeletionCosts(const AdviceCase& fleet);

}  // namespace tranche
