// Charges taken up again after a restart, and over a step of the clock.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "scheduler/engine/teams/metering.h"
#include "topology/base/mark.h"
#include "topology/base/plant.h"

namespace tranche {

void Metering::Restore(MeterHistory history) {
  heartbeat_ = std::max(heartbeat_, history.heartbeat);
  std::vector<std::pair<std::string, DecayedUsage::State>> decay;
  for (DecayRow& row : history.decay) decay.emplace_back(std::move(row.leaf), row.state);
  cluster_.book.Restore(history.closings, decay);
  for (const RestoredUse& use : history.restored) {
    if (use.of == RestoredUse::Of::kBudget) cluster_.book.Resume(use.name, use.stand, use.mark.at);
  }
  // Held at once, before any budget closes a window that counts them already.
  for (OpenInterval& interval : EndOlder(std::move(history.open))) {
    HeldWork work;
    work.pod = interval.pod;
    work.leaf = interval.leaf;
    work.workload_class = interval.workload_class;
    work.parts = interval.parts;
    work.since = interval.since;
    work.running = interval.running;
    cluster_.book.Hold(interval.uid, std::move(work));
    unclaimed.emplace(interval.uid, std::move(interval));
  }
  AddHistory(history.events);
  for (EndedUses& uses : history.ended) {
    cluster_.book.AddPast(uses.kind, uses.lives);
    uses = {};  // a million of them are not held twice
  }
  earlier.NoteEnded(history.ended_numbers);
}

std::vector<OpenInterval> Metering::EndOlder(std::vector<OpenInterval> open) {
  std::ranges::stable_sort(open, [](const OpenInterval& left, const OpenInterval& right) {
    return std::tie(left.uid, left.interval) < std::tie(right.uid, right.interval);
  });
  std::vector<OpenInterval> newest;
  for (OpenInterval& interval : open) {
    if (newest.empty() || newest.back().uid != interval.uid ||
        TRANCHE_PLANTED(two_open_intervals_stay)) {
      newest.push_back(std::move(interval));
      continue;
    }
    // Its end was lost on the way to the ledger. Nobody saw it, and it was before the next began.
    const OpenInterval old = std::exchange(newest.back(), std::move(interval));
    TRANCHE_MARK(ledger_has_two_open);
    HeldWork work;
    work.pod = old.pod;
    work.leaf = old.leaf;
    work.workload_class = old.workload_class;
    work.parts = old.parts;
    const Instant end = std::min(newest.back().since, heartbeat_);
    const Instant at = std::max(end, old.running.value_or(old.since));
    MeterEvent close = Event(MeterKind::kClose, old.uid, old.interval, old.node, work, at);
    close.estimated = true;
    cluster_.outbox.Journal(std::move(close));
    cluster_.outbox.Tell({BookFaultKind::kOpenTwice,
                          fmt::format("expected one use of {} to be open in the ledger, found {} "
                                      "and {}: the older one ends",
                                      old.pod.str(), old.interval, newest.back().interval)});
    if (at > old.since) {
      cluster_.book.AddPast(
          {old.leaf, old.pod.ns, old.workload_class, old.parts, old.since, old.running, at, 1});
    }
  }
  return newest;
}

// Ended uses, put together from their beginnings and ends.
void Metering::AddHistory(std::vector<MeterEvent>& events) {
  // A refund may reach back before the containers ran, and so come before the word that they did.
  std::map<std::pair<PodUid, int>, Instant> running;
  for (const MeterEvent& event : events) {
    if (event.kind == MeterKind::kRunning) running[{event.uid, event.interval}] = event.at;
  }
  std::map<std::pair<PodUid, int>, QuotaBook::PastUse> uses;
  std::vector<EndedNumber> numbers;
  for (MeterEvent& event : events) {
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
          if (use->second.since < event.at) cluster_.book.AddPast(use->second);
          uses.erase(use);
        }
        numbers.push_back({KeyOf(event.uid), event.interval, event.at});
        // It may go on, and was charged until then.
        earlier.NoteRecent(event.uid, event.interval, event.at);
        break;
      case MeterKind::kRefund:
        cluster_.book.AddPast({event.leaf, event.pod.ns, event.workload_class,
                               std::move(event.parts), event.at, ran, event.until, -1});
        break;
    }
  }
  earlier.NoteEnded(numbers);
}

void Metering::CloseUnclaimed(Instant now) {
  if (unclaimed.empty() || TRANCHE_PLANTED(unclaimed_is_never_closed)) return;
  for (const auto& [uid, interval] : std::exchange(unclaimed, {})) {
    const PodRecord* record = cluster_.Find(uid);
    // Ended while nobody looked: what the pod itself says, else the last moment somebody metered.
    // One that is still waiting was never bound, whatever was written before its binding.
    const bool never_bound = record != nullptr && !record->terminal;
    const bool told = record != nullptr && record->terminal && record->ended_at;
    Instant at = never_bound                                          ? interval.since
                 : told                                               ? *record->ended_at
                 : TRANCHE_PLANTED(ended_unseen_is_charged_until_now) ? now
                                                                      : std::min(heartbeat_, now);
    at = std::max(at, never_bound ? interval.since : interval.running.value_or(interval.since));
    RefundLost(uid, interval.interval, interval.node, at);
    MeterEvent event = Event(never_bound ? MeterKind::kVoid : MeterKind::kClose, uid,
                             interval.interval, interval.node, *cluster_.book.Find(uid), at);
    event.estimated = !never_bound && !told;
    cluster_.outbox.Journal(std::move(event));
    cluster_.book.Release(uid, at);
    // A claim may be shown later, where nobody was let see claims before.
    earlier.NoteRecent(uid, interval.interval, at);
  }
}

void Metering::ForgetGone(const std::set<PodUid>& all_claims) {
  std::vector<PodUid> there(all_claims.begin(), all_claims.end());
  for (const auto& [uid, record] : cluster_.pods) there.push_back(uid);
  earlier.KeepOnly(there);
}

std::vector<std::pair<PodUid, HeldWork>> Metering::LiftReservations() {
  std::vector<std::pair<PodUid, HeldWork>> lifted;
  for (const auto& [uid, work] : cluster_.book.holdings()) {
    const PodRecord* record = cluster_.Find(uid);
    if (record == nullptr || !record->node.empty()) continue;
    if (!unclaimed.contains(uid) && !claims.contains(uid)) lifted.emplace_back(uid, work);
  }
  for (const auto& [uid, work] : lifted) {
    Close(uid, *cluster_.Find(uid), MeterKind::kVoid, work.since);
  }
  return lifted;
}

void Metering::StepClock(Instant from, Instant to) {
  std::vector<std::pair<PodUid, HeldWork>> reserved = LiftReservations();
  for (const auto& held : cluster_.book.holdings()) {
    const PodUid& uid = held.first;
    const HeldWork& work = held.second;
    PodRecord* record = cluster_.Find(uid);
    const auto known = unclaimed.find(uid);
    const auto of_claim = claims.find(uid);
    const bool is_claim = of_claim != claims.end();
    const bool claimed = known == unclaimed.end();
    // Of a pod that nobody knows: the audit of the books tells of it.
    if (claimed && !is_claim && record == nullptr) continue;
    int& interval = !claimed   ? known->second.interval
                    : is_claim ? of_claim->second.interval
                               : record->interval;
    const NodeName node = !claimed   ? known->second.node
                          : is_claim ? of_claim->second.node
                                     : record->Place();
    const auto tell = [&](MeterKind kind, Instant at) {
      MeterEvent event = Event(kind, uid, interval, node, work, at);
      event.note = "ClockStep";
      if (kind == MeterKind::kOpen && claimed) event.allocation = AllocationOn(cluster_, node, uid);
      cluster_.outbox.Journal(std::move(event));
    };
    tell(MeterKind::kClose, std::max(from, work.running.value_or(work.since)));
    ++interval;
    tell(MeterKind::kOpen, to);
    if (work.running) tell(MeterKind::kRunning, to);
    if (claimed) continue;
    known->second.since = to;
    if (work.running) known->second.running = to;
  }
  cluster_.book.Step(from, to);
  for (auto& [uid, work] : reserved) {
    const PodRecord& record = *cluster_.Find(uid);
    work.since += to - from;
    MeterEvent open =
        Event(MeterKind::kOpen, uid, record.interval, record.Place(), work, work.since);
    open.note = "ClockStep";
    open.allocation = AllocationOn(cluster_, record.Place(), uid);
    cluster_.outbox.Journal(std::move(open));
    cluster_.book.Hold(uid, std::move(work));
  }
}

}  // namespace tranche
