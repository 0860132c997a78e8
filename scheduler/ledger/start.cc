#include "scheduler/ledger/start.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "scheduler/ledger/entry_check.h"
#include "scheduler/ledger/history.h"
#include "scheduler/ledger/journal.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

absl::Status Bad(std::string text) { return absl::DataLossError(std::move(text)); }

// Entries read one by one or in order, each checked against the hash before it.
class CheckedEntries {
 public:
  static absl::StatusOr<CheckedEntries> Make(Database& database, const AccountTable& accounts) {
    CheckedEntries entries(accounts);
    absl::StatusOr<EntryCursor> cursor = EntryCursor::Make(database);
    absl::StatusOr<Statement> before =
        database.Prepare("SELECT hash, epoch FROM entry WHERE id = ?");
    absl::StatusOr<Statement> find =
        database.Prepare("SELECT id FROM entry WHERE interval = ? AND kind = ? AND kind <= 4");
    for (const absl::Status& status : {cursor.status(), before.status(), find.status()}) {
      if (!status.ok()) return status;
    }
    entries.cursor_ = std::move(*cursor);
    entries.before_ = std::move(*before);
    entries.find_ = std::move(*find);
    return entries;
  }

  absl::Status Start(int64_t first) {
    checker_.StartAfter(0, kNoHash, 0);
    if (first > 1) {
      before_.Bind(first - 1);
      TRANCHE_ASSIGN_OR_RETURN(const bool row, before_.Row());
      if (!row) return Bad(fmt::format("rule 5: expected entry {}, found none", first - 1));
      checker_.StartAfter(first - 1, std::string(before_.Bytes(0)), before_.Integer(1));
      before_.Reset();
    }
    return cursor_.Start(first);
  }

  absl::StatusOr<bool> Next(EntryRow& entry) {
    const absl::StatusOr<bool> row = cursor_.Next(entry);
    if (!row.ok() || !*row) return row;
    faults_.clear();
    checker_.Check(entry, faults_);
    if (!faults_.empty()) return Bad(faults_.front());
    return true;
  }

  void Finish() { cursor_.Finish(); }

  absl::StatusOr<EntryRow> One(int64_t id) {
    EntryRow entry;
    TRANCHE_RETURN_IF_ERROR(Start(id));
    const absl::StatusOr<bool> row = Next(entry);
    Finish();
    if (!row.ok()) return row.status();
    if (!*row) return Bad(fmt::format("rule 5: expected entry {}, found none", id));
    return entry;
  }

  absl::StatusOr<EntryRow> Of(int64_t interval, EntryKind kind) {
    find_.Bind(interval, static_cast<int64_t>(kind));
    TRANCHE_ASSIGN_OR_RETURN(const bool row, find_.Row());
    if (!row) return EntryRow();
    const int64_t id = find_.Integer(0);
    find_.Reset();
    return One(id);
  }

 private:
  explicit CheckedEntries(const AccountTable& accounts) : checker_(accounts) {}
  EntryChecker checker_;
  EntryCursor cursor_;
  Statement before_;
  Statement find_;
  std::vector<std::string> faults_;
};

using Sums = std::map<int64_t, Posting>;

absl::StatusOr<Sums> ReadSums(Database& database, const char* table) {
  TRANCHE_ASSIGN_OR_RETURN(Statement rows, database.Prepare(fmt::format(
                                               "SELECT account, compute, memory FROM {}", table)));
  Sums sums;
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, rows.Row());
    if (!row) return sums;
    sums[rows.Integer(0)] = {rows.Integer(0), rows.Integer(1), rows.Integer(2)};
  }
}

absl::Status CompareSums(const Sums& expected, const Sums& found) {
  for (const Sums* accounts : {&expected, &found}) {
    for (const auto& [account, unused] : *accounts) {
      const auto want = expected.find(account);
      const auto have = found.find(account);
      const Posting left = want == expected.end() ? Posting{account, 0, 0} : want->second;
      const Posting right = have == found.end() ? Posting{account, 0, 0} : have->second;
      if (left == right) continue;
      return Bad(fmt::format("rule 2: account {}: expected balance {}, {}, found {}, {}", account,
                             left.compute, left.memory, right.compute, right.memory));
    }
  }
  return absl::OkStatus();
}

// Hands on every entry that the rows name.
template <typename Take>
absl::Status ReadEntries(Statement& rows, CheckedEntries& entries, Take take) {
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, rows.Row());
    if (!row) return absl::OkStatus();
    TRANCHE_ASSIGN_OR_RETURN(EntryRow entry, entries.One(rows.Integer(0)));
    take(std::move(entry));
  }
}

absl::Status ReadClosings(Database& database, CheckedEntries& entries, MeterHistory& history) {
  absl::StatusOr<Statement> rows = database.Prepare(
      "SELECT max(entry) FROM window_closing GROUP BY budget, start "
      "ORDER BY budget, start");
  if (!rows.ok()) return rows.status();
  return ReadEntries(*rows, entries, [&history](EntryRow entry) {
    history.closings.push_back(std::move(entry.closing));
  });
}

absl::Status ReadRestored(Database& database, CheckedEntries& entries, MeterHistory& history) {
  absl::StatusOr<Statement> rows = database.Prepare(
      "SELECT r.entry FROM restored r JOIN entry e ON e.id = r.entry WHERE e.at >= ? "
      "ORDER BY r.entry");
  if (!rows.ok()) return rows.status();
  rows->Bind(history.from.time_since_epoch().count());
  return ReadEntries(*rows, entries, [&history](EntryRow entry) {
    history.restored.push_back(std::move(entry.restored));
  });
}

absl::Status ReadDecay(Database& database, MeterHistory& history) {
  TRANCHE_ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT leaf, quanta, at, usage_high, usage_low, seal FROM decay ORDER BY leaf"));
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, rows.Row());
    if (!row) return absl::OkStatus();
    DecayRow decay;
    decay.leaf = rows.Bytes(0);
    decay.state = {rows.Integer(1), Instant(Millis(rows.Integer(2))), rows.Integer(3),
                   static_cast<uint64_t>(rows.Integer(4))};
    Seal seal;
    seal.Add(decay.leaf);
    for (int column = 1; column <= 4; ++column) seal.Add(rows.Integer(column));
    if (seal.value() != rows.Integer(5)) {
      return Bad(fmt::format("decay of leaf '{}': expected seal {}, found {}", decay.leaf,
                             seal.value(), rows.Integer(5)));
    }
    history.decay.push_back(std::move(decay));
  }
}

absl::StatusOr<std::vector<int64_t>> OpenNow(Database& database) {
  TRANCHE_ASSIGN_OR_RETURN(
      Statement rows, database.Prepare("SELECT interval FROM open_interval ORDER BY interval"));
  std::vector<int64_t> open;
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, rows.Row());
    if (!row) return open;
    open.push_back(rows.Integer(0));
  }
}

// One walk over the tail: checks it, sums it up, and hands what is recent to the history.
absl::Status Walk(Database& database, CheckedEntries& entries, HistoryBuilder& builder,
                  int64_t recent, StartState& state) {
  TRANCHE_ASSIGN_OR_RETURN(const std::optional<int64_t> checked, ReadMeta(database, kCheckedKey));
  const int64_t summed = checked.value_or(0);
  TRANCHE_ASSIGN_OR_RETURN(Sums sums, ReadSums(database, "checked_balance"));
  const int64_t first = std::max<int64_t>(1, std::min(summed + 1, recent));
  TRANCHE_RETURN_IF_ERROR(entries.Start(first));
  EntryRow entry;
  state.last_entry = first - 1;
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, entries.Next(entry));
    if (!row) break;
    state.last_entry = entry.id;
    if (entry.id > summed) {
      for (const Posting& posting : entry.postings) {
        Posting& sum = sums[posting.account];
        sum.compute += posting.compute;
        sum.memory += posting.memory;
        sum.account = posting.account;
      }
    }
    if (entry.id < recent) continue;
    TRANCHE_RETURN_IF_ERROR(builder.Add(entry));
  }
  entries.Finish();
  if (state.last_entry < summed) {
    return Bad(fmt::format("rule 5: expected entry {}, found entry {} as the last", summed,
                           state.last_entry));
  }
  TRANCHE_ASSIGN_OR_RETURN(const Sums balances, ReadSums(database, "balance"));
  return CompareSums(sums, balances);
}

}  // namespace

absl::StatusOr<StartState> CheckAndReadHistory(Database& database, Instant from, PastForm form) {
  StartState state;
  state.history.from = from;
  TRANCHE_ASSIGN_OR_RETURN(const AccountTable accounts, ReadAccounts(database));
  TRANCHE_ASSIGN_OR_RETURN(CheckedEntries entries, CheckedEntries::Make(database, accounts));
  absl::StatusOr<CheckedEntries> single = CheckedEntries::Make(database, accounts);
  if (!single.ok()) return single.status();
  HistoryBuilder builder(
      from, accounts,
      [&single](int64_t interval, EntryKind kind) { return single->Of(interval, kind); },
      form == PastForm::kPieces ? &state.ended : nullptr);
  TRANCHE_ASSIGN_OR_RETURN(state.epoch, ReadLastEpoch(database));
  // The second half of a refund may be recent when the first is not: one entry earlier.
  const absl::StatusOr<int64_t> recent = database.Integer(
      fmt::format("SELECT coalesce(min(id) - 1, 1 << 62) FROM entry INDEXED BY entry_at "
                  "WHERE at >= {}",
                  from.time_since_epoch().count()));
  if (!recent.ok()) return recent.status();
  absl::Status status = Walk(database, entries, builder, *recent, state);
  if (!status.ok()) return status;
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<int64_t> open, OpenNow(database));
  TRANCHE_ASSIGN_OR_RETURN(state.lost_ends, builder.Finish(open, state.history));
  status = ReadClosings(database, *single, state.history);
  if (status.ok()) status = ReadRestored(database, *single, state.history);
  if (status.ok()) status = ReadDecay(database, state.history);
  if (!status.ok()) return status;

  TRANCHE_ASSIGN_OR_RETURN(const std::optional<int64_t> heartbeat,
                           ReadMeta(database, kHeartbeatKey));
  TRANCHE_ASSIGN_OR_RETURN(const std::optional<int64_t> clean, ReadMeta(database, kCleanKey));
  TRANCHE_ASSIGN_OR_RETURN(const Instant newest, ReadLastTime(database));
  state.clean = clean.value_or(1) == 1;
  state.history.last_entry = state.last_entry;
  state.history.heartbeat = Instant(Millis(heartbeat.value_or(0)));
  state.last_time = newest;
  return state;
}

}  // namespace tranche::ledger
