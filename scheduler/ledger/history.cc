#include "scheduler/ledger/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/ledger/sqlite/numbers.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

// What the entry says of accounts of that kind.
std::vector<MeterPart> PartsOf(const EntryRow& entry, const AccountTable& accounts,
                               std::string_view kind) {
  std::vector<MeterPart> parts;
  for (const Posting& posting : entry.postings) {
    const auto account = accounts.find(posting.account);
    if (account == accounts.end() || account->second.kind != kind) continue;
    parts.push_back({account->second.model, {posting.compute, posting.memory}});
  }
  return parts;
}

absl::Status NoOpenEntry(int64_t interval) {
  return absl::DataLossError(
      fmt::format("rule 4: expected an open entry of interval {}, found none", interval));
}

}  // namespace

EndedReader::EndedReader(Instant from, const AccountTable& accounts, EntryLookup lookup)
    : from_(MillisOf(from)), accounts_(accounts), lookup_(std::move(lookup)) {}

std::size_t EndedReader::PlaceOf(PastKind kind) {
  const auto [place, fresh] = places_.try_emplace(std::move(kind), kinds_.size());
  if (fresh) kinds_.push_back({place->first, {}});
  return place->second;
}

std::size_t EndedReader::KindOf(const EntryRow& open) {
  const IntervalRow& row = open.opened;
  key_.clear();
  for (const std::string* text : {&row.pod.ns, &row.leaf, &row.workload_class}) {
    key_.append(*text).push_back('\0');
  }
  for (const Posting& posting : open.postings) {
    key_.append(reinterpret_cast<const char*>(&posting), sizeof(posting));
  }
  const auto [found, fresh] = known_.try_emplace(key_);
  if (fresh) {
    found->second = PlaceOf(
        {row.leaf, row.pod.ns, row.workload_class, PartsOf(open, accounts_, kHeld), /*sign=*/1});
  }
  return found->second;
}

EndedReader::Open EndedReader::FromOpen(const EntryRow& entry) {
  return {KindOf(entry),
          {KeyOf(PodUid(entry.opened.uid)), static_cast<int>(entry.opened.number), At(entry.at)},
          {.since = At(entry.at), .until = At(entry.at)}};
}

absl::StatusOr<EndedReader::Open*> EndedReader::Find(int64_t interval) {
  const auto [found, fresh] = open_.try_emplace(interval);
  if (!fresh) return &found->second;
  TRANCHE_ASSIGN_OR_RETURN(const EntryRow open, lookup_(interval, EntryKind::kOpen));
  if (open.id == 0) return NoOpenEntry(interval);
  found->second = FromOpen(open);
  TRANCHE_ASSIGN_OR_RETURN(const EntryRow running, lookup_(interval, EntryKind::kRunning));
  if (running.id != 0) found->second.life.running = At(running.at);
  return &found->second;
}

void EndedReader::AddRefund(int64_t interval, const Open& open, const EntryRow& end) {
  PastKind kind = kinds_[open.kind].kind;
  kind.sign = -1;
  kind.parts = PartsOf(refund_, accounts_, kRefunded);
  const std::size_t place = PlaceOf(std::move(kind));
  std::vector<PastLife>& lives = kinds_[place].lives;
  lives.push_back({At(refund_.at), open.life.running, At(end.at)});
  if (open.life.running == PastLife::kNeverRan) {
    early_refunds_.emplace(interval, Place{place, lives.size() - 1});
  }
}

absl::Status EndedReader::Add(const EntryRow& entry) {
  switch (entry.kind) {
    case EntryKind::kWindow:
    case EntryKind::kRestored:
    case EntryKind::kFleet:
    case EntryKind::kPrice:
    case EntryKind::kStranded:
      return absl::OkStatus();
    case EntryKind::kOpen:
      open_[entry.interval] = FromOpen(entry);
      return absl::OkStatus();
    case EntryKind::kRefundStart:
      refund_ = entry;
      return absl::OkStatus();
    default:
      break;
  }
  TRANCHE_ASSIGN_OR_RETURN(Open* const open, Find(entry.interval));
  if (entry.kind == EntryKind::kRunning) {
    if (open->life.running != PastLife::kNeverRan) return absl::OkStatus();  // looked up just now
    open->life.running = At(entry.at);
    const auto [first, last] = early_refunds_.equal_range(entry.interval);
    for (auto refund = first; refund != last; ++refund) {
      kinds_[refund->second.kind].lives[refund->second.life].running = open->life.running;
    }
    early_refunds_.erase(first, last);
  } else if (entry.kind == EntryKind::kRefundEnd) {
    if (entry.at >= from_ && refund_.interval == entry.interval) {
      AddRefund(entry.interval, *open, entry);
    }
  } else {
    if (entry.at >= from_) {
      open->life.until = At(entry.at);
      // One that lasted no time still had its number.
      if (open->life.since < open->life.until) kinds_[open->kind].lives.push_back(open->life);
      open->number.ended = At(entry.at);
      numbers_.push_back(open->number);
    }
    open_.erase(entry.interval);
    early_refunds_.erase(entry.interval);
  }
  return absl::OkStatus();
}

absl::Status EndedReader::Finish(MeterHistory& history) {
  // The word that it ran may come after what was read.
  for (const auto& [interval, refund] : early_refunds_) {
    TRANCHE_ASSIGN_OR_RETURN(const EntryRow running, lookup_(interval, EntryKind::kRunning));
    if (running.id != 0) kinds_[refund.kind].lives[refund.life].running = At(running.at);
  }
  std::erase_if(kinds_, [](const EndedUses& uses) { return uses.lives.empty(); });
  history.ended = std::move(kinds_);
  history.ended_numbers = std::move(numbers_);
  return absl::OkStatus();
}

HistoryBuilder::HistoryBuilder(Instant from, const AccountTable& accounts, EntryLookup lookup)
    : from_(MillisOf(from)), accounts_(accounts), lookup_(std::move(lookup)) {}

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
  event.parts = PartsOf(entry, accounts_, kHeld);
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
  if (open.id == 0) return NoOpenEntry(interval);
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

absl::Status HistoryBuilder::Add(const EntryRow& entry) {
  // Of no interval.
  if (entry.kind >= EntryKind::kWindow) return absl::OkStatus();
  if (entry.kind == EntryKind::kOpen) {
    Known& known = known_[entry.interval];
    known.open = FromOpen(entry);
    if (entry.at >= from_) Give(known);
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
      break;
    case EntryKind::kClose:
    case EntryKind::kVoid:
      if (entry.at >= from_) {
        Give(known);
        events_.push_back(
            Like(known.open, entry,
                 entry.kind == EntryKind::kClose ? MeterKind::kClose : MeterKind::kVoid));
      }
      known_.erase(entry.interval);
      break;
    case EntryKind::kRefundEnd:
      if (entry.at >= from_ && refund_.interval == entry.interval) {
        MeterEvent event = Like(known.open, refund_, MeterKind::kRefund);
        event.until = At(entry.at);
        event.parts = PartsOf(refund_, accounts_, kRefunded);
        events_.push_back(std::move(event));
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
