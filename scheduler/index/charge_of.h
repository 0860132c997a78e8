// What a placement costs the team's quota, and what it would cost at most on a node.
//
// Over the pod's life, device by device: the larger of its app containers and sidecars together and
// any init container with the sidecars before it. Memory asked for alone is mirrored: compute is
// charged as much as memory (quota-model section 1). Pure; any thread; cost O(picks^2), a handful.
#pragma once

#include <string>
#include <vector>

#include "quota/tree/model_charge.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/index/inventory.h"
#include "scheduler/index/placement.h"

namespace tranche {

// The model a card is charged as: the node's, or the card's own where a node mixes them.
std::string ModelOf(const Inventory& inventory, const Card& card);

// Exact, by ascending name: the model, in its pool where that is metered. Devices the inventory
// cannot size count as whole GPUs: unknown is busy.
std::vector<ModelCharge> ChargeOfPicks(const Inventory& inventory, const PodRequest& request,
                                       const Picks& picks);

// Before devices are chosen: no placement of the request on this node is charged more, unless init
// containers cannot take up the devices of app containers. Empty: the node has no device of the
// kind. `out` is reused.
void ChargeAtMost(const Inventory& inventory, const PodRequest& request,
                  std::vector<ModelCharge>& out);

}  // namespace tranche
