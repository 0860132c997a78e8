// Every rule, from the first entry: what the tables say is recomputed from the journal and
// compared.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/ledger/entry_check.h"
#include "scheduler/ledger/integrity.h"
#include "scheduler/ledger/interval_check.h"
#include "scheduler/ledger/journal.h"
#include "scheduler/ledger/questions.h"
#include "scheduler/ledger/sqlite/numbers.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

constexpr int64_t kEntriesPerPiece = 50'000;
constexpr int64_t kEntriesBetweenQuestions = 1'000;
constexpr std::size_t kMostFaults = 100;

struct Rollup {
  Int128 compute = 0;
  Int128 memory = 0;
  Int128 compute_moment = 0;
  Int128 memory_moment = 0;
  friend bool operator==(const Rollup&, const Rollup&) = default;
};

class Verifier {
 public:
  Verifier(Database& database, const std::function<bool()>& stop)
      : database_(database), stop_(stop), checker_(accounts_) {}

  absl::StatusOr<VerifyReport> Run(const std::function<void(int64_t, int64_t)>& progress) {
    TRANCHE_ASSIGN_OR_RETURN(std::vector<std::string> faults,
                             CheckIntegrity(database_, CheckDepth::kFull, stop_));
    report_.faults = std::move(faults);
    const absl::Status walked = Walk(progress);
    // Pages too damaged to be read are a finding, not a failure to look.
    if (absl::IsDataLoss(walked)) {
      report_.faults.push_back(std::string(walked.message()));
    } else if (!walked.ok()) {
      return walked;
    }
    report_.head = Hex(checker_.hash());
    report_.open_intervals = static_cast<int64_t>(intervals_.open().size());
    if (report_.faults.size() > kMostFaults) report_.faults.resize(kMostFaults);
    return std::move(report_);
  }

 private:
  using Sums = std::map<int64_t, std::pair<Int128, Int128>>;  // by account

  // In pieces, so that a writer's checkpoints get through: entries never change. What is derived
  // from them is compared in the transaction that reads the last ones.
  absl::Status Walk(const std::function<void(int64_t, int64_t)>& progress) {
    TRANCHE_ASSIGN_OR_RETURN(EntryCursor cursor, EntryCursor::Make(database_));
    TRANCHE_ASSIGN_OR_RETURN(const int64_t total, database_.Integer("SELECT max(id) FROM entry"));
    // One that is not well is found with the others of its table.
    checked_ = ReadMeta(database_, kCheckedKey).value_or(0).value_or(0);
    bool ended = false;
    while (!ended && report_.faults.size() < kMostFaults) {
      TRANCHE_RETURN_IF_ERROR(database_.Execute("BEGIN"));
      absl::StatusOr<bool> end = Piece(cursor);
      absl::Status status = end.status();
      if (status.ok()) {
        ended = *end;
        progress(report_.entries, std::max(total, report_.entries));
      }
      if (ended) status = Compare();
      cursor.Finish();
      database_.Execute("COMMIT").IgnoreError();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // True when the journal ends here.
  absl::StatusOr<bool> Piece(EntryCursor& cursor) {
    TRANCHE_ASSIGN_OR_RETURN(accounts_, ReadAccounts(database_));
    TRANCHE_RETURN_IF_ERROR(cursor.Start(checker_.last_entry() + 1));
    EntryRow entry;
    for (int64_t i = 0; i < kEntriesPerPiece; ++i) {
      if (i % kEntriesBetweenQuestions == 0 && stop_()) return absl::CancelledError("stopped");
      TRANCHE_ASSIGN_OR_RETURN(const bool row, cursor.Next(entry));
      if (!row) return true;
      Check(entry);
    }
    return false;
  }

  void Check(const EntryRow& entry) {
    ++report_.entries;
    report_.postings += static_cast<int64_t>(entry.postings.size());
    checker_.Check(entry, report_.faults);
    intervals_.Check(entry, report_.faults);
    if (entry.kind == EntryKind::kWindow) ++windows_;
    if (entry.kind == EntryKind::kRestored) ++report_.restored;
    const int64_t day = DayStart(entry.at);
    for (const Posting& posting : entry.postings) {
      auto& [compute, memory] = sums_[posting.account];
      compute += posting.compute;
      memory += posting.memory;
      if (!IsReported(accounts_[posting.account])) continue;
      Rollup& rollup = rollups_[{day, posting.account}];
      rollup.compute += posting.compute;
      rollup.memory += posting.memory;
      rollup.compute_moment += Int128{posting.compute} * (entry.at - day);
      rollup.memory_moment += Int128{posting.memory} * (entry.at - day);
    }
    if (entry.id == checked_) checked_sums_ = sums_;
  }

  absl::Status Compare() {
    absl::Status status = CompareBalances("balance", sums_);
    if (status.ok()) status = CompareMeta();
    if (status.ok()) status = CompareRollups();
    if (status.ok()) status = intervals_.Compare(database_, report_.faults);
    if (status.ok()) status = CompareCount("posting", report_.postings);
    if (status.ok()) status = CompareCount("window_closing", windows_);
    if (!status.ok()) return status;
    const absl::StatusOr<bool> restored = HasRestored(database_);
    if (!restored.ok() || !*restored) return restored.status();
    return CompareCount("restored", report_.restored);
  }

  absl::Status CompareCount(const char* table, int64_t expected) {
    TRANCHE_ASSIGN_OR_RETURN(const int64_t found,
                             database_.Integer(fmt::format("SELECT count(*) FROM {}", table)));
    if (found != expected) {
      report_.faults.push_back(fmt::format(
          "rule 1: expected {} rows of {} with an entry, found {} rows", expected, table, found));
    }
    return absl::OkStatus();
  }

  // What a start goes by besides.
  absl::Status CompareMeta() {
    TRANCHE_ASSIGN_OR_RETURN(Statement rows, database_.Prepare("SELECT key FROM meta"));
    while (true) {
      TRANCHE_ASSIGN_OR_RETURN(const bool row, rows.Row());
      if (!row) break;
      const absl::Status read = ReadMeta(database_, rows.Bytes(0)).status();
      if (absl::IsDataLoss(read)) report_.faults.push_back(std::string(read.message()));
      if (!read.ok() && !absl::IsDataLoss(read)) return read;
    }
    // A writer may have noted its sums anew since the walk began: they are the next one's.
    const absl::StatusOr<std::optional<int64_t>> checked = ReadMeta(database_, kCheckedKey);
    if (!checked.ok() || checked->value_or(0) != checked_) return absl::OkStatus();
    return CompareBalances("checked_balance", checked_sums_);
  }

  absl::Status CompareBalances(const char* table, Sums left) {
    TRANCHE_ASSIGN_OR_RETURN(
        Statement rows,
        database_.Prepare(fmt::format("SELECT account, compute, memory FROM {}", table)));
    while (true) {
      TRANCHE_ASSIGN_OR_RETURN(const bool row, rows.Row());
      if (!row) break;
      const int64_t account = rows.Integer(0);
      const std::pair<Int128, Int128> found{rows.Integer(1), rows.Integer(2)};
      BalanceFault(table, account, left[account], found);
      left.erase(account);
    }
    for (const auto& [account, sum] : left) BalanceFault(table, account, sum, {});
    return absl::OkStatus();
  }

  void BalanceFault(const char* table, int64_t account, const std::pair<Int128, Int128>& expected,
                    const std::pair<Int128, Int128>& found) {
    if (expected == found) return;
    const Account& name = accounts_[account];
    report_.faults.push_back(fmt::format(
        "rule 2: account {} ({}, leaf '{}', {}): expected {} {}, {}, found {}, {}", account,
        name.kind, name.leaf, name.model, table, FormatInt128(expected.first),
        FormatInt128(expected.second), FormatInt128(found.first), FormatInt128(found.second)));
  }

  absl::Status CompareRollups() {
    absl::StatusOr<Statement> rows = database_.Prepare(
        "SELECT day, account, compute, memory, compute_moment_high, compute_moment_low, "
        "memory_moment_high, memory_moment_low, seal FROM rollup");
    if (!rows.ok()) return rows.status();
    std::size_t met = 0;
    while (true) {
      TRANCHE_ASSIGN_OR_RETURN(const bool row, rows->Row());
      if (!row) break;
      Seal seal;
      for (int column = 0; column < 8; ++column) seal.Add(rows->Integer(column));
      const Rollup found{rows->Integer(2), rows->Integer(3),
                         FromHalves(rows->Integer(4), rows->Integer(5)),
                         FromHalves(rows->Integer(6), rows->Integer(7))};
      const auto expected = rollups_.find({rows->Integer(0), rows->Integer(1)});
      if (expected != rollups_.end()) ++met;
      if (expected == rollups_.end() || expected->second != found ||
          seal.value() != rows->Integer(8)) {
        report_.faults.push_back(
            fmt::format("rule 2: rollup of day {}, account {}: expected the sum of its entries, "
                        "found another",
                        rows->Integer(0), rows->Integer(1)));
      }
    }
    if (met != rollups_.size()) {
      report_.faults.push_back(
          fmt::format("rule 2: expected {} rollup rows, found {}", rollups_.size(), met));
    }
    return absl::OkStatus();
  }

  Database& database_;
  const std::function<bool()>& stop_;
  VerifyReport report_;
  AccountTable accounts_;
  EntryChecker checker_;
  IntervalChecker intervals_;
  int64_t windows_ = 0;
  Sums sums_;
  int64_t checked_ = 0;  // the entry up to which sums were noted when the walk began
  Sums checked_sums_;
  std::map<std::pair<int64_t, int64_t>, Rollup> rollups_;  // by day, account
};

}  // namespace

absl::StatusOr<VerifyReport> VerifyRules(
    Database& database, const std::function<void(int64_t done, int64_t total)>& progress,
    const std::function<bool()>& stop) {
  return Verifier(database, stop).Run(progress);
}

}  // namespace tranche::ledger
