// Questions about the members of one gang, in the order of their ranks.
//
// Pure functions of what is known. Cost: O(members); the first that waits is found at once where
// the lower ranks have no place yet.
#pragma once

#include <string>
#include <vector>

#include "scheduler/engine/gangs/gang_seats.h"
#include "scheduler/engine/state/cluster_state.h"

namespace tranche {

MemberStanding StandingOf(const PodRecord& record);
// Those that could be seated, by ascending rank, those without one last. Valid until a pod goes.
using PodEntry = std::pair<const PodUid, PodRecord>;
std::vector<PodEntry*> WaitingMembers(ClusterState& cluster, const Gang& gang);
// The first of them; null: there is none.
const PodRecord* FirstWaiting(const ClusterState& cluster, const Gang& gang);
// Nodes its members have, one entry a member.
std::vector<NodeName> PlacesOf(const ClusterState& cluster, const Gang& gang);
// Do its counts say what its members are?
bool CountsHold(const Gang& gang, const ClusterState& cluster);

}  // namespace tranche
