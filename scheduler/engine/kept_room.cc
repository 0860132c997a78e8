// Room that is kept for the members of a plan, and for pods kube-scheduler makes room for itself.
#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/index/charge_of.h"

namespace tranche {

// What is kept for others while somebody they count on is still there would count twice once the
// pod's room is its own: once for them, once for those who leave.
RoomShares Engine::Impl::SharesWith(const PodUid& uid) const {
  RoomShares shares;
  const auto pod = pods.find(uid);
  if (pod == pods.end() || pod->second.earmark == nullptr) return shares;
  const auto own = reclaims.of_member.find(uid);
  if (own == reclaims.of_member.end()) return shares;
  const Reclaim& of_pod = reclaims.all.at(own->second);
  if (of_pod.gone() != of_pod.victims.size()) return shares;
  for (const auto& [name, run] : reclaims.runs) {
    const Reclaim& reclaim = reclaims.all.at(name);
    if (reclaim.phase == ReclaimPhase::kReserved || name == of_pod.name) continue;
    for (const ReclaimMember& member : reclaim.members) {
      shares.emplace_back(member.uid, member.node);
    }
  }
  return shares;
}

bool Engine::Impl::IsReserved(const PodUid& uid, const NodeName& node) const {
  const auto own = reclaims.of_member.find(uid);
  if (own == reclaims.of_member.end()) return false;
  const Reclaim& reclaim = reclaims.all.at(own->second);
  return reclaim.phase == ReclaimPhase::kReserved &&
         std::ranges::any_of(reclaim.members, [&](const ReclaimMember& member) {
           return member.uid == uid && member.node == node;
         });
}

bool Engine::Impl::Reearmark(Reclaim& reclaim, Instant now) {
  for (const ReclaimMember& member : std::vector<ReclaimMember>(reclaim.members)) {
    PodRecord* record = Find(member.uid);
    const bool lives = record != nullptr && !record->terminal && !record->traits.leaves_at;
    if (!lives) return false;
    if (record->earmark != nullptr) continue;
    if (!record->Place().empty()) {
      NoteMemberPlaced(member.uid, record->Place(), now);
      if (reclaim.finished()) return true;
      continue;
    }
    const NodeId id = names.Find(member.node.str());
    if (id == kNoNode || nodes[id] == nullptr || !nodes[id]->state.present()) return false;
    const RequestContext context = ContextOf(*record->request);
    if (!MayPlan(context)) return false;
    const NodeState& state = nodes[id]->state;
    const Load load = state.LoadWithout([&](const PodUid& uid) {
      const PodRecord* other = Find(uid);
      return reclaims.of_victim.contains(uid) || (other != nullptr && IsLeaving(*other, now));
    });
    Worth worth;
    if (scorer.Evaluate(RoomOf(state, load), *record->request, *context.policy, picks, worth,
                        context.sharing) != Reason::kNone) {
      return false;
    }
    PutEarmark(member.uid, *record, EarmarkOf(id, *record->request, context.standing, picks, now),
               now);
  }
  return true;
}

void Engine::Impl::NoteNominated(const PodUid& uid, PodRecord& record, const NodeName& node,
                                 Instant now) {
  if (record.traits.nominated == node) return;
  EndNominated(uid, record, now);
  record.traits.nominated = node;
  if (node.empty() || reclaims.of_member.contains(uid)) return;
  reclaims.nominated[node].insert(uid);
  KeepNominated(node, now);
}

// Only where somebody leaves: a nomination alone may say where the pod is about to be bound.
void Engine::Impl::KeepNominated(const NodeName& node, Instant now) {
  const auto waiting = reclaims.nominated.find(node);
  const NodeId id = names.Find(node.str());
  if (waiting == reclaims.nominated.end() || id == kNoNode || nodes[id] == nullptr) return;
  std::optional<Instant> last;
  const NodeState& state = nodes[id]->state;
  for (const Holding& holding : state.holdings()) {
    const PodRecord* record = Find(holding.uid);
    if (record == nullptr || !IsLeaving(*record, now)) continue;
    last = std::max(last.value_or(now), *record->traits.leaves_at);
  }
  if (!last || !state.present()) return;
  for (const PodUid& uid : std::set<PodUid>(waiting->second)) {
    PodRecord* record = Find(uid);
    if (record == nullptr || !IsPending(*record) || record->earmark != nullptr) continue;
    const RequestContext context = ContextOf(*record->request);
    const Load load = nodes[id]->state.LoadWithout([&](const PodUid& other) {
      const PodRecord* holder = Find(other);
      return holder != nullptr && IsLeaving(*holder, now);
    });
    Worth worth;
    if (context.whole != Reason::kNone ||
        scorer.Evaluate(RoomOf(state, load), *record->request, *context.policy, picks, worth,
                        context.sharing) != Reason::kNone) {
      continue;
    }
    Earmark earmark = EarmarkOf(id, *record->request, context.standing, picks, now);
    // Devices alone: what quota says of a pod that kube-scheduler makes room for, bind will ask.
    earmark.work.parts.clear();
    reclaims.nominated_until[uid] = *last + options.reservation_ttl;
    PutEarmark(uid, *record, std::move(earmark), now);
  }
}

void Engine::Impl::EndNominated(const PodUid& uid, PodRecord& record, Instant now) {
  if (record.traits.nominated.empty()) return;
  if (const auto waiting = reclaims.nominated.find(record.traits.nominated);
      waiting != reclaims.nominated.end()) {
    waiting->second.erase(uid);
    if (waiting->second.empty()) reclaims.nominated.erase(waiting);
  }
  record.traits.nominated = NodeName();
  if (reclaims.nominated_until.erase(uid) == 0 || record.earmark == nullptr) return;
  const NodeId id = names.Find(record.earmark->node.str());
  DropEarmark(uid, record, now);
  if (id != kNoNode && nodes[id] != nullptr) NoteRoom(id, now);
}

NodeId Engine::Impl::AwaitedNode(const PodUid& uid) {
  if (reclaims.nominated_until.contains(uid)) {
    return names.Find(Find(uid)->traits.nominated.str());
  }
  const auto found = reclaims.of_member.find(uid);
  if (found == reclaims.of_member.end()) return kNoNode;
  const Reclaim& reclaim = reclaims.all.at(found->second);
  for (const ReclaimMember& member : reclaim.members) {
    if (member.uid == uid && !member.placed) return names.Find(member.node.str());
  }
  return kNoNode;
}

}  // namespace tranche
