#include "scheduler/engine/gangs/gang_members.h"

#include <algorithm>
#include <array>

#include "scheduler/engine/selection/domains.h"
#include "scheduler/index/card_sets.h"

namespace tranche {
namespace {

bool CouldBeSeated(const PodRecord& record) {
  return ClusterState::IsPending(record) && !record.traits.gated && !record.traits.leaves_at &&
         record.earmark == nullptr;
}

}  // namespace

MemberStanding StandingOf(const PodRecord& record) {
  if (record.traits.leaves_at) return MemberStanding::kNone;
  if (!record.node.empty()) return MemberStanding::kBound;
  if (!record.reserved.empty()) return MemberStanding::kPlaced;
  if (!record.traits.gated) return MemberStanding::kWaiting;
  return record.traits.foreign_gates ? MemberStanding::kNone : MemberStanding::kGated;
}

std::vector<PodEntry*> WaitingMembers(ClusterState& cluster, const Gang& gang) {
  std::vector<PodEntry*> waiting;
  waiting.reserve(gang.by_rank.size());
  for (const auto& [rank, uid] : gang.by_rank) {
    PodEntry& entry = *cluster.pods.find(uid);
    if (CouldBeSeated(entry.second)) waiting.push_back(&entry);
  }
  return waiting;
}

const PodRecord* FirstWaiting(const ClusterState& cluster, const Gang& gang) {
  for (const auto& [rank, uid] : gang.by_rank) {
    const PodRecord& record = cluster.pods.at(uid);
    if (CouldBeSeated(record)) return &record;
  }
  return nullptr;
}

std::vector<NodeName> PlacesOf(const ClusterState& cluster, const Gang& gang) {
  std::vector<NodeName> places;
  const auto waiting =
      static_cast<std::size_t>(gang.standing[static_cast<std::size_t>(MemberStanding::kWaiting)]);
  if (waiting == gang.members.size()) return places;
  for (const PodUid& uid : gang.members) {
    const NodeName& place = cluster.pods.at(uid).Place();
    if (!place.empty()) places.push_back(place);
  }
  return places;
}

bool NeighboursOf(const ClusterState& cluster, const Gang& gang, const PodRequest& request,
                  const GpuPolicy& policy, Neighbours& found) {
  found.labels = &policy.domains;
  if (request.gang_within) found.within = static_cast<int>(*request.gang_within);
  if (WishOf(request, policy) == TopologyWish::kRequired && gang.started) {
    found.within = static_cast<int>(GangLevel::kClique);
  }
  for (const PodUid& uid : gang.members) {
    const NodeName& node = cluster.pods.at(uid).Place();
    const NodeId id = node.empty() ? kNoNode : cluster.names.Find(node.str());
    if (id == kNoNode || cluster.nodes[id] == nullptr || !cluster.nodes[id]->state.present())
      continue;
    for (std::size_t level = 0; level < kGangLevels; ++level) {
      found.domain[level] = DomainOf(cluster, id, static_cast<GangLevel>(level), policy.domains);
    }
    return true;
  }
  return false;
}

bool CountsHold(const Gang& gang, const ClusterState& cluster) {
  std::array<int, static_cast<std::size_t>(MemberStanding::kCount)> standing{};
  int size = kGangOfAll;
  for (const PodUid& uid : gang.members) {
    const PodRecord& record = cluster.pods.at(uid);
    ++standing[static_cast<std::size_t>(StandingOf(record))];
    size = std::max(size, record.request->gang_size);
  }
  const int counted = gang.sizes.empty() ? kGangOfAll : gang.sizes.rbegin()->first;
  const auto waiting =
      static_cast<std::size_t>(standing[static_cast<std::size_t>(MemberStanding::kWaiting)]);
  return standing == gang.standing && size == counted &&
         gang.by_rank.size() == gang.members.size() && gang.waits_since.size() == waiting;
}

}  // namespace tranche
