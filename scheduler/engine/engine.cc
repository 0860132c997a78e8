// Books and events. Choosing is in filter.cc, binding in bind.cc.
#include "scheduler/engine/engine.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/engine/shape.h"
#include "scheduler/index/charge_of.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

// Records that only filter calls made are kept for explain while the scheduler may be retrying
// (it flushes at five minutes), and bounded: a stopped clock ends nothing, and anyone may call.
constexpr std::size_t kMaxUnseen = 10'000;
constexpr Millis kUnseenLifetime{600'000};
// Pods without GPUs that passed by, remembered until their bind.
constexpr std::size_t kMaxPlain = 10'000;

// Namespaces whose policy is remembered; questions may name any.
constexpr std::size_t kMostNamespaces = 20'000;

bool SameRequest(const PodRequest& left, const PodRequest& right) {
  std::string left_shape, right_shape;
  AppendShape(left, left_shape);
  AppendShape(right, right_shape);
  return left_shape == right_shape && left.gang == right.gang &&
         left.gang_size == right.gang_size && left.gang_rank == right.gang_rank &&
         left.gang_within == right.gang_within;
}

}  // namespace

Engine::Engine(EngineOptions options) : impl_(std::make_unique<Impl>(options)) {}
Engine::~Engine() = default;

void Engine::Impl::Erase(const PodUid& uid) {
  contenders.erase(uid);
  ForgetHungry(uid);
  GateKeeper(*this).Forget(uid);
  ErasePod(uid);
}

void Engine::Impl::ReleaseOn(const NodeName& node, const PodUid& uid, Instant now) {
  const NodeId id = names.Find(node.str());
  if (id == kNoNode) return NoteCapRelease(uid, now);
  nodes[id]->state.Release(uid);
  Refresh(id, now);
  NoteRoom(id, now);
  NoteCapRelease(uid, now);
}

void Engine::Impl::DropReservation(const PodUid& uid, PodRecord& record, Instant now) {
  if (record.reserved.empty()) return;
  // Never bound there: nothing was used, however long it took to find out.
  Close(uid, record, MeterKind::kVoid, now);
  const NodeName node = std::exchange(record.reserved, NodeName());
  record.writing = false;
  reservations.erase({record.reserved_since, uid});
  if (placeholders.EndWait(uid)) outbox.agents().keeper_turns.push_back({uid, false});
  if (!record.seen) unseen.emplace_back(latest, uid);
  NotePending(uid, record);
  ReleaseOn(node, uid, now);
  // The room that was made for it stays its own.
  if (const auto reclaim = reclaims.of_member.find(uid); reclaim != reclaims.of_member.end()) {
    Reearmark(reclaims.all.at(reclaim->second), now);
  }
}

void Engine::Impl::ForgetOldest() {
  while (!unseen.empty()) {
    const auto [since, uid] = unseen.front();
    PodRecord* record = Find(uid);
    const bool only_filtered = record != nullptr && !record->seen && record->reserved.empty();
    const bool recent = latest - since < kUnseenLifetime || (record && record->claimed != kNoNode);
    if (only_filtered && recent && unseen.size() <= kMaxUnseen) break;
    unseen.pop_front();
    if (!only_filtered) continue;
    DropClaim(uid, *record, latest);
    LeaveGang(uid, *record, latest);
    Erase(uid);
  }
  while (plain_order.size() > kMaxPlain) {
    plain.erase(plain_order.front());
    plain_order.pop_front();
  }
}

void Engine::Impl::Advance(Instant now) {
  if (policy_of_namespace.size() > kMostNamespaces) policy_of_namespace.clear();
  book.TrimRoutes();
  const bool moved = now > latest;
  latest = std::max(latest, now);
  agents.Advance(now);
  if (moved && book.Advance(now, outbox.closings())) {
    ForgetTeams();
    NoteChange();
    PokeAdmitted(now);
  }
  while (!wakeups.empty() && wakeups.begin()->first <= now) {
    const PodUid uid = wakeups.begin()->second;
    wakeups.erase(wakeups.begin());
    PokeIfFits(uid, now);
  }
  while (!claim_queue.empty() && std::get<0>(claim_queue.front()) <= now) {
    const auto [end, uid, serial] = claim_queue.front();
    claim_queue.pop_front();
    PodRecord* record = Find(uid);
    if (record == nullptr || record->claim_serial != serial) continue;
    DropClaim(uid, *record, now);
  }
  while (!reopenings.empty() && reopenings.begin()->first <= now) {
    const NodeId id = reopenings.begin()->second;
    reopenings.erase(reopenings.begin());
    if (id >= nodes.size() || nodes[id] == nullptr) continue;
    Refresh(id, now);
    NoteReopened(id, now);
  }
}

// ---- events -----------------------------------------------------------------------------------

void Engine::UpsertNode(NodeFacts node, Instant now) {
  impl_->Advance(now);
  impl_->overlay.AddTo(node);
  const NodeId id = impl_->InternNode(node.name);
  NodeEntry& entry = *impl_->nodes[id];
  const bool had_devices = entry.state.present() && entry.state.inventory().has_devices();
  // Heartbeats change nothing we look at, and laying out MIG again would cost.
  if (entry.state.present() && entry.state.facts() == node) return;
  const bool same_node = entry.state.present() && entry.state.facts().uid == node.uid;
  const std::optional<Instant> lost_since = node.lost_since;
  impl_->CountCards(entry, -1);
  entry.state.SetPlainCpu(impl_->plain_seen.On(node.name));
  entry.state.SetFacts(std::move(node), impl_->default_policy().hami_minor, &impl_->machines);
  impl_->CountCards(entry, 1);
  entry.kind = impl_->KindOf(entry.state.inventory());
  if (!lost_since && entry.lost_since) impl_->EndOutage(id, now);
  if (lost_since && !entry.lost_since) entry.lost_since = std::min(*lost_since, now);
  const bool has_devices = entry.state.inventory().has_devices();
  if (had_devices && !has_devices && same_node) entry.vanished = true;
  if (entry.vanished && has_devices) {
    TRANCHE_MARK(node_devices_came_back);
    entry.vanished = false;
    entry.stable_at = now + impl_->options.unstable_for;
    impl_->reopenings.emplace(*entry.stable_at, id);
  }
  impl_->Refresh(id, now);
  impl_->NoteCapUse(id);
  impl_->OpenUncharged(id, now);
  impl_->NoteRoom(id, now);
}

void Engine::DeleteNode(const NodeName& name, Instant now) {
  impl_->Advance(now);
  const NodeId id = impl_->names.Find(name.str());
  if (id == kNoNode) return;
  NodeEntry& entry = *impl_->nodes[id];
  // Claims do not outlive their node; allocations and reservations do, as ghosts.
  std::vector<PodUid> claimed;
  for (const Holding& holding : entry.state.holdings()) {
    if (holding.kind == HoldingKind::kClaim) claimed.push_back(holding.uid);
  }
  impl_->CountCards(entry, -1);
  entry.state.SetFacts(std::nullopt, 0);
  impl_->agents.Close(name);
  entry.vanished = false;
  entry.stable_at.reset();
  for (const PodUid& uid : claimed) {
    if (PodRecord* record = impl_->Find(uid)) impl_->DropClaim(uid, *record, now);
  }
  if (impl_->nodes[id] != nullptr) impl_->Refresh(id, now);
}

void Engine::UpsertPod(PodFacts pod, Instant now) {
  impl_->Advance(now);
  const PodUid uid = pod.request.uid;
  if (uid.empty()) return;
  if (pod.keeper) return impl_->UpsertKeeper(std::move(pod), now);
  PodRecord* known = impl_->Find(uid);
  const bool ended = pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
  DraDesk(*impl_).NotePod(pod, ended, now);
  if (known == nullptr && !pod.request.asks_gpu()) return impl_->UpsertPlain(pod, ended, now);
  // Of one that ended before we looked only the ledger may want to know.
  if (known == nullptr && ended && !impl_->unclaimed.contains(uid)) return;
  PodRecord& record = known != nullptr ? *known : impl_->Touch(pod.request);
  record.seen = true;
  if (record.terminal) {
    if (pod.progress != AgentProgress::kWaiting) impl_->agents.Leave(uid, now);
    return;
  }
  if (pod.created) record.waits_since = *pod.created;
  impl_->JoinGang(uid, record, now);
  impl_->NoteTraits(uid, record, pod, now);
  GateKeeper(*impl_).Note(uid, record);
  if (ended) return impl_->EndPod(record, pod, now);
  const bool bound = !record.node.empty() || !record.reserved.empty();
  if (!bound && known != nullptr && !SameRequest(*record.request, pod.request)) {
    impl_->DropClaim(uid, record, now);
    record.request = std::make_shared<const PodRequest>(std::move(pod.request));
  }
  // An object without node may be older than the bind we know of: a pod is never unbound again.
  if (pod.node.empty()) {
    impl_->NoteDemand(record, now);
    impl_->NotePending(uid, record);
  } else if (pod.node == record.node) {
    impl_->NoteRunning(uid, pod);
    impl_->FollowAgent(uid, record, pod, now);
  } else {
    impl_->PlacePod(record, pod, now);
  }
  impl_->JoinGang(uid, record, now);
}

void Engine::Impl::UpsertPlain(const PodFacts& pod, bool ended, Instant now) {
  const PodUid& uid = pod.request.uid;
  NotePlainMember(pod.request, !ended && !pod.terminating);
  if (!ended) {
    if (plain_seen.Put(uid, pod.node, pod.request.cpu)) NotePlainCpu(pod.node, now);
  } else if (const NodeName node = plain_seen.Remove(uid); !node.empty()) {
    NotePlainCpu(node, now);
  }
}

void Engine::Impl::EndPod(PodRecord& record, const PodFacts& pod, Instant now) {
  const PodUid uid = record.request->uid;
  EndDemand(record, now);
  record.ended_at = std::min(pod.finished_at.value_or(now), now);
  DropClaim(uid, record, now);
  // A pod that ended on the node it was reserved on has used it.
  if (record.reserved == pod.node) Close(uid, record, MeterKind::kClose, *record.ended_at);
  DropReservation(uid, record, now);
  if (!record.node.empty()) {
    Close(uid, record, MeterKind::kClose, *record.ended_at);
    ReleaseOn(record.node, uid, now);
  }
  EndAgent(uid, record, pod, now);
  LeaveGang(uid, record, now);
  contenders.erase(uid);
  pending.erase(uid);
  GateKeeper(*this).Forget(uid);
  if (pod.refused_by_kubelet && !pod.node.empty()) NoteRefusal(pod.node, now);
  record.terminal = true;
  record.node = NodeName();
  // Only the name is needed from here on.
  auto name_only = std::make_shared<PodRequest>();
  name_only->uid = uid;
  name_only->name = record.request->name;
  record.request = std::move(name_only);
  NoteVictimGone(uid, now);
  NoteMemberGone(uid, now);
}

void Engine::Impl::PlacePod(PodRecord& record, PodFacts& pod, Instant now) {
  const PodUid uid = record.request->uid;
  DropClaim(uid, record, now);
  if (record.reserved == pod.node) {
    // The proof of our own bind: what was opened then goes on.
    placeholders.EndWait(uid);
    reservations.erase({record.reserved_since, uid});
    record.reserved = NodeName();
    record.writing = false;
  } else {
    if (!record.reserved.empty()) TRANCHE_MARK(pod_seen_elsewhere_than_reserved);
    agents.Leave(uid, now);
  }
  DropReservation(uid, record, now);
  if (!record.node.empty()) {
    Close(uid, record, MeterKind::kClose, now);
    ReleaseOn(record.node, uid, now);
  }
  record.node = pod.node;
  record.held_since = pod.bound_at ? pod.bound_at : pod.started_at ? pod.started_at : pod.created;
  record.filtered = false;
  contenders.erase(uid);
  pending.erase(uid);
  NoteDemand(record, now);
  const NodeId id = InternNode(pod.node);
  Holding holding;
  holding.uid = uid;
  holding.kind = HoldingKind::kAllocation;
  holding.request = record.request;
  holding.allocation = std::move(pod.allocation);
  nodes[id]->state.Hold(std::move(holding));
  Refresh(id, now);
  NoteCapUse(id);
  Open(uid, record, id, std::min(record.held_since.value_or(now), now), false, !record.held_since);
  NoteRunning(uid, pod);
  FollowAgent(uid, record, pod, now);
  NoteMemberPlaced(uid, pod.node, now);
}

void Engine::DeletePod(const PodUid& uid, Instant now) {
  impl_->Advance(now);
  DraDesk(*impl_).ForgetPod(uid);
  if (impl_->DropKeeper(uid, now)) return;
  if (const NodeName node = impl_->plain_seen.Remove(uid); !node.empty()) {
    impl_->NotePlainCpu(node, now);
  }
  if (impl_->gangs.of_plain.contains(uid)) {
    PodRequest gone;
    gone.uid = uid;
    impl_->NotePlainMember(gone, false);
  }
  PodRecord* record = impl_->Find(uid);
  if (record == nullptr) return;
  impl_->EndDemand(*record, now);
  impl_->DropClaim(uid, *record, now);
  impl_->DropReservation(uid, *record, now);
  if (!record->node.empty()) {
    impl_->Close(uid, *record, MeterKind::kClose, now);
    impl_->ReleaseOn(record->node, uid, now);
  }
  impl_->NoteVictimGone(uid, now);
  impl_->NoteMemberGone(uid, now);
  impl_->LeaveGang(uid, *record, now);
  impl_->agents.Leave(uid, now);
  impl_->Erase(uid);
}

Effects& Engine::effects() {
  AgentWork& work = impl_->outbox.agents();
  const auto move_to_end = [](auto&& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move_to_end(impl_->agents.TakeTurns(), work.turns);
  move_to_end(std::exchange(work.keeper_turns, {}), work.turns);
  move_to_end(impl_->placeholders.books().TakeEnds(), work.keeper_ends);
  return impl_->outbox.effects();
}

std::optional<Instant> Engine::Tick(Instant now) {
  impl_->Advance(now);
  impl_->ForgetOldest();
  std::optional<Instant> next;
  if (!impl_->claim_queue.empty()) next = std::get<0>(impl_->claim_queue.front());
  if (!impl_->reopenings.empty()) {
    const Instant reopening = impl_->reopenings.begin()->first;
    next = next ? std::min(*next, reopening) : reopening;
  }
  if (!impl_->wakeups.empty()) {
    const Instant wakeup = impl_->wakeups.begin()->first;
    next = next ? std::min(*next, wakeup) : wakeup;
  }
  impl_->TendReclaims(now);
  impl_->TendGangs(now);
  GateKeeper(*impl_).Tend(now);
  DraDesk(*impl_).Tend(now);
  for (const auto& due :
       {impl_->book.NextChange(now), impl_->ReclaimsDue(now), impl_->HungryAt(now),
        impl_->ReleaseAt(now), impl_->GangsDue(now), impl_->agents.Due(), DraDesk(*impl_).Due()}) {
    if (due) next = next ? std::min(*next, *due) : due;
  }
  return next;
}

}  // namespace tranche
