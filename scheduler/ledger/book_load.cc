// Taking a file up, and writing the sums back.
#include <fmt/format.h>

#include "scheduler/ledger/book.h"
#include "scheduler/ledger/sqlite/numbers.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

// A start checks at most about this many entries one by one, besides those it hands out.
constexpr int64_t kMarkEvery = 50'000;
// Rollup rows kept in memory: the days and accounts being written to.
constexpr std::size_t kRollupsKept = 20'000;

}  // namespace

absl::StatusOr<Book> Book::Load(Database& database, int64_t epoch) {
  Book book(database, epoch);
  TRANCHE_ASSIGN_OR_RETURN(book.accounts_, ReadAccounts(database));
  for (const auto& [id, account] : book.accounts_) book.account_ids_[account] = id;
  for (const auto& [value, sql] :
       {std::pair{&book.last_entry_, "SELECT coalesce(max(id), 0) FROM entry"},
        std::pair{&book.restored_, "SELECT count(*) FROM restored"},
        std::pair{&book.last_interval_, "SELECT coalesce(max(id), 0) FROM interval"}}) {
    TRANCHE_ASSIGN_OR_RETURN(*value, database.Integer(sql));
  }
  TRANCHE_ASSIGN_OR_RETURN(
      std::string head,
      database.Text(fmt::format("SELECT hash FROM entry WHERE id = {}", book.last_entry_)));
  book.head_ = book.last_entry_ == 0 ? kNoHash : std::move(head);
  TRANCHE_ASSIGN_OR_RETURN(const std::optional<int64_t> checked, ReadMeta(database, kCheckedKey));
  book.checked_ = checked.value_or(0);
  absl::Status status = book.LoadSums();
  if (status.ok()) status = book.LoadOpen();
  if (status.ok()) status = book.PrepareAll();
  if (!status.ok()) return status;
  return book;
}

absl::Status Book::LoadSums() {
  TRANCHE_ASSIGN_OR_RETURN(Statement rows,
                           database_->Prepare("SELECT account, compute, memory FROM balance"));
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, rows.Row());
    if (!row) return absl::OkStatus();
    sums_[rows.Integer(0)] = {rows.Integer(1), rows.Integer(2), false};
    if (accounts_[rows.Integer(0)].kind != kHeld) continue;
    held_.compute += rows.Integer(1);
    held_.memory += rows.Integer(2);
  }
}

absl::Status Book::LoadOpen() {
  absl::StatusOr<Statement> rows = database_->Prepare(
      "SELECT i.uid, i.number, i.id, e.at, o.running IS NOT NULL, p.account, p.compute, p.memory "
      "FROM open_interval o JOIN interval i ON i.id = o.interval JOIN entry e ON e.id = o.entry "
      "LEFT JOIN posting p ON p.entry = o.entry ORDER BY o.interval, p.account");
  if (!rows.ok()) return rows.status();
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, rows->Row());
    if (!row) return absl::OkStatus();
    OpenRecord& record = open_[{std::string(rows->Bytes(0)), rows->Integer(1)}];
    record.interval = rows->Integer(2);
    record.since = rows->Integer(3);
    record.running = rows->Integer(4) != 0;
    if (!rows->Null(5)) {
      record.postings.push_back({rows->Integer(5), rows->Integer(6), rows->Integer(7)});
    }
  }
}

absl::Status Book::PrepareAll() {
  const std::pair<Statement*, const char*> all[] = {
      {&insert_interval_,
       "INSERT INTO interval(id, uid, number, namespace, pod, node, leaf, class, devices, "
       "workload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(uid, number) DO NOTHING"},
      {&insert_entry_,
       "INSERT INTO entry(id, interval, kind, at, written, epoch, flags, note, hash) "
       "VALUES (?, nullif(?, 0), ?, ?, ?, ?, ?, ?, ?)"},
      {&insert_posting_,
       "INSERT INTO posting(entry, account, compute, memory) VALUES (?, ?, ?, ?)"},
      {&insert_open_, "INSERT INTO open_interval(interval, entry) VALUES (?, ?)"},
      {&set_running_, "UPDATE open_interval SET running = ? WHERE interval = ?"},
      {&delete_open_, "DELETE FROM open_interval WHERE interval = ?"},
      {&insert_account_,
       "INSERT INTO account(id, kind, leaf, model, class) VALUES (?, ?, ?, ?, ?)"},
      {&find_interval_, "SELECT id, leaf, class FROM interval WHERE uid = ? AND number = ?"},
      {&find_refund_,
       "SELECT 1 FROM entry WHERE interval = ? AND at = ? AND note = ? AND kind = 5"},
      {&insert_closing_,
       "INSERT INTO window_closing(entry, budget, start, until, amounts) VALUES (?, ?, ?, ?, ?)"},
      {&insert_restored_,
       "INSERT INTO restored(entry, of, name, model, start, until, compute, memory, detail, "
       "source, source_entry) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {&find_restored_,
       "SELECT 1 FROM restored r JOIN entry e ON e.id = r.entry WHERE r.of = 'budget' "
       "AND r.name = ? AND r.source = ? AND e.at >= ?"},
      {&newest_closing_,
       "SELECT until, amounts FROM window_closing WHERE budget = ? AND start = ? "
       "ORDER BY entry DESC LIMIT 1"},
      {&write_balance_,
       "INSERT INTO balance(account, compute, memory) VALUES (?, ?, ?) ON CONFLICT(account) "
       "DO UPDATE SET compute = excluded.compute, memory = excluded.memory"},
      {&read_rollup_,
       "SELECT compute, memory, compute_moment_high, compute_moment_low, memory_moment_high, "
       "memory_moment_low FROM rollup WHERE day = ? AND account = ?"},
      {&write_rollup_,
       "INSERT OR REPLACE INTO rollup(day, account, compute, memory, compute_moment_high, "
       "compute_moment_low, memory_moment_high, memory_moment_low, seal) "
       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {&write_meta_, kWriteMeta},
      {&delete_decay_, "DELETE FROM decay"},
      {&insert_decay_,
       "INSERT OR REPLACE INTO decay(leaf, quanta, at, usage_high, usage_low, seal) "
       "VALUES (?, ?, ?, ?, ?, ?)"},
  };
  for (const auto& [statement, sql] : all) {
    TRANCHE_ASSIGN_OR_RETURN(*statement, database_->Prepare(sql));
  }
  return absl::OkStatus();
}

absl::Status Book::Beat(int64_t now, const std::vector<DecayRow>& decay) {
  TRANCHE_RETURN_IF_ERROR(WriteMeta(write_meta_, kHeartbeatKey, now));
  TRANCHE_RETURN_IF_ERROR(delete_decay_.Run());
  for (const DecayRow& row : decay) {
    const int64_t at = row.state.at.time_since_epoch().count();
    const auto low = static_cast<int64_t>(row.state.usage_low);
    const int64_t seal = Seal()
                             .Add(row.leaf)
                             .Add(row.state.quanta)
                             .Add(at)
                             .Add(row.state.usage_high)
                             .Add(low)
                             .value();
    TRANCHE_RETURN_IF_ERROR(
        insert_decay_.RunWith(row.leaf, row.state.quanta, at, row.state.usage_high, low, seal));
  }
  return absl::OkStatus();
}

absl::Status Book::Flush(Mark mark) {
  for (auto* const changed : changed_sums_) {
    auto& [account, sum] = *changed;
    TRANCHE_RETURN_IF_ERROR(write_balance_.RunWith(account, sum.compute, sum.memory));
    sum.changed = false;
  }
  changed_sums_.clear();
  TRANCHE_RETURN_IF_ERROR(WriteRollups());
  if (mark == Mark::kWhenDue && last_entry_ - checked_ < kMarkEvery) return absl::OkStatus();
  absl::Status status = database_->Execute(
      "DELETE FROM checked_balance; INSERT INTO checked_balance SELECT * FROM balance");
  if (status.ok()) status = WriteMeta(write_meta_, kCheckedKey, last_entry_);
  if (status.ok()) checked_ = last_entry_;
  return status;
}

absl::Status Book::WriteRollups() {
  for (auto* const changed : changed_rollups_) {
    auto& [key, rollup] = *changed;
    const int64_t values[] = {key.first,
                              key.second,
                              rollup.compute,
                              rollup.memory,
                              HighHalf(rollup.compute_moment),
                              LowHalf(rollup.compute_moment),
                              HighHalf(rollup.memory_moment),
                              LowHalf(rollup.memory_moment)};
    Seal seal;
    for (const int64_t value : values) seal.Add(value);
    TRANCHE_RETURN_IF_ERROR(write_rollup_.RunWith(values[0], values[1], values[2], values[3],
                                                  values[4], values[5], values[6], values[7],
                                                  seal.value()));
    rollup.changed = false;
  }
  changed_rollups_.clear();
  if (rollups_.size() > kRollupsKept) rollups_.clear();
  return absl::OkStatus();
}

}  // namespace tranche::ledger
