// Which cards a request may use at all, and what on a node rules it out whatever its load.
#pragma once

#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"
#include "scheduler/index/inventory.h"
#include "scheduler/index/load.h"
#include "scheduler/index/placement.h"

namespace tranche {

// The card's product is among those the pod accepts.
bool MatchesModels(const PodRequest& request, const Card& card);
// The card is among those the pod selects by UUID and mode. Cut cards serve shares alone: who asks
// for a whole card expects one that is not cut.
bool IsSelected(const PodRequest& request, const Ask& ask, const Card& card);
// The card is of the kind that serves the ask (cards cut by MIG never are: pools serve for them).
bool IsRightKind(const Inventory& inventory, const Ask& ask, const Card& card);

// The most fundamental thing in the way; kNone when only room on single cards is left to check.
// kNoRoom: kubelet's own counts leave too little. `rules`: policy and sharing are read.
Reason Obstacle(const Inventory& inventory, const Load& load, const PodRequest& request,
                const PlaceRules& rules);

}  // namespace tranche
