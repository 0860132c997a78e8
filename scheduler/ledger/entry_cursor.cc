#include <fmt/format.h>

#include <limits>
#include <utility>

#include "scheduler/ledger/journal.h"
#include "topology/base/status.h"

namespace tranche::ledger {

absl::StatusOr<EntryCursor> EntryCursor::Make(Database& database) {
  EntryCursor cursor;
  TRANCHE_ASSIGN_OR_RETURN(const bool workload, HasWorkload(database));
  for (const auto& [statement, sql] :
       {std::pair{&cursor.entries_,
                  "SELECT id, interval, kind, at, written, epoch, flags, note, hash FROM entry "
                  "WHERE id >= ? ORDER BY id"},
        std::pair{&cursor.postings_,
                  "SELECT entry, account, compute, memory FROM posting WHERE entry >= ? "
                  "ORDER BY entry, account"},
        std::pair{&cursor.intervals_,
                  workload ? "SELECT id, uid, number, namespace, pod, node, leaf, class, devices, "
                             "workload FROM interval WHERE id >= ? ORDER BY id"
                           : "SELECT id, uid, number, namespace, pod, node, leaf, class, devices, "
                             "'' FROM interval WHERE id >= ? ORDER BY id"},
        std::pair{&cursor.closing_,
                  "SELECT budget, start, until, amounts FROM window_closing WHERE entry = ?"}}) {
    TRANCHE_ASSIGN_OR_RETURN(*statement, database.Prepare(sql));
  }
  TRANCHE_ASSIGN_OR_RETURN(const bool restored, HasRestored(database));
  if (!restored) return cursor;
  absl::StatusOr<Statement> prepared = database.Prepare(
      "SELECT of, name, model, start, until, compute, memory, detail, source, source_entry "
      "FROM restored WHERE entry = ?");
  if (!prepared.ok()) return prepared.status();
  cursor.restored_ = std::move(*prepared);
  return cursor;
}

absl::Status EntryCursor::Start(int64_t first_id) {
  Finish();
  entries_.Bind(first_id);
  postings_.Bind(first_id);
  TRANCHE_ASSIGN_OR_RETURN(posting_left_, postings_.Row());
  return absl::OkStatus();
}

void EntryCursor::Finish() {
  entries_.Reset();
  postings_.Reset();
  intervals_.Reset();
  closing_.Reset();
  restored_.Reset();
  posting_left_ = false;
  interval_at_ = 0;
}

absl::StatusOr<bool> EntryCursor::Next(EntryRow& entry) {
  TRANCHE_ASSIGN_OR_RETURN(const bool row, entries_.Row());
  if (!row) return false;
  entry.id = entries_.Integer(0);
  entry.interval = entries_.Integer(1);
  entry.kind = static_cast<EntryKind>(entries_.Integer(2));
  entry.at = entries_.Integer(3);
  entry.written = entries_.Integer(4);
  entry.epoch = entries_.Integer(5);
  entry.flags = entries_.Integer(6);
  entry.note = entries_.Bytes(7);
  entry.hash = entries_.Bytes(8);
  absl::Status status = ReadPostings(entry);
  if (status.ok() && entry.kind == EntryKind::kOpen) status = ReadInterval(entry);
  if (status.ok() && entry.kind == EntryKind::kWindow) status = ReadClosing(entry);
  if (status.ok() && entry.kind == EntryKind::kRestored) status = ReadRestored(entry);
  if (!status.ok()) return status;
  return true;
}

absl::Status EntryCursor::ReadPostings(EntryRow& entry) {
  entry.postings.clear();
  while (posting_left_ && postings_.Integer(0) <= entry.id) {
    // A posting of no entry is the foreign key check's to find.
    if (postings_.Integer(0) == entry.id) {
      entry.postings.push_back({postings_.Integer(1), postings_.Integer(2), postings_.Integer(3)});
    }
    TRANCHE_ASSIGN_OR_RETURN(posting_left_, postings_.Row());
  }
  return absl::OkStatus();
}

// Intervals get their ids in the order they are opened, so the scan only moves forward; a jump
// means damage, and the hash will say so.
absl::Status EntryCursor::ReadInterval(EntryRow& entry) {
  if (interval_at_ == 0 || interval_at_ > entry.interval) {
    intervals_.Reset();
    intervals_.Bind(entry.interval);
    interval_at_ = entry.interval - 1;
  }
  while (interval_at_ < entry.interval) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, intervals_.Row());
    interval_at_ = row ? intervals_.Integer(0) : std::numeric_limits<int64_t>::max();
  }
  if (interval_at_ != entry.interval) {
    entry.opened = {};
    return absl::OkStatus();
  }
  // Into the room that the entry before had.
  entry.opened.id = interval_at_;
  entry.opened.uid = intervals_.Bytes(1);
  entry.opened.number = intervals_.Integer(2);
  entry.opened.pod.ns = intervals_.Bytes(3);
  entry.opened.pod.name = intervals_.Bytes(4);
  entry.opened.node = intervals_.Bytes(5);
  entry.opened.leaf = intervals_.Bytes(6);
  entry.opened.workload_class = intervals_.Bytes(7);
  entry.opened.devices = intervals_.Bytes(8);
  entry.opened.workload = intervals_.Bytes(9);
  return absl::OkStatus();
}

absl::Status EntryCursor::ReadClosing(EntryRow& entry) {
  entry.closing = {};
  closing_.Reset();
  closing_.Bind(entry.id);
  TRANCHE_ASSIGN_OR_RETURN(const bool row, closing_.Row());
  if (!row) return absl::OkStatus();
  entry.closing.budget_uid = closing_.Bytes(0);
  entry.closing.span = {Instant(Millis(closing_.Integer(1))), Instant(Millis(closing_.Integer(2)))};
  const bool read = ParseAmounts(closing_.Bytes(3), entry.closing);
  closing_.Reset();
  if (read) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("window_closing of entry {}: expected amounts, found other text", entry.id));
}

absl::Status EntryCursor::ReadRestored(EntryRow& entry) {
  entry.restored = {};
  restored_.Reset();
  restored_.Bind(entry.id);
  TRANCHE_ASSIGN_OR_RETURN(const bool row, restored_.Row());
  if (!row) return absl::OkStatus();
  RestoredUse& use = entry.restored;
  use.of = restored_.Bytes(0) == kOfLeaf ? RestoredUse::Of::kLeaf : RestoredUse::Of::kBudget;
  use.name = restored_.Bytes(1);
  const TimeSpan span{Instant(Millis(restored_.Integer(3))), Instant(Millis(restored_.Integer(4)))};
  const std::optional<Int128> compute = ParseInt128(restored_.Bytes(5));
  const std::optional<Int128> memory = ParseInt128(restored_.Bytes(6));
  use.mark = {std::string(restored_.Bytes(8)), restored_.Integer(9), Instant(Millis(entry.at))};
  if (use.of == RestoredUse::Of::kLeaf) {
    use.use = {std::string(restored_.Bytes(2)), span, {compute.value_or(0), memory.value_or(0)}};
  } else {
    use.stand.at = use.mark.at;
    use.stand.window = span;
  }
  const bool read = compute && memory && ParseDetail(restored_.Bytes(7), use) &&
                    TimeOf(use) == GpuTime{*compute, *memory};
  restored_.Reset();
  if (read) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("restored of entry {}: expected amounts, found other text", entry.id));
}

}  // namespace tranche::ledger
