// Pods as the cluster shows them.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "scheduler/engine/parts.h"
#include "scheduler/engine/selection/shape.h"
#include "topology/base/mark.h"
#include "topology/base/plant.h"

namespace tranche {
namespace {

constexpr std::chrono::seconds kStampUnit{1};  // of times in objects

std::string OwnerOf(const PodFacts& pod) {
  if (!pod.request.gang.empty()) return pod.request.name.ns + "/gang/" + pod.request.gang;
  return pod.owner.empty() ? pod.request.name.str() : pod.owner;
}

// The steps of UpsertPod and DeletePod.
class PodEvents {
 public:
  explicit PodEvents(EngineParts& parts) : parts_(parts), cluster_(parts.cluster) {}

  void UpsertPlain(const PodFacts& pod, bool ended, Instant now);
  void EndPod(PodRecord& record, const PodFacts& pod, Instant now);
  // It is gone, or asks for no GPUs any more. `record` with it.
  void Forget(const PodUid& uid, PodRecord& record, Instant now);
  void PlacePod(PodRecord& record, PodFacts& pod, Instant now);
  // It asks for something else from now on.
  void Ask(const PodUid& uid, PodRecord& record, PodRequest request, Instant now);
  // A version that cannot be read takes nothing away from what is known.
  bool AddsNothing(const PodRecord* record, const PodFacts& pod, bool ended) const;
  // The object of a pod that could not be read can be now. Null: it is not known any more.
  PodRecord* ReadAtLast(PodRecord& record, const PodFacts& pod, Instant now);
  void NoteRunning(const PodUid& uid, const PodFacts& pod);
  // What there is to know of a pod that uses claims alone.
  void NoteClaims(const PodFacts& pod, bool ended, Instant now);
  void DropClaims(const PodUid& uid, Instant now);
  // How the pod may be taken away, as the cluster shows it.
  void NoteTraits(const PodUid& uid, PodRecord& record, const PodFacts& pod, Instant now);
  // How far the node's agent is with the pod, as its object says.
  void FollowAgent(const PodUid& uid, const PodRecord& record, const PodFacts& pod, Instant now);
  void UpsertPlaceholder(PodFacts pod, Instant now);
  bool DropPlaceholder(const PodUid& uid, Instant now);  // false: no placeholder has that uid

 private:
  // True: it leaves, which was not known.
  bool SetTraits(const PodFacts& pod, PodTraits& traits, Instant now);
  // The devices of our own bind, of which the pod is the proof.
  static void KeepOwn(std::optional<Allocation> own, PodFacts& pod, Holding& holding);
  // What the pod holds: as its record says, the agent's keys and the ledger.
  void NoteDevices(PodFacts& pod, Holding& holding);
  // When the pod's containers had finished, by our clock.
  Instant EndOf(const PodUid& uid, const PodFacts& pod, Instant now) const;
  // The pod has ended on its node.
  void EndAgent(const PodUid& uid, const PodRecord& record, const PodFacts& pod, Instant now);

  EngineParts& parts_;
  ClusterState& cluster_;
};

}  // namespace

void PodEvents::UpsertPlain(const PodFacts& pod, bool ended, Instant now) {
  const PodUid& uid = pod.request.uid;
  if (ended || pod.terminating) {
    parts_.gangs.ForgetPlainMember(uid);
  } else {
    parts_.gangs.NotePlainMember(pod.request);
  }
  if (pod.node.empty() && !pod.allocation_problem.empty()) {
    cluster_.marked.Note(uid);
  } else {
    cluster_.marked.Forget(uid);
  }
  if (!ended) {
    if (cluster_.plain_seen.Put(uid, pod.node, pod.request.cpu))
      cluster_.NotePlainCpu(pod.node, now);
  } else if (const NodeName node = cluster_.plain_seen.Remove(uid); !node.empty()) {
    cluster_.NotePlainCpu(node, now);
  }
}

Instant PodEvents::EndOf(const PodUid& uid, const PodFacts& pod, Instant now) const {
  if (!pod.finished_at) return now;
  const HeldWork* work = cluster_.book.Find(uid);
  // By its kubelet's clock it began before we held anything for it: ours is ahead, or was set.
  if (work != nullptr && pod.started_at && *pod.started_at + kStampUnit < work->since) {
    TRANCHE_MARK(end_told_by_another_clock);
    // We saw it run until now. Of one that ended while nobody looked its kubelet knows how long.
    if (!parts_.metering.unclaimed.contains(uid)) return now;
    return std::min(*pod.finished_at + (work->since - *pod.started_at), now);
  }
  return std::min(*pod.finished_at + parts_.clock_lead.Now(), now);
}

void PodEvents::Forget(const PodUid& uid, PodRecord& record, Instant now) {
  parts_.demand_notes.End(record, now);
  cluster_.DropTentative(uid, record, now);
  parts_.DropReservation(uid, record, now);
  if (!record.node.empty()) {
    parts_.metering.Close(uid, record, MeterKind::kClose, now);
    parts_.ReleaseOn(record.node, uid, now);
  }
  parts_.runs.NoteMemberGone(uid, now);
  parts_.gangs.Leave(uid, record, now);
  parts_.runs.NoteVictimGone(uid, now);  // what its gang has left decides of the others
  cluster_.agents.Leave(uid, now);
  parts_.Erase(uid);
}

void PodEvents::EndPod(PodRecord& record, const PodFacts& pod, Instant now) {
  parts_.early_nominations.Forget(pod.request.uid);
  const PodUid uid = record.request->uid;
  parts_.demand_notes.End(record, now);
  record.ended_at = EndOf(uid, pod, now);
  cluster_.DropTentative(uid, record, now);
  // A pod that ended on the node it was reserved on has used it.
  if (record.reserved == pod.node)
    parts_.metering.Close(uid, record, MeterKind::kClose, *record.ended_at);
  parts_.DropReservation(uid, record, now);
  if (!record.node.empty()) {
    parts_.metering.Close(uid, record, MeterKind::kClose, *record.ended_at);
    parts_.ReleaseOn(record.node, uid, now);
  }
  EndAgent(uid, record, pod, now);
  parts_.gangs.Leave(uid, record, now);
  parts_.team_queue.contenders.erase(uid);
  cluster_.pending.erase(uid);
  parts_.gates.Forget(uid);
  parts_.run_limits.Forget(uid);
  if (pod.refused_by_kubelet && !pod.node.empty()) cluster_.NoteRefusal(pod.node, now);
  record.terminal = true;
  record.node = NodeName();
  // Only the name is needed from here on.
  auto name_only = std::make_shared<PodRequest>();
  name_only->uid = uid;
  name_only->name = record.request->name;
  record.request = std::move(name_only);
  parts_.runs.NoteVictimGone(uid, now);
  parts_.runs.NoteMemberGone(uid, now);
}

void PodEvents::NoteRunning(const PodUid& uid, const PodFacts& pod) {
  // A deletion that has only begun is no event to pods that wait.
  if (parts_.metering.ReleaseEarly(uid, pod)) parts_.requeue.Admitted(cluster_.latest);
  parts_.metering.NoteRunning(uid, pod);
}

bool PodEvents::AddsNothing(const PodRecord* record, const PodFacts& pod, bool ended) const {
  if (!pod.unreadable || ended) return false;
  if (pod.node.empty() || cluster_.plain_seen.Has(pod.request.uid)) return true;
  return record != nullptr && record->node == pod.node;
}

PodRecord* PodEvents::ReadAtLast(PodRecord& record, const PodFacts& pod, Instant now) {
  const PodUid uid = pod.request.uid;
  TRANCHE_MARK(unreadable_pod_read_at_last);
  record.unreadable = false;
  record.request = std::make_shared<const PodRequest>(pod.request);
  if (pod.request.asks_gpu()) {
    // Placed anew, with what is now known of it.
    record.node = NodeName();
    return &record;
  }
  parts_.metering.Close(uid, record, MeterKind::kClose, now);
  parts_.ReleaseOn(record.node, uid, now);
  parts_.gangs.Leave(uid, record, now);
  parts_.Erase(uid);
  return nullptr;
}

void PodEvents::KeepOwn(std::optional<Allocation> own, PodFacts& pod, Holding& holding) {
  pod.unreadable = false;
  if (!own) return;
  const bool same = !pod.allocation ||
                    (NamesNoOther(*pod.allocation, *own) && NamesNoOther(*own, *pod.allocation));
  if (!same) {
    // Written by an earlier life of this process, or edited since: both are busy, and so is what
    // the agent's keys name.
    holding.others.push_back(*std::move(own));
  } else if ((!pod.request.follows_placeholder || !pod.allocation) && pod.allocation != own &&
             !TRANCHE_PLANTED(own_record_edited_since_counts)) {
    pod.allocation = std::move(own);
  }
}

void PodEvents::NoteDevices(PodFacts& pod, Holding& holding) {
  const PodUid& uid = pod.request.uid;
  holding.allocation = std::move(pod.allocation);
  if (pod.disputed) holding.others.push_back(*std::move(pod.disputed));
  const auto known = parts_.metering.unclaimed.find(uid);
  const bool charged = known != parts_.metering.unclaimed.end() && known->second.allocation &&
                       known->second.node == pod.node;
  if (charged) {
    // What was charged is what was given, and nobody else writes the ledger. It was charged before
    // a placeholder told its card, though: of those who follow one the record says more.
    const Allocation& told = *known->second.allocation;
    if (!holding.allocation) {
      holding.allocation = told;
    } else if (pod.request.follows_placeholder) {
      if (!NamesNoOther(*holding.allocation, told)) holding.others.push_back(told);
    } else if (*holding.allocation != told && !TRANCHE_PLANTED(own_record_edited_since_counts)) {
      // A leader that had no ledger may have placed it after the bind that the ledger knows failed.
      Allocation other = *std::exchange(holding.allocation, told);
      const bool later = other.epoch > told.epoch && other.epoch < cluster_.options.epoch;
      if (later) std::swap(*holding.allocation, other);
      // There is no device that both could name where devices are counted.
      const bool counted = later && other.knowledge == Knowledge::kCounts &&
                           holding.allocation->knowledge == Knowledge::kCounts;
      if (!counted && !NamesNoOther(*holding.allocation, other)) {
        holding.others.push_back(std::move(other));
      }
    }
  }
  if (holding.others.empty()) return;
  TRANCHE_MARK(devices_disputed);
  cluster_.outbox.Tell({BookFaultKind::kDisputedDevices,
                        fmt::format("expected one set of devices of {} on {}, found others in its "
                                    "record, its agent's keys or the ledger",
                                    pod.request.name.str(), pod.node.str())});
}

void PodEvents::PlacePod(PodRecord& record, PodFacts& pod, Instant now) {
  const PodUid uid = record.request->uid;
  const bool placed_by_us = pod.allocation && pod.allocation->epoch > 0;
  cluster_.DropTentative(uid, record, now);
  Holding holding;
  // What we wrote on it ourselves is known, whatever its object says now.
  if (record.reserved == pod.node) {
    KeepOwn(AllocationOn(cluster_, pod.node, uid), pod, holding);
    // The proof of our own bind: what was opened then goes on.
    cluster_.placeholders.EndWait(uid);
    cluster_.reservations.erase({record.reserved_since, uid});
    record.reserved = NodeName();
    record.writing = false;
  } else {
    if (!record.reserved.empty()) TRANCHE_MARK(pod_seen_elsewhere_than_reserved);
    cluster_.agents.Leave(uid, now);
  }
  parts_.DropReservation(uid, record, now);
  if (!record.node.empty()) {
    parts_.metering.Close(uid, record, MeterKind::kClose, now);
    parts_.ReleaseOn(record.node, uid, now);
  }
  record.node = pod.node;
  const auto& told = pod.bound_at ? pod.bound_at : pod.started_at ? pod.started_at : pod.created;
  record.held_since = parts_.clock_lead.Ours(told, now);
  record.filtered = false;
  parts_.team_queue.contenders.erase(uid);
  cluster_.pending.erase(uid);
  parts_.demand_notes.Note(record, now);
  const NodeId id = cluster_.InternNode(pod.node);
  holding.uid = uid;
  holding.kind = HoldingKind::kAllocation;
  holding.request = record.request;
  holding.unreadable = record.unreadable = pod.unreadable;
  if (pod.unreadable) {
    cluster_.outbox.Tell(
        {BookFaultKind::kUnreadablePod, fmt::format("{} on {}: {}", pod.request.name.str(),
                                                    pod.node.str(), pod.allocation_problem)});
  } else {
    NoteDevices(pod, holding);
  }
  cluster_.nodes[id]->state.Hold(std::move(holding));
  cluster_.Refresh(id, now);
  parts_.namespaces.NoteCapUse(id);
  parts_.metering.Open(uid, record, id,
                       {.at = record.held_since.value_or(now), .estimated = !record.held_since});
  NoteRunning(uid, pod);
  FollowAgent(uid, record, pod, now);
  parts_.runs.NoteMemberPlaced(uid, pod.node, now);
  // Its scheduler asks us: after a restart on a full cluster no question may come for a while.
  if (placed_by_us) parts_.NoteAsking(record.request->scheduler);
}

bool PodEvents::SetTraits(const PodFacts& pod, PodTraits& traits, Instant now) {
  traits.owner = OwnerOf(pod);
  traits.controller = pod.controller;
  traits.made_anew = !pod.owner.empty();
  traits.left_alone = pod.left_alone;
  std::tie(traits.maker, traits.of_replica_set, traits.deletion_cost, traits.provisioning) =
      std::tie(pod.owner, pod.of_replica_set, pod.deletion_cost, pod.provisioning);
  traits.labels = pod.labels;
  if (traits.checkpoint && pod.checkpointed_at && *pod.checkpointed_at > *traits.checkpoint)
    traits.checkpoint_gap = *pod.checkpointed_at - *traits.checkpoint;
  traits.checkpoint = pod.checkpointed_at;
  traits.grace = pod.grace;
  traits.evictable = pod.evictable && !pod.unreadable;
  std::tie(traits.disrupted, traits.gated, traits.gates, traits.foreign_gates) =
      std::tie(pod.disrupted, pod.gated, pod.our_gates, pod.foreign_gates);
  traits.unschedulable = pod.unschedulable;
  traits.scheduler_says = pod.scheduler_says;
  if (!pod.terminating || traits.leaves_at) return false;
  traits.leaves_at = pod.deletion_at.value_or(now);
  cluster_.NoteChange();
  parts_.runs.NoteVictimLeaving(pod.request.uid, now);
  return true;
}

void PodEvents::NoteClaims(const PodFacts& pod, bool ended, Instant now) {
  parts_.claim_pods.Note(pod, ended, now);
  const auto claiming = parts_.claim_books.pods.find(pod.request.uid);
  if (claiming != parts_.claim_books.pods.end()) {
    SetTraits(pod, claiming->second.traits, now);
    claiming->second.held_since = pod.running_at ? pod.running_at : pod.bound_at;
    parts_.run_limits.Note(pod.request.uid);
  } else if (ended) {
    parts_.runs.NoteVictimGone(pod.request.uid, now);
  }
}

void PodEvents::DropClaims(const PodUid& uid, Instant now) {
  const PodRecord* record = parts_.claim_holders.Find(uid);
  const bool by_claims = record != nullptr && cluster_.Find(uid) == nullptr;
  if (record != nullptr && !record->node.empty()) parts_.claim_pods.NoteGone(uid, now);
  parts_.claim_pods.Forget(uid);
  if (by_claims) parts_.runs.NoteVictimGone(uid, now);
}

void PodEvents::NoteTraits(const PodUid& uid, PodRecord& record, const PodFacts& pod, Instant now) {
  PodTraits& traits = record.traits;
  const bool leaves = SetTraits(pod, traits, now);
  if (leaves) cluster_.terminating.insert(uid);
  if (traits.checkpoint) {
    cluster_.checkpointing.insert(uid);
  } else {
    cluster_.checkpointing.erase(uid);
  }
  if (leaves && !record.node.empty()) parts_.nominations.Keep(record.node, now);
  parts_.gangs.Recount(uid, record);
  if (record.node.empty() && pod.node.empty() && !pod.terminating) {
    if (parts_.reclaims.returning.contains(traits.owner)) parts_.reclaims.returned.insert(uid);
    parts_.preemptors.Note(uid, record);
    parts_.nominations.Note(uid, record, pod.nominated, now);
  }
}

void PodEvents::Ask(const PodUid& uid, PodRecord& record, PodRequest request, Instant now) {
  cluster_.DropTentative(uid, record, now);
  record.request = std::make_shared<const PodRequest>(std::move(request));
  parts_.preemptors.Note(uid, record);
}

void PodEvents::FollowAgent(const PodUid& uid, const PodRecord& record, const PodFacts& pod,
                            Instant now) {
  const NodeState& state = cluster_.nodes[cluster_.names.Find(record.node.str())]->state;
  const auto slot = SlotOf(state.inventory().agent, *record.request);
  if (slot && pod.phase == PodPhase::kPending && pod.progress == AgentProgress::kWaiting) {
    cluster_.agents.NoteServing(record.node, *slot, uid, record.held_since.value_or(now), now);
  } else {
    cluster_.agents.Leave(uid, now);
  }
}

void PodEvents::EndAgent(const PodUid& uid, const PodRecord& record, const PodFacts& pod,
                         Instant now) {
  const NodeId id = cluster_.names.Find(pod.node.str());
  const bool outlives = id != kNoNode && cluster_.nodes[id] != nullptr &&
                        OutlivesItsPod(cluster_.nodes[id]->state.inventory().agent);
  if (!outlives || pod.progress != AgentProgress::kWaiting || !cluster_.agents.Knows(uid)) {
    cluster_.agents.Leave(uid, now);
    return;
  }
  // It stays in line until the agent is sure not to take it for the next one.
  cluster_.outbox.agents().orphans.push_back(
      {record.request->name, uid, cluster_.nodes[id]->state.inventory().agent});
}

void PodEvents::UpsertPlaceholder(PodFacts pod, Instant now) {
  if (pod.node.empty()) return;  // it holds nothing, and we make them with a node
  const PodUid uid = pod.request.uid;
  PlaceholderSighting sighting{
      pod.request.name,    uid, pod.node, -1, pod.placeholder->told, pod.terminating,
      !pod.holds_devices()};
  const bool known = cluster_.placeholders.books().Knows(uid);
  if (sighting.ended) {
    cluster_.placeholders.books().See(sighting, now);
    if (known) {
      parts_.ReleaseOn(pod.node, uid, now);
    } else if (const NodeId id = cluster_.names.Find(pod.node.str());
               id != kNoNode && cluster_.nodes[id]) {
      cluster_.Refresh(id, now);
    }
    return;
  }
  const NodeId id = cluster_.InternNode(pod.node);
  NodeState& state = cluster_.nodes[id]->state;
  Holding holding;
  holding.uid = uid;
  holding.request = std::make_shared<const PodRequest>(std::move(pod.request));
  holding.allocation = std::move(pod.allocation);
  holding.told = pod.placeholder->told;
  const Holding* before = state.Find(uid);
  holding.placeholder = before != nullptr ? before->placeholder : PlaceholderRole::kLingering;
  state.Hold(std::move(holding));
  const Holding& after = *state.Find(uid);
  if (after.known) sighting.card = after.picks.front().card;
  cluster_.placeholders.books().See(sighting, now);
  cluster_.Refresh(id, now);
}

bool PodEvents::DropPlaceholder(const PodUid& uid, Instant now) {
  const std::optional<NodeName> node = cluster_.placeholders.books().Gone(uid);
  if (!node) return false;
  parts_.ReleaseOn(*node, uid, now);
  return true;
}

void Engine::UpsertPod(PodFacts pod, Instant now) {
  ClusterState& cluster = parts_->cluster;
  parts_->Advance(now);
  PodEvents events(*parts_);
  const PodUid uid = pod.request.uid;
  if (uid.empty()) return;
  if (pod.placeholder) return events.UpsertPlaceholder(std::move(pod), now);
  PodRecord* known = cluster.Find(uid);
  const bool ended = pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed ||
                     (pod.terminating && TRANCHE_PLANTED(deletion_frees));
  if (events.AddsNothing(known, pod, ended)) return;
  events.NoteClaims(pod, ended, now);
  // Requests for devices cannot be edited: what is written on a pod that came to its node without
  // any gives it none.
  if (known == nullptr && !pod.node.empty() && cluster.plain_seen.NodeOf(uid) == pod.node) {
    return events.UpsertPlain(pod, ended, now);
  }
  if (known != nullptr && known->unreadable && !pod.unreadable && !ended) {
    known = events.ReadAtLast(*known, pod, now);
  }
  // What was charged holds something, though everything that said so was taken off the pod.
  const bool charged = !pod.node.empty() && parts_->metering.unclaimed.contains(uid);
  const bool unknown = pod.unreadable && !TRANCHE_PLANTED(unreadable_pod_holds_nothing);
  const bool may_hold = pod.request.asks_gpu() || (!ended && (unknown || charged));
  const bool waits = known != nullptr && known->Place().empty() && !known->terminal;
  if (waits && !may_hold && !ended) {
    TRANCHE_MARK(pod_asks_for_gpus_no_more);
    events.Forget(uid, *known, now);
    known = nullptr;
  }
  if (known == nullptr && !may_hold) return events.UpsertPlain(pod, ended, now);
  // Of one that ended before we looked only the ledger may want to know.
  if (known == nullptr && ended && !parts_->metering.unclaimed.contains(uid)) return;
  PodRecord& record = known != nullptr ? *known : cluster.Touch(pod.request);
  if (known == nullptr) parts_->gangs.ForgetPlainMember(uid);
  record.seen = true;
  if (record.terminal) {
    if (pod.progress != AgentProgress::kWaiting) cluster.agents.Leave(uid, now);
    return;
  }
  if (pod.created) record.waits_since = *pod.created;
  parts_->gangs.Join(uid, record, now);
  events.NoteTraits(uid, record, pod, now);
  parts_->gates.Note(uid, record);
  if (ended) return events.EndPod(record, pod, now);
  const bool bound = !record.node.empty() || !record.reserved.empty();
  if (!bound && known != nullptr && !SameRequest(*record.request, pod.request)) {
    events.Ask(uid, record, std::move(pod.request), now);
  }
  // An object without node may be older than the bind we know of: a pod is never unbound again.
  if (pod.node.empty() && !record.node.empty() && TRANCHE_PLANTED(late_event_unbinds)) {
    parts_->ReleaseOn(record.node, uid, now);
    record.node = NodeName();
  }
  if (pod.node.empty()) {
    parts_->demand_notes.Note(record, now);
    cluster.NotePending(uid, record);
  } else if (pod.node == record.node) {
    events.NoteRunning(uid, pod);
    events.FollowAgent(uid, record, pod, now);
  } else {
    events.PlacePod(record, pod, now);
  }
  if (!record.node.empty()) parts_->run_limits.Note(uid);
  parts_->NoteShown(uid, record, now);
}

void Engine::DeletePod(const PodUid& uid, Instant now) {
  ClusterState& cluster = parts_->cluster;
  PodEvents events(*parts_);
  parts_->Advance(now);
  events.DropClaims(uid, now);
  if (events.DropPlaceholder(uid, now)) return;
  if (const NodeName node = cluster.plain_seen.Remove(uid); !node.empty()) {
    cluster.NotePlainCpu(node, now);
  }
  parts_->gangs.ForgetPlainMember(uid);
  PodRecord* const record = cluster.Find(uid);
  if (record == nullptr) return;
  events.Forget(uid, *record, now);
  cluster.gone.Note(uid);
}

}  // namespace tranche
