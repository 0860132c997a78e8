#include "scheduler/engine/gangs/gang_members.h"

#include <algorithm>
#include <array>

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
