// Books and events. Choosing is in filter.cc, binding in bind.cc.
#include "scheduler/engine/engine.h"

#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/engine/shape.h"
#include "scheduler/index/charge_of.h"

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

// Hazard 13: a kubelet that refuses three GPU pods in five minutes gets none for five minutes,
// doubling up to an hour.
constexpr std::size_t kRefusals = 3;
constexpr Millis kRefusalWindow{300'000};
constexpr Millis kRefusalPause{300'000};
constexpr int kMaxDoublings = 4;
constexpr Millis kRefusalPauseMost{3'600'000};

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

// ---- books ------------------------------------------------------------------------------------

NodeId Engine::Impl::InternNode(const NodeName& name) {
  const NodeId id = names.Intern(name);
  if (id >= nodes.size()) {
    nodes.resize(id + 1);
    hot.resize(id + 1);
  }
  if (nodes[id] == nullptr) {
    nodes[id] = std::make_unique<NodeEntry>();
    nodes[id]->state.SetEpoch(options.epoch);
    nodes[id]->state.AllowKeepers(options.keepers);
    hot[id] = NodeHot{};
  }
  return id;
}

Reason Engine::Impl::ClosedReason(const NodeEntry& entry, Instant now) const {
  if (!entry.state.present()) return Reason::kUnknownNode;
  const NodeFacts& facts = entry.state.facts();
  if (!facts.ready) return Reason::kNodeNotReady;
  if (facts.cordoned) return Reason::kNodeCordoned;
  if (!facts.operator_busy.empty() || !entry.held.empty()) return Reason::kOperatorBusy;
  if (!entry.unkept.empty()) return Reason::kDevicesUnknown;
  if (entry.stable_at && now < *entry.stable_at) return Reason::kNodeUnstable;
  if (entry.refusing_until && now < *entry.refusing_until) return Reason::kNodeRefusing;
  // Where DRA alone serves, claims name the devices.
  const bool by_dra =
      !entry.state.inventory().has_devices() && dra_books.catalog.MayHaveDevices(facts.name.str());
  if (entry.state.hard().devices_unknown && !by_dra) return Reason::kDevicesUnknown;
  return Reason::kNone;
}

void Engine::Impl::Refresh(NodeId id, Instant now) {
  dra_books.scores.Outdate(id);
  NodeEntry& entry = *nodes[id];
  if (!entry.state.present() && entry.state.holdings().empty()) {
    scorer.SetNode(id, {});
    states.Release(entry.hard);
    states.Release(entry.soft);
    nodes[id] = nullptr;
    hot[id] = NodeHot{};
    names.Forget(id);
    return;
  }
  TendKeepers(id, now);
  if (!entry.state.inventory().zones.empty()) FollowZones(id, now);
  entry.state.Signature(entry.state.hard(), text);
  const StateId hard = states.Acquire(text);
  if (entry.state.has_claims()) entry.state.Signature(entry.state.soft(), text);
  const StateId soft = states.Acquire(text);
  states.Release(entry.hard);
  states.Release(entry.soft);
  entry.hard = hard;
  entry.soft = soft;
  entry.closed = ClosedReason(entry, now);
  const bool changed = hot[id].hard != hard || hot[id].closed != entry.closed;
  reclaims.version += changed;
  if (changed) {
    const bool counts = entry.closed == Reason::kNone && entry.state.inventory().has_devices();
    scorer.SetNode(id, counts ? RoomOf(entry.state, entry.state.hard()) : NodeRoom{});
  }
  hot[id] = {hard, soft, entry.closed, entry.kind};
}

void Engine::Impl::NotePlainCpu(const NodeName& node, Instant now) {
  const NodeId id = names.Find(node.str());
  if (id == kNoNode || nodes[id] == nullptr) return;
  NodeState& state = nodes[id]->state;
  state.SetPlainCpu(plain_seen.On(node));
  if (state.present() && state.inventory().has_devices()) Refresh(id, now);
}

PodRecord* Engine::Impl::Find(const PodUid& uid) {
  const auto found = pods.find(uid);
  return found == pods.end() ? nullptr : &found->second;
}

PodRecord& Engine::Impl::Touch(const PodRequest& request) {
  auto [at, fresh] = pods.try_emplace(request.uid);
  PodRecord& record = at->second;
  if (fresh) {
    record.request = std::make_shared<const PodRequest>(request);
    pods_by_name.emplace(request.name, request.uid);
  }
  return record;
}

void Engine::Impl::Erase(const PodUid& uid) {
  const auto found = pods.find(uid);
  pods_by_name.erase({found->second.request->name, uid});
  contenders.erase(uid);
  pending.erase(uid);
  ForgetHungry(uid);
  GateKeeper(*this).Forget(uid);
  pods.erase(found);
}

void Engine::Impl::ReleaseOn(const NodeName& node, const PodUid& uid, Instant now) {
  const NodeId id = names.Find(node.str());
  if (id == kNoNode) return NoteCapRelease(uid, now);
  nodes[id]->state.Release(uid);
  Refresh(id, now);
  NoteRoom(id, now);
  NoteCapRelease(uid, now);
}

void Engine::Impl::DropClaim(const PodUid& uid, PodRecord& record, Instant now) {
  if (record.claimed == kNoNode) return;
  const NodeId id = std::exchange(record.claimed, kNoNode);
  record.ranked.clear();
  --claims;
  if (nodes[id] == nullptr) return;
  const Holding* holding = nodes[id]->state.Find(uid);
  if (holding == nullptr || holding->kind != HoldingKind::kClaim) return;
  nodes[id]->state.Release(uid);
  Refresh(id, now);
}

void Engine::Impl::DropReservation(const PodUid& uid, PodRecord& record, Instant now) {
  if (record.reserved.empty()) return;
  // Never bound there: nothing was used, however long it took to find out.
  Close(uid, record, MeterKind::kVoid, now);
  const NodeName node = std::exchange(record.reserved, NodeName());
  record.writing = false;
  reservations.erase({record.reserved_since, uid});
  if (keeper_waits.erase(uid) > 0) keeper_turns.push_back({uid, false});
  if (!record.seen) unseen.emplace_back(latest, uid);
  NotePending(uid, record);
  ReleaseOn(node, uid, now);
  // The room that was made for it stays its own.
  if (const auto reclaim = reclaims.of_member.find(uid); reclaim != reclaims.of_member.end()) {
    Reearmark(reclaims.all.at(reclaim->second), now);
  }
}

void Engine::Impl::NoteRefusal(const NodeName& node, Instant now) {
  const NodeId id = names.Find(node.str());
  if (id == kNoNode) return;
  NodeEntry& entry = *nodes[id];
  // A quiet hour after the last pause wipes the slate.
  if (entry.refusing_until && now - *entry.refusing_until > kRefusalPauseMost) {
    entry.refusal_rounds = 0;
  }
  entry.refusals.push_back(now);
  while (now - entry.refusals.front() > kRefusalWindow) entry.refusals.pop_front();
  if (entry.refusals.size() < kRefusals) return;
  entry.refusals.clear();
  const int doublings = std::min(entry.refusal_rounds++, kMaxDoublings);
  const Millis pause = std::min(kRefusalPause * (1 << doublings), kRefusalPauseMost);
  entry.refusing_until = now + pause;
  reopenings.emplace(now + pause, id);
  Refresh(id, now);
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
  if (moved && book.Advance(now, closings)) {
    ForgetTeams();
    ++reclaims.version;
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
  impl_->words.AddTo(node);
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
  if (known == nullptr && !pod.request.asks_gpu()) {
    impl_->NotePlainMember(pod.request, !ended && !pod.terminating);
    if (!ended) {
      if (impl_->plain_seen.Put(uid, pod.node, pod.request.cpu)) impl_->NotePlainCpu(pod.node, now);
    } else if (const NodeName node = impl_->plain_seen.Remove(uid); !node.empty()) {
      impl_->NotePlainCpu(node, now);
    }
    return;
  }
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
  if (ended) {
    impl_->EndDemand(record, now);
    record.ended_at = std::min(pod.finished_at.value_or(now), now);
    impl_->DropClaim(uid, record, now);
    // A pod that ended on the node it was reserved on has used it.
    if (record.reserved == pod.node) {
      impl_->Close(uid, record, MeterKind::kClose, *record.ended_at);
    }
    impl_->DropReservation(uid, record, now);
    if (!record.node.empty()) {
      impl_->Close(uid, record, MeterKind::kClose, *record.ended_at);
      impl_->ReleaseOn(record.node, uid, now);
    }
    impl_->EndAgent(uid, record, pod, now);
    impl_->LeaveGang(uid, record, now);
    impl_->contenders.erase(uid);
    impl_->pending.erase(uid);
    GateKeeper(*impl_).Forget(uid);
    if (pod.refused_by_kubelet && !pod.node.empty()) impl_->NoteRefusal(pod.node, now);
    record.terminal = true;
    record.node = NodeName();
    // Only the name is needed from here on.
    auto name_only = std::make_shared<PodRequest>();
    name_only->uid = uid;
    name_only->name = record.request->name;
    record.request = std::move(name_only);
    impl_->NoteVictimGone(uid, now);
    impl_->NoteMemberGone(uid, now);
    return;
  }
  const bool bound = !record.node.empty() || !record.reserved.empty();
  if (!bound && known != nullptr && !SameRequest(*record.request, pod.request)) {
    impl_->DropClaim(uid, record, now);
    record.request = std::make_shared<const PodRequest>(std::move(pod.request));
  }
  // An object without node may be older than the bind we know of: a pod is never unbound again.
  if (pod.node.empty()) {
    impl_->NoteDemand(record, now);
    impl_->NotePending(uid, record);
    return impl_->JoinGang(uid, record, now);
  }
  if (pod.node == record.node) {
    impl_->NoteRunning(uid, pod);
    impl_->FollowAgent(uid, record, pod, now);
    return impl_->JoinGang(uid, record, now);
  }
  impl_->DropClaim(uid, record, now);
  if (record.reserved == pod.node) {
    // The proof of our own bind: what was opened then goes on.
    impl_->keeper_waits.erase(uid);
    impl_->reservations.erase({record.reserved_since, uid});
    record.reserved = NodeName();
    record.writing = false;
  } else {
    impl_->agents.Leave(uid, now);
  }
  impl_->DropReservation(uid, record, now);
  if (!record.node.empty()) {
    impl_->Close(uid, record, MeterKind::kClose, now);
    impl_->ReleaseOn(record.node, uid, now);
  }
  record.node = pod.node;
  record.held_since = pod.bound_at ? pod.bound_at : pod.started_at ? pod.started_at : pod.created;
  record.filtered = false;
  impl_->contenders.erase(uid);
  impl_->pending.erase(uid);
  impl_->NoteDemand(record, now);
  const NodeId id = impl_->InternNode(pod.node);
  Holding holding;
  holding.uid = uid;
  holding.kind = HoldingKind::kAllocation;
  holding.request = record.request;
  holding.allocation = std::move(pod.allocation);
  impl_->nodes[id]->state.Hold(std::move(holding));
  impl_->Refresh(id, now);
  impl_->NoteCapUse(id);
  impl_->Open(uid, record, id, std::min(record.held_since.value_or(now), now), false,
              !record.held_since);
  impl_->NoteRunning(uid, pod);
  impl_->FollowAgent(uid, record, pod, now);
  impl_->NoteMemberPlaced(uid, pod.node, now);
  impl_->JoinGang(uid, record, now);
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
