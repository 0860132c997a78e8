#include "scheduler/engine/state/kept_room.h"

#include <algorithm>

namespace tranche {

bool IsLeaving(const PodRecord& record, Instant now) {
  return record.traits.leaves_at && now <= *record.traits.leaves_at + kLeaveSlack;
}

// What is kept for others while somebody they count on is still there would count twice once the
// pod's room is its own: once for them, once for those who leave.
RoomShares KeptRoom::SharesWith(const PodUid& uid) const {
  RoomShares shares;
  const auto pod = cluster_.pods.find(uid);
  if (pod == cluster_.pods.end() || pod->second.earmark == nullptr) return shares;
  const auto own = reclaims_.of_member.find(uid);
  if (own == reclaims_.of_member.end()) return shares;
  const Reclaim& of_pod = reclaims_.all.at(own->second);
  if (of_pod.gone() != of_pod.victims.size()) return shares;
  for (const auto& [name, run] : reclaims_.runs) {
    const Reclaim& reclaim = reclaims_.all.at(name);
    if (reclaim.phase == ReclaimPhase::kReserved || name == of_pod.name) continue;
    for (const ReclaimMember& member : reclaim.members) {
      shares.emplace_back(member.uid, member.node);
    }
  }
  return shares;
}

bool KeptRoom::IsReserved(const PodUid& uid, const NodeName& node) const {
  const auto own = reclaims_.of_member.find(uid);
  if (own == reclaims_.of_member.end()) return false;
  const Reclaim& reclaim = reclaims_.all.at(own->second);
  return reclaim.phase == ReclaimPhase::kReserved &&
         std::ranges::any_of(reclaim.members, [&](const ReclaimMember& member) {
           return member.uid == uid && member.node == node;
         });
}

NodeId KeptRoom::AwaitedNode(const PodUid& uid) const {
  if (reclaims_.nominated_until.contains(uid)) {
    return cluster_.names.Find(cluster_.Find(uid)->traits.nominated.str());
  }
  const auto found = reclaims_.of_member.find(uid);
  if (found == reclaims_.of_member.end()) return kNoNode;
  const Reclaim& reclaim = reclaims_.all.at(found->second);
  for (const ReclaimMember& member : reclaim.members) {
    if (member.uid == uid && !member.placed) return cluster_.names.Find(member.node.str());
  }
  return kNoNode;
}

}  // namespace tranche
