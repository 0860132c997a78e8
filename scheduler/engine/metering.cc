// From holdings to quota and the ledger's journal.
//
// A pod is charged from its reservation (or from when the cluster says it was bound) until it has
// ended. What the ledger had open before a restart is taken up again, never charged twice.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/index/charge_of.h"

namespace tranche {
namespace {

// The clock of another machine may be ahead of ours; nothing is charged before it happens here.
Instant Past(std::optional<Instant> told, Instant now) { return std::min(told.value_or(now), now); }

}  // namespace

uint32_t Engine::Impl::KindOf(const Inventory& inventory) {
  std::string kind = fmt::format("{}|{}|{}|{}", inventory.product, inventory.model,
                                 static_cast<int>(inventory.sharing), inventory.replicas);
  const Card* last = nullptr;
  for (const Card& card : inventory.cards) {
    const bool same = last != nullptr && last->mode == card.mode && last->memory == card.memory &&
                      last->product == card.product;
    last = &card;
    if (same) continue;
    kind +=
        fmt::format("|{},{},{}", static_cast<int>(card.mode), card.memory.count(), card.product);
  }
  for (const MigPool& pool : inventory.pools) {
    kind += fmt::format("|{},{},{}", pool.key, pool.profile, pool.replicas);
  }
  return kinds.try_emplace(std::move(kind), static_cast<uint32_t>(kinds.size())).first->second;
}

MeterEvent Engine::Impl::Event(MeterKind kind, const PodUid& uid, const PodRecord& record,
                               const HeldWork& work, Instant at) const {
  MeterEvent event;
  event.kind = kind;
  event.at = at;
  event.uid = uid;
  event.interval = record.interval;
  event.pod = work.pod;
  event.node = record.node.empty() ? record.reserved : record.node;
  event.leaf = work.leaf;
  event.workload_class = work.workload_class;
  event.parts = work.parts;
  return event;
}

void Engine::Impl::Open(const PodUid& uid, PodRecord& record, NodeId id, Instant at, bool demoted,
                        bool estimated) {
  if (nodes[id] == nullptr || book.Find(uid) != nullptr) return;
  const NodeState& state = nodes[id]->state;
  const Holding* holding = state.Find(uid);
  if (holding == nullptr || holding->kind == HoldingKind::kClaim) return;
  const auto known = unclaimed.find(uid);
  // Nobody has told yet what the node's GPUs are; the pod is charged when somebody does.
  if (!state.present() && known == unclaimed.end()) return;
  HeldWork work;
  work.pod = record.request->name;
  work.runtime = record.request->expected_runtime;
  if (known != unclaimed.end()) {
    work.leaf = known->second.leaf;
    work.workload_class = known->second.workload_class;
    work.parts = known->second.parts;
    work.since = known->second.since;
    work.running = known->second.running;
    record.interval = known->second.interval;
    unclaimed.erase(known);
    book.Hold(uid, std::move(work));
    return;
  }
  const Standing standing =
      book.StandingOf(record.request->name.ns, record.request->priority_class);
  work.parts = ChargeOfPicks(state.inventory(), *record.request, holding->picks);
  const bool told = holding->allocation && !holding->allocation->leaf.empty();
  if (told) {
    work.leaf = holding->allocation->leaf;
  } else if (standing.leaf != kNoQuota) {
    work.leaf = book.tree().name(standing.leaf);
  }
  if (standing.gpu_class != nullptr) work.workload_class = standing.gpu_class->name;
  work.since = at;
  work.demoted = demoted;
  if (work.parts.empty()) return;
  if (const auto before = intervals.find(uid); before != intervals.end()) {
    record.interval = std::max(record.interval, before->second + 1);
    intervals.erase(before);
  }
  MeterEvent event = Event(MeterKind::kOpen, uid, record, work, at);
  event.sequence = ++meter_sequence;
  event.estimated = estimated;
  event.allocation = holding->allocation;
  metering.push_back(std::move(event));
  book.Hold(uid, std::move(work));
}

void Engine::Impl::Close(const PodUid& uid, PodRecord& record, NodeId id, MeterKind kind,
                         Instant at) {
  const HeldWork* work = book.Find(uid);
  if (work == nullptr) return;
  at = kind == MeterKind::kVoid ? work->since : std::max(at, work->since);
  if (id != kNoNode && nodes[id] != nullptr && nodes[id]->lost_since) {
    const Instant from = std::max(*nodes[id]->lost_since, work->since);
    if (from < at) {
      MeterEvent refund = Event(MeterKind::kRefund, uid, record, *work, from);
      refund.until = at;
      refund.note = "NodeLost";
      refund.sequence = ++meter_sequence;
      metering.push_back(std::move(refund));
      book.Refund(uid, {from, at});
    }
  }
  MeterEvent event = Event(kind, uid, record, *work, at);
  event.sequence = ++meter_sequence;
  metering.push_back(std::move(event));
  book.Release(uid, at);
  ++record.interval;
}

void Engine::Impl::NoteRunning(const PodUid& uid, const PodFacts& pod) {
  const HeldWork* work = book.Find(uid);
  if (work == nullptr) return;
  if (pod.terminating && !work->leaf.empty()) {
    const auto at = std::ranges::lower_bound(set->quotas, work->leaf, {}, &GpuQuota::name);
    const bool early = at != set->quotas.end() && at->name == work->leaf &&
                       at->release == ReleasePolicy::kOnDeletionTimestamp;
    if (early) book.ReleaseQuota(uid);
  }
  if (work->running || !pod.running_at) return;
  const Instant at = std::max(Past(pod.running_at, latest), work->since);
  MeterEvent event = Event(MeterKind::kRunning, uid, *Find(uid), *work, at);
  event.sequence = ++meter_sequence;
  metering.push_back(std::move(event));
  book.Running(uid, at);
}

// The kubelet is heard of again: what was metered while nobody heard of it goes back.
void Engine::Impl::EndOutage(NodeId id, Instant now) {
  NodeEntry& entry = *nodes[id];
  const Instant lost = *entry.lost_since;
  entry.lost_since.reset();
  for (const Holding& holding : entry.state.holdings()) {
    const HeldWork* work = book.Find(holding.uid);
    if (holding.kind != HoldingKind::kAllocation || work == nullptr) continue;
    const Instant from = std::max(lost, work->since);
    if (from >= now) continue;
    MeterEvent refund = Event(MeterKind::kRefund, holding.uid, *Find(holding.uid), *work, from);
    refund.until = now;
    refund.note = "NodeLost";
    refund.sequence = ++meter_sequence;
    metering.push_back(std::move(refund));
    book.Refund(holding.uid, {from, now});
  }
}

void Engine::Impl::OpenUncharged(NodeId id, Instant now) {
  for (const Holding& holding : nodes[id]->state.holdings()) {
    PodRecord* record = Find(holding.uid);
    if (record == nullptr || book.Find(holding.uid) != nullptr) continue;
    Open(holding.uid, *record, id, Past(record->held_since, now), false, !record->held_since);
  }
}

void Engine::Restore(MeterHistory history) {
  Impl& impl = *impl_;
  impl.heartbeat = history.heartbeat;
  std::vector<std::pair<std::string, DecayedUsage::State>> decay;
  for (DecayRow& row : history.decay) decay.emplace_back(std::move(row.leaf), row.state);
  impl.book.Restore(history.closings, decay);
  for (OpenInterval& interval : history.open) {
    impl.unclaimed.emplace(interval.uid, std::move(interval));
  }
  // Ended uses, put together from their beginnings and ends.
  std::map<std::pair<PodUid, int>, QuotaBook::PastUse> uses;
  for (MeterEvent& event : history.events) {
    const std::pair key(event.uid, event.interval);
    switch (event.kind) {
      case MeterKind::kOpen:
        uses[key] = {event.leaf,
                     event.pod.ns,
                     event.workload_class,
                     std::move(event.parts),
                     event.at,
                     std::nullopt,
                     event.at,
                     1};
        break;
      case MeterKind::kRunning:
        if (const auto use = uses.find(key); use != uses.end()) use->second.running = event.at;
        break;
      case MeterKind::kClose:
      case MeterKind::kVoid:
        if (const auto use = uses.find(key); use != uses.end()) {
          use->second.until = event.at;
          if (use->second.since < event.at) impl.book.AddPast(std::move(use->second));
          uses.erase(use);
        }
        impl.intervals[event.uid] = std::max(impl.intervals[event.uid], event.interval);
        break;
      case MeterKind::kRefund:
        impl.book.AddPast({event.leaf, event.pod.ns, event.workload_class, std::move(event.parts),
                           event.at, std::nullopt, event.until, -1});
        break;
    }
  }
}

void Engine::FinishRestore(Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  for (auto& [uid, interval] : std::exchange(impl.unclaimed, {})) {
    const PodRecord* record = impl.Find(uid);
    // Ended while nobody looked: what the pod itself says, else the last moment somebody metered.
    // One that is still waiting was never bound, whatever was written before its binding.
    const bool never_bound = record != nullptr && !record->terminal;
    const bool told = record != nullptr && record->terminal && record->ended_at;
    MeterEvent event;
    event.kind = never_bound ? MeterKind::kVoid : MeterKind::kClose;
    event.at = never_bound ? interval.since
               : told      ? *record->ended_at
                           : std::min(impl.heartbeat, now);
    event.at = std::max(event.at, interval.since);
    event.estimated = !never_bound && !told;
    event.uid = uid;
    event.interval = interval.interval;
    event.pod = interval.pod;
    event.node = interval.node;
    event.leaf = interval.leaf;
    event.workload_class = interval.workload_class;
    event.parts = interval.parts;
    event.sequence = ++impl.meter_sequence;
    if (event.at > interval.since) {
      impl.book.AddPast({interval.leaf, interval.pod.ns, interval.workload_class, interval.parts,
                         interval.since, interval.running, event.at, 1});
    }
    impl.intervals[uid] = interval.interval;
    impl.metering.push_back(std::move(event));
  }
}

void Engine::StepClock(Instant from, Instant to) {
  Impl& impl = *impl_;
  impl.Advance(from);
  for (const auto& [uid, work] : impl.book.holdings()) {
    PodRecord& record = *impl.Find(uid);
    MeterEvent close = impl.Event(MeterKind::kClose, uid, record, work, from);
    close.sequence = ++impl.meter_sequence;
    close.note = "ClockStep";
    ++record.interval;
    MeterEvent open = impl.Event(MeterKind::kOpen, uid, record, work, to);
    open.sequence = ++impl.meter_sequence;
    open.note = "ClockStep";
    impl.metering.push_back(std::move(close));
    impl.metering.push_back(std::move(open));
  }
  impl.book.Step(from, to);
  impl.Advance(to);
}

void Engine::CloseLedger(bool closed) { impl_->ledger_closed = closed; }

bool Engine::HasMetering() const { return !impl_->metering.empty() || !impl_->closings.empty(); }

std::vector<MeterEvent> Engine::TakeMetering(std::vector<WindowClosing>& closings) {
  closings = std::exchange(impl_->closings, {});
  return std::exchange(impl_->metering, {});
}

Charge Engine::HeldQuanta() const {
  Charge held;
  for (const auto& [uid, work] : impl_->book.holdings()) {
    for (const ModelCharge& part : work.parts) held = AddSaturating(held, part.charge);
  }
  return held;
}

std::vector<DecayRow> Engine::Decay() const {
  std::vector<DecayRow> rows;
  for (auto& [leaf, state] : impl_->book.Decay()) rows.push_back({leaf, state});
  return rows;
}

}  // namespace tranche
