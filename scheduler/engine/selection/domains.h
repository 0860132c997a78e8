// The domains of the network that nodes lie in, and how far a node is from others of a gang.
// Reads the state. Cost: a label look-up a level.
#pragma once

#include <string>

#include "policy/spec.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/request_context.h"

namespace tranche {

// The node's domain of that level; empty: none is known.
std::string DomainOf(const ClusterState& cluster, NodeId id, GangLevel level,
                     const DomainLabels& labels);
// 0: in the same clique (or on the same node), 1: rack, ..., kGangLevels: none of these.
int DistanceTo(const ClusterState& cluster, const Neighbours& neighbours, NodeId id);

}  // namespace tranche
