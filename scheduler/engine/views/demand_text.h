// What a pod's spec demands of a node and the node has not, in words.
//
// Pure: the same values give the same text. Any thread. Cost: O(terms of the spec).
#pragma once

#include <string>

#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"

namespace tranche {

// The first label that differs, or the taint that is not tolerated. Requires: `reason` is
// JudgeDemands' of the two, and not kNone.
std::string DescribeDemands(const NodeFacts& facts, const PodRequest& request, Reason reason);

}  // namespace tranche
