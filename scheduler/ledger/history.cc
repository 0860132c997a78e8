#include "scheduler/ledger/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/ledger/numbers.h"
#include "topology/base/status.h"

namespace tranche::ledger {

const EndedLives::Use* EndedLives::Shared(const MeterEvent& event) {
  std::string key = fmt::format("{}\n{}\n{}", event.pod.ns, event.leaf, event.workload_class);
  for (const MeterPart& part : event.parts) {
    key += fmt::format("\n{} {} {}", part.model, part.charge.compute, part.charge.memory);
  }
  const auto [found, fresh] = uses_.try_emplace(std::move(key));
  if (fresh) found->second = {event.pod.ns, event.leaf, event.workload_class, event.parts};
  return &found->second;
}

std::size_t EndedLives::Add(const MeterEvent& end, Instant since, std::optional<Instant> running) {
  const Instant until = end.kind == MeterKind::kRefund ? end.until : end.at;
  lives_.push_back({end.uid, since, until, running, Shared(end), end.interval, end.kind});
  return lives_.size() - 1;
}

std::vector<MeterEvent> EndedLives::Take(std::size_t lives) {
  std::vector<MeterEvent> events;
  for (; lives > 0 && !lives_.empty(); --lives) {
    Life life = std::move(lives_.front());
    lives_.pop_front();
    MeterEvent event;
    event.uid = std::move(life.uid);
    event.interval = life.interval;
    event.pod.ns = life.use->ns;
    event.leaf = life.use->leaf;
    event.workload_class = life.use->workload_class;
    event.parts = life.use->parts;
    event.at = life.since;
    if (life.kind != MeterKind::kRefund) events.push_back(event);
    if (life.running) {
      events.push_back(event);
      events.back().kind = MeterKind::kRunning;
      events.back().at = *life.running;
      events.back().parts.clear();
    }
    event.kind = life.kind;
    if (life.kind == MeterKind::kRefund) {
      event.until = life.until;
    } else {
      event.at = life.until;
    }
    events.push_back(std::move(event));
  }
  return events;
}

HistoryBuilder::HistoryBuilder(Instant from, const AccountTable& accounts, Lookup lookup,
                               EndedLives* ended)
    : from_(MillisOf(from)), accounts_(accounts), lookup_(std::move(lookup)), ended_(ended) {}

MeterEvent HistoryBuilder::FromOpen(const EntryRow& entry) const {
  MeterEvent event;
  event.sequence = static_cast<uint64_t>(entry.id);
  event.kind = MeterKind::kOpen;
  event.at = At(entry.at);
  event.uid = PodUid(entry.opened.uid);
  event.interval = static_cast<int>(entry.opened.number);
  event.pod = entry.opened.pod;
  event.node = NodeName(entry.opened.node);
  event.leaf = entry.opened.leaf;
  event.workload_class = entry.opened.workload_class;
  event.devices = entry.opened.devices;
  for (const Posting& posting : entry.postings) {
    const auto account = accounts_.find(posting.account);
    if (account == accounts_.end() || account->second.kind != kHeld) continue;
    event.parts.push_back({account->second.model, {posting.compute, posting.memory}});
  }
  event.estimated = (entry.flags & kEstimatedFlag) != 0;
  event.note = entry.note;
  return event;
}

MeterEvent HistoryBuilder::Like(const MeterEvent& open, const EntryRow& entry, MeterKind kind) {
  MeterEvent event = open;
  event.devices.clear();
  event.sequence = static_cast<uint64_t>(entry.id);
  event.kind = kind;
  event.at = At(entry.at);
  event.estimated = (entry.flags & kEstimatedFlag) != 0;
  event.note = entry.note;
  if (kind == MeterKind::kRunning) event.parts.clear();
  return event;
}

absl::StatusOr<HistoryBuilder::Known*> HistoryBuilder::Find(int64_t interval) {
  const auto [found, inserted] = known_.try_emplace(interval);
  Known& known = found->second;
  if (!inserted) return &known;
  TRANCHE_ASSIGN_OR_RETURN(const EntryRow open, lookup_(interval, EntryKind::kOpen));
  if (open.id == 0) {
    return absl::DataLossError(
        fmt::format("rule 4: expected an open entry of interval {}, found none", interval));
  }
  known.open = FromOpen(open);
  TRANCHE_ASSIGN_OR_RETURN(const EntryRow running, lookup_(interval, EntryKind::kRunning));
  if (running.id != 0) known.running = Like(known.open, running, MeterKind::kRunning);
  return &known;
}

void HistoryBuilder::Give(Known& known) {
  if (std::exchange(known.given, true)) return;
  events_.push_back(known.open);
  events_.back().devices.clear();  // of what is open alone
  if (known.running) events_.push_back(*known.running);
}

void HistoryBuilder::GiveEnd(Known& known, const MeterEvent& end) {
  if (ended_ == nullptr) {
    Give(known);
    events_.push_back(end);
    return;
  }
  ended_->Add(end, known.open.at, known.running ? std::optional(known.running->at) : std::nullopt);
}

void HistoryBuilder::GiveRefund(Known& known, MeterEvent refund) {
  if (ended_ == nullptr) {
    events_.push_back(std::move(refund));
    return;
  }
  const std::size_t place = ended_->Add(
      refund, refund.at, known.running ? std::optional(known.running->at) : std::nullopt);
  if (!known.running) known.refunds.push_back(place);
}

absl::Status HistoryBuilder::Add(const EntryRow& entry) {
  if (entry.kind == EntryKind::kWindow || entry.kind == EntryKind::kRestored) {
    return absl::OkStatus();
  }
  if (entry.kind == EntryKind::kOpen) {
    Known& known = known_[entry.interval];
    known.open = FromOpen(entry);
    if (entry.at >= from_ && ended_ == nullptr) Give(known);
    return absl::OkStatus();
  }
  if (entry.kind == EntryKind::kRefundStart) {
    refund_ = entry;
    return absl::OkStatus();
  }
  TRANCHE_ASSIGN_OR_RETURN(Known* const found, Find(entry.interval));
  Known& known = *found;
  switch (entry.kind) {
    case EntryKind::kRunning:
      if (known.running) break;  // looked up just now
      known.running = Like(known.open, entry, MeterKind::kRunning);
      if (known.given) events_.push_back(*known.running);
      for (const std::size_t place : known.refunds) ended_->SetRunning(place, known.running->at);
      break;
    case EntryKind::kClose:
    case EntryKind::kVoid:
      if (entry.at >= from_) {
        GiveEnd(known,
                Like(known.open, entry,
                     entry.kind == EntryKind::kClose ? MeterKind::kClose : MeterKind::kVoid));
      }
      known_.erase(entry.interval);
      break;
    case EntryKind::kRefundEnd:
      if (entry.at >= from_ && refund_.interval == entry.interval) {
        MeterEvent event = Like(known.open, refund_, MeterKind::kRefund);
        event.until = At(entry.at);
        event.parts.clear();
        for (const Posting& posting : refund_.postings) {
          const Account& account = accounts_.at(posting.account);
          if (account.kind == kRefunded) {
            event.parts.push_back({account.model, {posting.compute, posting.memory}});
          }
        }
        GiveRefund(known, std::move(event));
      }
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

std::vector<MeterEvent> HistoryBuilder::EndAllButNewest(std::vector<OpenInterval>& open) {
  std::vector<MeterEvent> ends;
  const auto older = [&open, &ends](OpenInterval& interval) {
    const OpenInterval* const next = &interval + 1;
    if (next == open.data() + open.size() || next->uid != interval.uid) return false;
    MeterEvent end;
    end.kind = MeterKind::kClose;
    end.at = std::max(interval.since, next->since);
    end.uid = interval.uid;
    end.interval = interval.interval;
    end.pod = interval.pod;
    end.node = interval.node;
    end.leaf = interval.leaf;
    end.workload_class = interval.workload_class;
    end.parts = interval.parts;
    end.estimated = true;
    end.note = kEndLost;
    ends.push_back(std::move(end));
    return true;
  };
  // Looks one further, so before anything moves.
  std::vector<OpenInterval> newest;
  for (OpenInterval& interval : open) {
    if (!older(interval)) newest.push_back(std::move(interval));
  }
  open = std::move(newest);
  return ends;
}

absl::StatusOr<std::vector<MeterEvent>> HistoryBuilder::Finish(const std::vector<int64_t>& open,
                                                               MeterHistory& history) {
  for (const int64_t interval : open) {
    TRANCHE_ASSIGN_OR_RETURN(Known* const found, Find(interval));
    Known& known = *found;
    Give(known);
    const MeterEvent& event = known.open;
    OpenInterval row{event.uid,   event.interval, event.pod,
                     event.node,  event.leaf,     event.workload_class,
                     event.parts, event.at,       std::nullopt};
    if (known.running) row.running = known.running->at;
    row.devices = event.devices;
    history.open.push_back(std::move(row));
  }
  std::sort(history.open.begin(), history.open.end(),
            [](const OpenInterval& left, const OpenInterval& right) {
              return std::tie(left.uid, left.interval) < std::tie(right.uid, right.interval);
            });
  known_.clear();
  std::vector<MeterEvent> ends = EndAllButNewest(history.open);
  for (const MeterEvent& end : ends) events_.push_back(end);
  std::sort(events_.begin(), events_.end(), [](const MeterEvent& left, const MeterEvent& right) {
    return std::tie(left.at, left.sequence) < std::tie(right.at, right.sequence);
  });
  history.events = std::move(events_);
  return ends;
}

}  // namespace tranche::ledger
