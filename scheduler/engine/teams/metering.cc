#include "scheduler/engine/teams/metering.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "quota/preemption/lost_work.h"
#include "scheduler/index/charge_of.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

// The clock of another machine may be ahead of ours; nothing is charged before it happens here.
Instant Past(std::optional<Instant> told, Instant now) { return std::min(told.value_or(now), now); }

}  // namespace

MeterEvent Metering::Event(MeterKind kind, const PodUid& uid, int interval, const NodeName& node,
                           const HeldWork& work, Instant at) const {
  MeterEvent event;
  event.kind = kind;
  event.at = at;
  event.uid = uid;
  event.interval = interval;
  event.pod = work.pod;
  event.node = node;
  event.leaf = work.leaf;
  event.workload_class = work.workload_class;
  event.parts = work.parts;
  if (kind != MeterKind::kOpen) return event;
  if (const PodRecord* record = cluster_.Find(uid)) {
    event.controller = record->traits.controller;
    event.labels = record->traits.labels;
    if (record->waits_since != Instant()) event.came = record->waits_since;
  }
  return event;
}

// What was metered of the pod until `until` while nobody heard of its node goes back.
void Metering::RefundLost(const PodUid& uid, int interval, const NodeName& node, Instant until) {
  const NodeId id = cluster_.names.Find(node.str());
  if (id == kNoNode || cluster_.nodes[id] == nullptr || !cluster_.nodes[id]->lost_since) return;
  const HeldWork& work = *cluster_.book.Find(uid);
  const Instant from = std::max(*cluster_.nodes[id]->lost_since, work.since);
  if (from >= until) return;
  MeterEvent refund = Event(MeterKind::kRefund, uid, interval, node, work, from);
  refund.until = until;
  refund.note = "NodeLost";
  TRANCHE_MARK(lost_node_refunded);
  cluster_.outbox.Journal(std::move(refund));
  cluster_.book.Refund(uid, {from, until});
}

// What its cloud took is nobody's fault, whoever evicted the pod, and whether anybody did.
bool Metering::WasInterrupted(const PodRecord& record) const {
  if (record.traits.evicted_at) return record.traits.evicted_by == ReclaimRule::kInterruption;
  const NodeId id = cluster_.names.Find(record.Place().str());
  const bool noticed =
      id != kNoNode && cluster_.nodes[id] != nullptr && cluster_.nodes[id]->interruption;
  return noticed && record.traits.disrupted;
}

void Metering::RefundLostWork(const PodUid& uid, const PodRecord& record, Instant at) {
  const PodTraits& traits = record.traits;
  const HeldWork* work = cluster_.book.Find(uid);
  if (work == nullptr || !work->running) return;
  const bool interrupted = WasInterrupted(record);
  if (!interrupted) {
    if (!traits.evicted_at) return;
    // Its own budget was used up: what it lost it would have had to pay for. Or it had all its
    // time.
    if (traits.evicted_by == ReclaimRule::kDrain || HadItsTime(traits.evicted_by)) return;
    // A checkpoint from before it ran is none.
    const bool publishes = traits.checkpoint && *traits.checkpoint >= *work->running;
    if (traits.evicted_state != QuotaState::kInQuota && !publishes) return;
  }
  const GpuClass* gpu_class = cluster_.set->ClassNamed(work->workload_class);
  WorkAtRisk risk;
  risk.running = work->running;
  risk.checkpoint = traits.checkpoint;
  risk.cap = gpu_class == nullptr ? GpuClass().lost_work_cap : gpu_class->lost_work_cap;
  // What a lost node has been refunded for already ends where its silence begins.
  const NodeId id = cluster_.names.Find(record.Place().str());
  Instant until = at;
  if (id != kNoNode && cluster_.nodes[id] != nullptr && cluster_.nodes[id]->lost_since) {
    until = std::min(until, *cluster_.nodes[id]->lost_since);
  }
  const Instant from = std::max(at - LostRuntime(risk, std::nullopt, at), work->since);
  if (from >= until) return;
  MeterEvent refund = Event(MeterKind::kRefund, uid, record.interval, record.Place(), *work, from);
  refund.until = until;
  refund.note = interrupted ? "Interruption" : "LostWork";
  TRANCHE_MARK(lost_work_refunded);
  cluster_.outbox.Journal(std::move(refund));
  cluster_.book.Refund(uid, {from, until});
}

void Metering::Open(const PodUid& uid, PodRecord& record, NodeId id, Start start) {
  if (cluster_.nodes[id] == nullptr) return;
  const NodeState& state = cluster_.nodes[id]->state;
  const Holding* holding = state.Find(uid);
  // Room that a pod may come to is not yet held by it.
  if (holding == nullptr || holding->kind < HoldingKind::kReservation) return;
  if (const auto known = unclaimed.find(uid); known != unclaimed.end()) {
    record.interval = known->second.interval;
    unclaimed.erase(known);
    cluster_.book.DeclareGang(uid, record.request->gang);
    if (record.request->expected_runtime) {
      cluster_.book.DeclareRuntime(uid, *record.request->expected_runtime, cluster_.latest);
    }
    return;
  }
  // Nobody has told yet what the node's GPUs are; the pod is charged when somebody does.
  const bool known = !start.parts.empty();
  if ((!state.present() && !known) || cluster_.book.Find(uid) != nullptr) return;
  const QuotaMembership membership =
      cluster_.book.MembershipOf(record.request->name.ns, record.request->priority_class);
  // A node that comes back has its pods since before it went: they were charged until then.
  start.at = std::max(start.at, earlier.EndOf(uid));
  HeldWork work = cluster_.WorkOf(*record.request, membership, start.at);
  work.parts = known ? std::move(start.parts)
                     : ChargeOfPicks(state.inventory(), holding->held(), holding->picks);
  // Never the leaf a record tells: many may write the pod, and could have anybody pay for it. What
  // the ledger has open goes on above.
  work.demoted_by = std::move(start.demoted_by);
  if (work.parts.empty()) return;
  record.interval = earlier.NextOf(uid, record.interval);
  MeterEvent event = Event(MeterKind::kOpen, uid, record.interval, record.Place(), work, start.at);
  event.estimated = start.estimated;
  event.allocation = holding->allocation;
  cluster_.outbox.Journal(std::move(event));
  cluster_.book.Hold(uid, std::move(work));
}

void Metering::Close(const PodUid& uid, PodRecord& record, MeterKind kind, Instant at) {
  const HeldWork* work = cluster_.book.Find(uid);
  if (work == nullptr || unclaimed.contains(uid)) return;
  at = kind == MeterKind::kVoid ? work->since : std::max(at, work->running.value_or(work->since));
  RefundLost(uid, record.interval, record.Place(), at);
  if (kind == MeterKind::kClose) RefundLostWork(uid, record, at);
  cluster_.outbox.Journal(Event(kind, uid, record.interval, record.Place(), *work, at));
  cluster_.book.Release(uid, at);
  earlier.NoteRecent(uid, record.interval++, at);
}

bool Metering::ReleaseEarly(const PodUid& uid, const PodFacts& pod) {
  const HeldWork* work = cluster_.book.Find(uid);
  if (work == nullptr || !pod.terminating || work->leaf.empty() || work->released) return false;
  const GpuQuota* leaf = cluster_.set->QuotaNamed(work->leaf);
  if (leaf == nullptr || leaf->release != ReleasePolicy::kOnDeletionTimestamp) return false;
  cluster_.book.ReleaseQuota(uid);
  return true;
}

void Metering::NoteRunning(const PodUid& uid, const PodFacts& pod) {
  const HeldWork* work = cluster_.book.Find(uid);
  if (work == nullptr || work->running || !pod.running_at) return;
  const Instant at = std::max(Past(pod.running_at, cluster_.latest), work->since);
  const PodRecord& record = *cluster_.Find(uid);
  cluster_.outbox.Journal(
      Event(MeterKind::kRunning, uid, record.interval, record.Place(), *work, at));
  cluster_.book.Running(uid, at);
}

// The kubelet is heard of again: what was metered while nobody heard of it goes back.
void Metering::EndOutage(NodeId id, Instant now) {
  NodeEntry& entry = *cluster_.nodes[id];
  for (const Holding& holding : entry.state.holdings()) {
    if (holding.kind != HoldingKind::kAllocation || cluster_.book.Find(holding.uid) == nullptr)
      continue;
    RefundLost(holding.uid, cluster_.Find(holding.uid)->interval, cluster_.names.name(id), now);
  }
  entry.lost_since.reset();
}

void Metering::OpenUncharged(NodeId id, Instant now) {
  for (const Holding& holding : cluster_.nodes[id]->state.holdings()) {
    PodRecord* record = cluster_.Find(holding.uid);
    if (record == nullptr || cluster_.book.Find(holding.uid) != nullptr) continue;
    Open(holding.uid, *record, id,
         {.at = Past(record->held_since, now), .estimated = !record->held_since});
  }
}

bool Metering::IsUnowned(const HeldWork& work) const {
  return work.leaf.empty() || cluster_.book.tree().Find(work.leaf) == kNoQuota;
}

bool Metering::IsAbandoned(const HeldWork& work) const {
  return !work.leaf.empty() && IsUnowned(work) &&
         cluster_.book.MembershipOf(work.pod.ns, "").leaf == kNoQuota;
}

std::vector<const HeldWork*> Metering::Abandoned() const {
  std::vector<const HeldWork*> found;
  for (const PodUid& uid : unowned_) {
    const HeldWork* work = cluster_.book.Find(uid);
    if (work != nullptr && IsAbandoned(*work)) found.push_back(work);
  }
  return found;
}

bool Metering::HasOwner(const PodUid& uid, const HeldWork& work) {
  if (cluster_.book.MembershipOf(work.pod.ns, "").leaf != kNoQuota) return true;
  // Nobody's from now on. It is told once, when its quota goes.
  if (!work.leaf.empty() && unowned_.insert(uid).second) {
    TRANCHE_MARK(quota_of_running_work_is_gone);
    cluster_.outbox.Tell({BookFaultKind::kUnownedWork,
                          fmt::format("{} was admitted to quota {}, which is gone, and no quota "
                                      "owns its namespace",
                                      work.pod.str(), work.leaf)});
  }
  return false;
}

void Metering::Adopt(Instant now) {
  std::erase_if(unowned_, [this](const PodUid& uid) { return cluster_.book.Find(uid) == nullptr; });
  std::vector<PodUid> orphans;
  for (const auto& [uid, work] : cluster_.book.holdings()) {
    if (!IsUnowned(work) || unclaimed.contains(uid) || claims.contains(uid)) continue;
    if (cluster_.Find(uid) == nullptr) continue;
    if (HasOwner(uid, work)) orphans.push_back(uid);
  }
  for (const PodUid& uid : orphans) {
    PodRecord& record = *cluster_.Find(uid);
    const bool ran = cluster_.book.Find(uid)->running.has_value();
    // Whether it will have used anything nobody knows of a reservation: it moves as a whole.
    const bool reserved = record.node.empty();
    const Instant since = cluster_.book.Find(uid)->since;
    // It holds what it held, whether its node tells of these devices just now or not.
    std::vector<ModelCharge> parts = cluster_.book.Find(uid)->parts;
    Close(uid, record, reserved ? MeterKind::kVoid : MeterKind::kClose, now);
    Open(uid, record, cluster_.names.Find(record.Place().str()),
         {.at = reserved ? since : now, .parts = std::move(parts)});
    const HeldWork* work = cluster_.book.Find(uid);
    if (!ran || work == nullptr) continue;
    cluster_.outbox.Journal(
        Event(MeterKind::kRunning, uid, record.interval, record.Place(), *work, now));
    cluster_.book.Running(uid, now);
  }
}

}  // namespace tranche
