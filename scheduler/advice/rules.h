// How a pod of an AdviceCase is placed on a node of it. Pure; cost O(classes).
#pragma once

#include <string>

#include "scheduler/advice/case.h"
#include "scheduler/index/placement.h"

namespace tranche {

// `fleet` outlives the rules. `workload_class` may be empty.
PlaceRules RulesIn(const AdviceCase& fleet, const PodRequest& request,
                   const std::string& workload_class);

}  // namespace tranche
