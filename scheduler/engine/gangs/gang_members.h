// Questions about the members of one gang, in the order of their ranks.
//
// Pure functions of what is known. Cost: O(members); the first that waits is found at once where
// the lower ranks have no place yet.
#pragma once

#include <string>
#include <vector>

#include "scheduler/engine/gangs/gang_seats.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/request_context.h"

namespace tranche {

MemberStanding StandingOf(const PodRecord& record);
// Those that could be seated, by ascending rank, those without one last. Valid until a pod goes.
using PodEntry = std::pair<const PodUid, PodRecord>;
std::vector<PodEntry*> WaitingMembers(ClusterState& cluster, const Gang& gang);
// The first of them; null: there is none.
const PodRecord* FirstWaiting(const ClusterState& cluster, const Gang& gang);
// Nodes its members have, one entry a member.
std::vector<NodeName> PlacesOf(const ClusterState& cluster, const Gang& gang);
// Where other pods of the gang are, for one of them that asks; false: nowhere.
bool NeighboursOf(const ClusterState& cluster, const Gang& gang, const PodRequest& request,
                  const GpuPolicy& policy, Neighbours& found);
// Do its counts say what its members are?
bool CountsHold(const Gang& gang, const ClusterState& cluster);

}  // namespace tranche
