// Whether a pod of an AdviceCase may be on a node of it, and how it is placed there. Pure; cost
// O(classes), O(demands).
#pragma once

#include <string>

#include "scheduler/advice/case.h"
#include "scheduler/index/placement.h"

namespace tranche {

// `fleet` outlives the rules. `workload_class` may be empty.
PlaceRules RulesIn(const AdviceCase& fleet, const PodRequest& request,
                   const std::string& workload_class);
// By what it demands of nodes, and by the node's taints.
bool SuitsNode(const PodRequest& request, const AdviceNode& node);

}  // namespace tranche
