// From holdings to quota and the ledger's journal.
//
// A pod is charged from its reservation (or from when the cluster says it was bound) until it has
// ended. What the ledger had open before a restart is taken up again, never charged twice.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/index/charge_of.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

// The clock of another machine may be ahead of ours; nothing is charged before it happens here.
Instant Past(std::optional<Instant> told, Instant now) { return std::min(told.value_or(now), now); }

}  // namespace

MeterEvent Engine::Impl::Event(MeterKind kind, const PodUid& uid, int interval,
                               const NodeName& node, const HeldWork& work, Instant at) const {
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
  return event;
}

// What was metered of the pod until `until` while nobody heard of its node goes back.
void Engine::Impl::RefundLost(const PodUid& uid, int interval, const NodeName& node,
                              Instant until) {
  const NodeId id = names.Find(node.str());
  if (id == kNoNode || nodes[id] == nullptr || !nodes[id]->lost_since) return;
  const HeldWork& work = *book.Find(uid);
  const Instant from = std::max(*nodes[id]->lost_since, work.since);
  if (from >= until) return;
  MeterEvent refund = Event(MeterKind::kRefund, uid, interval, node, work, from);
  refund.until = until;
  refund.note = "NodeLost";
  TRANCHE_MARK(lost_node_refunded);
  outbox.Journal(std::move(refund));
  book.Refund(uid, {from, until});
}

std::optional<Allocation> Engine::Impl::AllocationOn(const NodeName& node,
                                                     const PodUid& uid) const {
  const NodeId id = names.Find(node.str());
  const Holding* holding =
      id == kNoNode || nodes[id] == nullptr ? nullptr : nodes[id]->state.Find(uid);
  return holding == nullptr ? std::nullopt : holding->allocation;
}

void Engine::Impl::Open(const PodUid& uid, PodRecord& record, NodeId id, Instant at, bool demoted,
                        bool estimated) {
  if (nodes[id] == nullptr) return;
  const NodeState& state = nodes[id]->state;
  const Holding* holding = state.Find(uid);
  if (holding == nullptr || holding->kind == HoldingKind::kClaim) return;
  if (const auto known = unclaimed.find(uid); known != unclaimed.end()) {
    record.interval = known->second.interval;
    unclaimed.erase(known);
    book.DeclareGang(uid, record.request->gang);
    if (record.request->expected_runtime) {
      book.DeclareRuntime(uid, *record.request->expected_runtime, latest);
    }
    return;
  }
  // Nobody has told yet what the node's GPUs are; the pod is charged when somebody does.
  if (!state.present() || book.Find(uid) != nullptr) return;
  const Standing standing =
      book.StandingOf(record.request->name.ns, record.request->priority_class);
  HeldWork work = WorkOf(*record.request, standing, at);
  work.parts = ChargeOfPicks(state.inventory(), *record.request, holding->picks);
  // A record that does not describe the node's devices is not believed in this either.
  const bool told = holding->known && holding->allocation && !holding->allocation->leaf.empty();
  if (told) work.leaf = holding->allocation->leaf;
  work.demoted = demoted;
  if (work.parts.empty()) return;
  if (const auto before = intervals.find(uid); before != intervals.end()) {
    record.interval = std::max(record.interval, before->second + 1);
    intervals.erase(before);
  }
  MeterEvent event = Event(MeterKind::kOpen, uid, record.interval, record.Place(), work, at);
  event.estimated = estimated;
  event.allocation = holding->allocation;
  outbox.Journal(std::move(event));
  book.Hold(uid, std::move(work));
}

void Engine::Impl::Close(const PodUid& uid, PodRecord& record, MeterKind kind, Instant at) {
  const HeldWork* work = book.Find(uid);
  if (work == nullptr || unclaimed.contains(uid)) return;
  at = kind == MeterKind::kVoid ? work->since : std::max(at, work->running.value_or(work->since));
  RefundLost(uid, record.interval, record.Place(), at);
  if (kind == MeterKind::kClose) RefundLostWork(uid, record, at);
  outbox.Journal(Event(kind, uid, record.interval, record.Place(), *work, at));
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
    if (early && !work->released) {
      book.ReleaseQuota(uid);
      // A deletion that has only begun is no event to pods that wait.
      PokeAdmitted(latest);
    }
  }
  if (work->running || !pod.running_at) return;
  const Instant at = std::max(Past(pod.running_at, latest), work->since);
  const PodRecord& record = *Find(uid);
  outbox.Journal(Event(MeterKind::kRunning, uid, record.interval, record.Place(), *work, at));
  book.Running(uid, at);
}

void Engine::Impl::ForgetTeams() {
  shapes.clear();
  policy_of_namespace.clear();
}

// The kubelet is heard of again: what was metered while nobody heard of it goes back.
void Engine::Impl::EndOutage(NodeId id, Instant now) {
  NodeEntry& entry = *nodes[id];
  for (const Holding& holding : entry.state.holdings()) {
    if (holding.kind != HoldingKind::kAllocation || book.Find(holding.uid) == nullptr) continue;
    RefundLost(holding.uid, Find(holding.uid)->interval, names.name(id), now);
  }
  entry.lost_since.reset();
}

void Engine::Impl::OpenUncharged(NodeId id, Instant now) {
  for (const Holding& holding : nodes[id]->state.holdings()) {
    PodRecord* record = Find(holding.uid);
    if (record == nullptr || book.Find(holding.uid) != nullptr) continue;
    Open(holding.uid, *record, id, Past(record->held_since, now), false, !record->held_since);
  }
}

void Engine::Impl::Adopt(Instant now) {
  std::vector<PodUid> orphans;
  for (const auto& [uid, work] : book.holdings()) {
    if (!work.leaf.empty() || unclaimed.contains(uid) || dra_books.held.contains(uid)) continue;
    const PodRecord& record = *Find(uid);
    const Standing standing =
        book.StandingOf(record.request->name.ns, record.request->priority_class);
    if (standing.leaf != kNoQuota) orphans.push_back(uid);
  }
  for (const PodUid& uid : orphans) {
    PodRecord& record = *Find(uid);
    const bool ran = book.Find(uid)->running.has_value();
    Close(uid, record, MeterKind::kClose, now);
    Open(uid, record, names.Find(record.Place().str()), now, false, false);
    const HeldWork* work = book.Find(uid);
    if (!ran || work == nullptr) continue;
    outbox.Journal(Event(MeterKind::kRunning, uid, record.interval, record.Place(), *work, now));
    book.Running(uid, now);
  }
  DraDesk(*this).Adopt(now);
}

void Engine::Restore(MeterHistory history) {
  Impl& impl = *impl_;
  impl.heartbeat = history.heartbeat;
  std::vector<std::pair<std::string, DecayedUsage::State>> decay;
  for (DecayRow& row : history.decay) decay.emplace_back(std::move(row.leaf), row.state);
  impl.book.Restore(history.closings, decay);
  for (const RestoredUse& use : history.restored) {
    if (use.of == RestoredUse::Of::kBudget) impl.book.Resume(use.name, use.stand, use.mark.at);
  }
  // Held at once, before any budget closes a window that counts them already.
  for (OpenInterval& interval : history.open) {
    HeldWork work;
    work.pod = interval.pod;
    work.leaf = interval.leaf;
    work.workload_class = interval.workload_class;
    work.parts = interval.parts;
    work.since = interval.since;
    work.running = interval.running;
    impl.book.Hold(interval.uid, std::move(work));
    impl.unclaimed.emplace(interval.uid, std::move(interval));
  }
  // A refund may reach back before the containers ran, and so come before the word that they did.
  std::map<std::pair<PodUid, int>, Instant> running;
  for (const MeterEvent& event : history.events) {
    if (event.kind == MeterKind::kRunning) running[{event.uid, event.interval}] = event.at;
  }
  // Ended uses, put together from their beginnings and ends.
  std::map<std::pair<PodUid, int>, QuotaBook::PastUse> uses;
  for (MeterEvent& event : history.events) {
    const std::pair key(event.uid, event.interval);
    std::optional<Instant> ran;
    if (const auto at = running.find(key); at != running.end()) ran = at->second;
    switch (event.kind) {
      case MeterKind::kOpen:
        uses[key] = {event.leaf,
                     event.pod.ns,
                     event.workload_class,
                     std::move(event.parts),
                     event.at,
                     ran,
                     event.at,
                     1};
        break;
      case MeterKind::kRunning:
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
                           event.at, ran, event.until, -1});
        break;
    }
  }
}

void Engine::RestoreUse(const std::vector<RestoredUse>& uses, Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  for (const RestoredUse& use : uses) {
    if (use.of == RestoredUse::Of::kBudget) impl.book.Resume(use.name, use.stand, now);
  }
  // What budgets say of teams has changed.
  impl.ForgetTeams();
  impl.NoteChange();
}

std::map<std::string, BudgetStand> Engine::BudgetStands(Instant now) {
  impl_->Advance(now);
  return impl_->book.BudgetStands(now);
}

void Engine::FinishRestore(Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  DraDesk(impl).FinishRestore(now);
  for (const auto& [uid, interval] : std::exchange(impl.unclaimed, {})) {
    const PodRecord* record = impl.Find(uid);
    // Ended while nobody looked: what the pod itself says, else the last moment somebody metered.
    // One that is still waiting was never bound, whatever was written before its binding.
    const bool never_bound = record != nullptr && !record->terminal;
    const bool told = record != nullptr && record->terminal && record->ended_at;
    Instant at = never_bound ? interval.since
                 : told      ? *record->ended_at
                             : std::min(impl.heartbeat, now);
    at = std::max(at, never_bound ? interval.since : interval.running.value_or(interval.since));
    impl.RefundLost(uid, interval.interval, interval.node, at);
    MeterEvent event = impl.Event(never_bound ? MeterKind::kVoid : MeterKind::kClose, uid,
                                  interval.interval, interval.node, *impl.book.Find(uid), at);
    event.estimated = !never_bound && !told;
    impl.outbox.Journal(std::move(event));
    impl.book.Release(uid, at);
    impl.intervals[uid] = interval.interval;
  }
  impl.Adopt(now);
  impl.StartKeepers(now);
  impl.ContinueReclaims(now);
  impl.RestoreGangs(now);
}

void Engine::StepClock(Instant from, Instant to) {
  Impl& impl = *impl_;
  impl.Advance(from);
  for (const auto& held : impl.book.holdings()) {
    const PodUid& uid = held.first;
    const HeldWork& work = held.second;
    PodRecord* record = impl.Find(uid);
    const auto known = impl.unclaimed.find(uid);
    const auto of_claim = impl.dra_books.held.find(uid);
    const bool is_claim = of_claim != impl.dra_books.held.end();
    const bool claimed = known == impl.unclaimed.end();
    int& interval = !claimed   ? known->second.interval
                    : is_claim ? of_claim->second.interval
                               : record->interval;
    const NodeName node = !claimed   ? known->second.node
                          : is_claim ? of_claim->second.node
                                     : record->Place();
    const auto tell = [&](MeterKind kind, Instant at) {
      MeterEvent event = impl.Event(kind, uid, interval, node, work, at);
      event.note = "ClockStep";
      if (kind == MeterKind::kOpen && claimed) event.allocation = impl.AllocationOn(node, uid);
      impl.outbox.Journal(std::move(event));
    };
    tell(MeterKind::kClose, std::max(from, work.running.value_or(work.since)));
    ++interval;
    tell(MeterKind::kOpen, to);
    if (work.running) tell(MeterKind::kRunning, to);
    if (claimed) continue;
    known->second.since = to;
    if (work.running) known->second.running = to;
  }
  impl.book.Step(from, to);
  impl.Advance(to);
}

void Engine::CloseLedger(bool closed) { impl_->ledger_closed = closed; }

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
