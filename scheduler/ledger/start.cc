#include "scheduler/ledger/start.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/ledger/entry_check.h"
#include "scheduler/ledger/history.h"
#include "scheduler/ledger/journal.h"
#include "scheduler/ledger/schema.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

// A tail that is shorter is read by one thread.
constexpr int64_t kLeastStretch = 2'000;
constexpr int64_t kMostStretches = 4;

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

// Which entries a start looks at, and what for.
struct Tail {
  int64_t first = 1;
  int64_t last = 0;    // of the file
  int64_t summed = 0;  // entries up to here are in the sums that were noted
  int64_t recent = 0;  // entries from here on are history
};

absl::StatusOr<Tail> TailOf(Database& database, Instant from) {
  Tail tail;
  TRANCHE_ASSIGN_OR_RETURN(const std::optional<int64_t> checked, ReadMeta(database, kCheckedKey));
  tail.summed = checked.value_or(0);
  // The second half of a refund may be recent when the first is not: one entry earlier.
  TRANCHE_ASSIGN_OR_RETURN(
      tail.recent,
      database.Integer(fmt::format("SELECT coalesce(min(id) - 1, 1 << 62) FROM entry INDEXED BY "
                                   "entry_at WHERE at >= {}",
                                   from.time_since_epoch().count())));
  TRANCHE_ASSIGN_OR_RETURN(tail.last, database.Integer("SELECT max(id) FROM entry"));
  tail.first = std::max<int64_t>(1, std::min(tail.summed + 1, tail.recent));
  return tail;
}

// One walk: checks entries, sums them up, and hands on what is recent. Returns the last one's id.
template <typename Take>
absl::StatusOr<int64_t> Walk(CheckedEntries& entries, const Tail& tail, int64_t first, int64_t last,
                             Sums& sums, Take take) {
  TRANCHE_RETURN_IF_ERROR(entries.Start(first));
  EntryRow entry;
  int64_t reached = first - 1;
  while (reached < last) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, entries.Next(entry));
    if (!row) break;
    reached = entry.id;
    if (entry.id > tail.summed) {
      for (const Posting& posting : entry.postings) {
        Posting& sum = sums[posting.account];
        sum.compute += posting.compute;
        sum.memory += posting.memory;
        sum.account = posting.account;
      }
    }
    if (entry.id < tail.recent) continue;
    TRANCHE_RETURN_IF_ERROR(take(entry));
  }
  entries.Finish();
  return reached;
}

// Entries that follow each other, read by a thread of its own.
struct Stretch {
  int64_t first = 0;
  int64_t last = 0;
  absl::Status status;
  int64_t reached = 0;
  Sums sums;
  MeterHistory ended;
};

absl::Status ReadStretch(const std::string& path, const AccountTable& accounts, Instant from,
                         const Tail& tail, Stretch& stretch) {
  TRANCHE_ASSIGN_OR_RETURN(Database database, Database::Open(path, Access::kRead));
  TRANCHE_RETURN_IF_ERROR(ApplyReadSettings(database));
  TRANCHE_ASSIGN_OR_RETURN(CheckedEntries entries, CheckedEntries::Make(database, accounts));
  TRANCHE_ASSIGN_OR_RETURN(CheckedEntries single, CheckedEntries::Make(database, accounts));
  EndedReader ended(from, accounts, [&single](int64_t interval, EntryKind kind) {
    return single.Of(interval, kind);
  });
  if (stretch.first > tail.first && stretch.first > tail.recent) {
    TRANCHE_ASSIGN_OR_RETURN(const EntryRow before, single.One(stretch.first - 1));
    if (before.kind == EntryKind::kRefundStart) TRANCHE_RETURN_IF_ERROR(ended.Add(before));
  }
  TRANCHE_ASSIGN_OR_RETURN(stretch.reached,
                           Walk(entries, tail, stretch.first, stretch.last, stretch.sums,
                                [&ended](const EntryRow& entry) { return ended.Add(entry); }));
  return ended.Finish(stretch.ended);
}

// The whole tail, in as many stretches as there are cores: each entry needs no other one but the
// hash before it, and a life that reaches into the next stretch is looked up there.
absl::StatusOr<int64_t> ReadInStretches(Database& database, const AccountTable& accounts,
                                        const Tail& tail, Sums& sums, MeterHistory& history) {
  const std::string path = sqlite3_db_filename(database.handle(), "main");
  const int64_t entries = tail.last - tail.first + 1;
  const int64_t count = std::clamp<int64_t>(
      entries / kLeastStretch, 1,
      std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, kMostStretches));
  std::vector<Stretch> stretches(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < count; ++i) {
    Stretch& stretch = stretches[static_cast<std::size_t>(i)];
    stretch.first = tail.first + entries * i / count;
    stretch.last = tail.first + entries * (i + 1) / count - 1;
    const auto read = [&, from = history.from] {
      stretch.status = ReadStretch(path, accounts, from, tail, stretch);
    };
    // The last one, mostly the only one, is read here.
    if (i + 1 == count) {
      read();
    } else {
      threads.emplace_back(read);
    }
  }
  for (std::thread& thread : threads) thread.join();
  int64_t reached = tail.first - 1;
  for (Stretch& stretch : stretches) {
    TRANCHE_RETURN_IF_ERROR(stretch.status);
    reached = stretch.reached;
    for (const auto& [account, part] : stretch.sums) {
      Posting& sum = sums[account];
      sum.account = account;
      sum.compute += part.compute;
      sum.memory += part.memory;
    }
    std::ranges::move(stretch.ended.ended, std::back_inserter(history.ended));
    history.ended_numbers.insert(history.ended_numbers.end(), stretch.ended.ended_numbers.begin(),
                                 stretch.ended.ended_numbers.end());
    stretch.ended = {};
  }
  return reached;
}

}  // namespace

absl::StatusOr<StartState> CheckAndReadHistory(Database& database, Instant from, PastForm form) {
  StartState state;
  state.history.from = from;
  TRANCHE_ASSIGN_OR_RETURN(const AccountTable accounts, ReadAccounts(database));
  absl::StatusOr<CheckedEntries> single = CheckedEntries::Make(database, accounts);
  if (!single.ok()) return single.status();
  const EntryLookup lookup = [&single](int64_t interval, EntryKind kind) {
    return single->Of(interval, kind);
  };
  HistoryBuilder builder(from, accounts, lookup);
  TRANCHE_ASSIGN_OR_RETURN(state.epoch, ReadLastEpoch(database));
  TRANCHE_ASSIGN_OR_RETURN(const Tail tail, TailOf(database, from));
  TRANCHE_ASSIGN_OR_RETURN(Sums sums, ReadSums(database, "checked_balance"));
  const auto read = [&]() -> absl::StatusOr<int64_t> {
    if (form == PastForm::kShort) {
      return ReadInStretches(database, accounts, tail, sums, state.history);
    }
    TRANCHE_ASSIGN_OR_RETURN(CheckedEntries entries, CheckedEntries::Make(database, accounts));
    return Walk(entries, tail, tail.first, tail.last, sums,
                [&builder](const EntryRow& entry) { return builder.Add(entry); });
  };
  TRANCHE_ASSIGN_OR_RETURN(state.last_entry, read());
  if (state.last_entry < tail.summed) {
    return Bad(fmt::format("rule 5: expected entry {}, found entry {} as the last", tail.summed,
                           state.last_entry));
  }
  TRANCHE_ASSIGN_OR_RETURN(const Sums balances, ReadSums(database, "balance"));
  TRANCHE_RETURN_IF_ERROR(CompareSums(sums, balances));
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<int64_t> open, OpenNow(database));
  TRANCHE_ASSIGN_OR_RETURN(state.lost_ends, builder.Finish(open, state.history));
  absl::Status status = ReadClosings(database, *single, state.history);
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
