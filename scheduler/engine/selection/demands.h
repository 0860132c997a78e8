// Whether a node has what a pod's spec demands of it beside devices (facts/node_constraints.h).
//
// A pure function. Cost: O(terms of the spec), a look-up of a label each.
#pragma once

#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_request.h"

namespace tranche {

// Without any demand a pod still tolerates no taint.
inline bool MeetsDemands(const NodeFacts& facts, const PodRequest& request) {
  const NodeConstraints* const demands = request.constraints.get();
  if (demands == nullptr) return Tolerates({}, facts.taints);
  return Suits(*demands, facts.name.str(), facts.labels, facts.taints);
}

}  // namespace tranche
