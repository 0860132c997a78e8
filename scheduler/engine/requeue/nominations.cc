#include "scheduler/engine/requeue/nominations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "scheduler/engine/state/kept_room.h"
#include "topology/base/mark.h"
#include "topology/base/plant.h"

namespace tranche {

void Nominations::Note(const PodUid& uid, PodRecord& record, const NodeName& node, Instant now) {
  if (record.traits.nominated == node) return;
  End(uid, record, now);
  record.traits.nominated = node;
  if (node.empty() || reclaims_.of_member.contains(uid) || early_.IsTold(uid, node)) return;
  reclaims_.nominated[node].insert(uid);
  Keep(node, now);
}

// Only where somebody leaves: a nomination alone may say where the pod is about to be bound.
void Nominations::Keep(const NodeName& node, Instant now) {
  const auto waiting = reclaims_.nominated.find(node);
  const NodeId id = cluster_.names.Find(node.str());
  if (waiting == reclaims_.nominated.end() || id == kNoNode || cluster_.nodes[id] == nullptr)
    return;
  std::optional<Instant> last;
  const NodeState& state = cluster_.nodes[id]->state;
  for (const Holding& holding : state.holdings()) {
    const PodRecord* record = cluster_.Find(holding.uid);
    if (record == nullptr || !IsLeaving(*record, now)) continue;
    last = std::max(last.value_or(now), *record->traits.leaves_at);
  }
  if (!last || !state.present()) return;
  // Before everybody has been seen, the ledger may hold the pod's charge of a bind that was lost.
  if (!cluster_.cluster_complete && !TRANCHE_PLANTED(room_kept_before_all_is_seen)) return;
  for (const PodUid& uid : std::set<PodUid>(waiting->second)) {
    PodRecord* record = cluster_.Find(uid);
    if (record == nullptr || !cluster_.IsPending(*record) || record->earmark != nullptr) continue;
    const RequestContext context = rules_.ContextOf(*record->request);
    const Load load = cluster_.nodes[id]->state.LoadWithout([&](const PodUid& other) {
      const PodRecord* holder = cluster_.Find(other);
      return holder != nullptr && IsLeaving(*holder, now);
    });
    Worth worth;
    if (context.whole != Reason::kNone ||
        cluster_.scorer.Evaluate(RoomOf(state, load), *record->request, *context.policy, picks_,
                                 worth, context.sharing) != Reason::kNone) {
      continue;
    }
    Earmark earmark = earmarks_.EarmarkOf(id, *record->request, context.membership, picks_, now);
    // Devices alone: what quota says of a pod that kube-scheduler makes room for, bind will ask.
    earmark.work.parts.clear();
    reclaims_.nominated_until[uid] = *last + cluster_.options.reservation_ttl;
    earmarks_.PutEarmark(uid, *record, std::move(earmark), now);
  }
}

void Nominations::KeepAll(Instant now) {
  std::vector<NodeName> nodes;
  for (const auto& [node, pods] : reclaims_.nominated) nodes.push_back(node);
  for (const NodeName& node : nodes) Keep(node, now);
}

void Nominations::WithdrawUnexplained(Instant now) {
  for (const auto& [node, pods] : reclaims_.nominated) {
    const NodeId id = cluster_.names.Find(node.str());
    const bool known = id != kNoNode && cluster_.nodes[id] != nullptr;
    const bool room_comes =
        known && std::ranges::any_of(cluster_.nodes[id]->state.holdings(), [&](const Holding& one) {
          const PodRecord* holder = cluster_.Find(one.uid);
          return holder != nullptr && IsLeaving(*holder, now);
        });
    if (room_comes) continue;
    for (const PodUid& uid : pods) {
      const PodRecord* record = cluster_.Find(uid);
      if (record == nullptr || !cluster_.IsPending(*record) || record->earmark != nullptr ||
          reclaims_.of_member.contains(uid)) {
        continue;
      }
      // Where kube-scheduler evicts, it nominates too.
      if (rules_.ContextOf(*record->request).policy->actor != PreemptionActor::kPlanner) continue;
      TRANCHE_MARK(nomination_without_a_reason_taken_back);
      cluster_.outbox.reclaims().nominations.push_back({record->request->name, uid, NodeName()});
    }
  }
}

void Nominations::End(const PodUid& uid, PodRecord& record, Instant now) {
  if (record.traits.nominated.empty()) return;
  if (const auto waiting = reclaims_.nominated.find(record.traits.nominated);
      waiting != reclaims_.nominated.end()) {
    waiting->second.erase(uid);
    if (waiting->second.empty()) reclaims_.nominated.erase(waiting);
  }
  record.traits.nominated = NodeName();
  if (reclaims_.nominated_until.erase(uid) == 0) return;
  const NodeId id =
      record.earmark == nullptr ? kNoNode : cluster_.names.Find(record.earmark->node.str());
  earmarks_.DropEarmark(uid, record, now);
  if (id != kNoNode && cluster_.nodes[id] != nullptr) requeue_.NoteRoom(id, now);
}

}  // namespace tranche
