// Whether a node has what a pod's spec demands of it beside devices (facts/node_constraints.h).
//
// Pure functions. Cost: O(terms of the spec), a look-up of a label each.
#pragma once

#include <vector>

#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"

namespace tranche {

// The taint of the node that keeps the pod away; nullptr: none does. Without any demand a pod still
// tolerates no taint.
inline const Taint* TaintAgainst(const NodeFacts& facts, const PodRequest& request) {
  static const std::vector<Toleration> kNoTolerations;
  const NodeConstraints* const demands = request.constraints.get();
  return FirstUntolerated(demands == nullptr ? kNoTolerations : demands->tolerations, facts.taints);
}

// kNone, kNotSelected or kTainted.
inline Reason JudgeDemands(const NodeFacts& facts, const PodRequest& request) {
  const NodeConstraints* const demands = request.constraints.get();
  if (demands != nullptr && !Selects(*demands, facts.name.str(), facts.labels))
    return Reason::kNotSelected;
  return TaintAgainst(facts, request) == nullptr ? Reason::kNone : Reason::kTainted;
}

inline bool MeetsDemands(const NodeFacts& facts, const PodRequest& request) {
  return JudgeDemands(facts, request) == Reason::kNone;
}

}  // namespace tranche
