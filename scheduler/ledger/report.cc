// GPU time by leaf and model.
//
// What was used until t is a sum over all changes before t of change x (t - its time). A day's
// changes are kept as two sums, of change and of change x (time - day), from which that is exact
// for any t behind the day; the day t lies in is read entry by entry. Late and correcting entries
// only add to their own day, and what is still open needs no special case.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/ledger/journal.h"
#include "scheduler/ledger/questions.h"
#include "scheduler/ledger/sqlite/numbers.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

// amount x part / length, rounded down; the product alone may not fit.
Int128 Share(Int128 amount, int64_t part, int64_t length) {
  return amount / length * part + amount % length * part / length;
}

struct Change {
  int64_t at = 0;
  int64_t account = 0;
  int64_t compute = 0;
  int64_t memory = 0;
  Int128 compute_moment = 0;  // of several changes: sum of change x (time - at)
  Int128 memory_moment = 0;
};

class Usage {
 public:
  Usage(const AccountTable& accounts, const std::optional<std::string>& leaf) {
    for (const auto& [id, account] : accounts) {
      if (!IsReported(account) || (leaf && account.leaf != *leaf)) continue;
      lines_[id] = {&sums_[{account.leaf, account.model}], account.kind == kHeld ? 1 : -1};
    }
  }

  // What the change adds up to until `until`, `sign` times.
  void Add(const Change& change, int64_t until, int sign) {
    const auto found = lines_.find(change.account);
    if (found == lines_.end()) return;
    const auto& [sum, side] = found->second;
    const Int128 span = Int128{until} - change.at;
    const Int128 weight = Int128{kUnitWeight} * sign * side;
    sum->compute += (change.compute * span - change.compute_moment) * weight;
    sum->memory += (change.memory * span - change.memory_moment) * weight;
  }

  void AddRestored(const RestoredRow& row, Instant from, Instant to) {
    const GpuTime share = RestoredWithin(row, from, to);
    if (share == GpuTime{}) return;
    sums_[{row.leaf, row.model}] += share;
    restored_[{row.leaf, row.model}] += share;
  }

  std::vector<ReportRow> Rows() const {
    std::vector<ReportRow> rows;
    for (const auto& [line, time] : sums_) {
      if (time == GpuTime{}) continue;
      const auto restored = restored_.find(line);
      rows.push_back({line.first, line.second, time,
                      restored == restored_.end() ? GpuTime{} : restored->second});
    }
    return rows;
  }

 private:
  std::map<std::pair<std::string, std::string>, GpuTime> sums_;  // by leaf, model
  std::map<std::pair<std::string, std::string>, GpuTime> restored_;
  std::map<int64_t, std::pair<GpuTime*, int>> lines_;  // by account
};

// A moment to which use is summed up, and with which sign it counts.
struct Edge {
  int64_t at;
  int sign;
};

absl::Status AddDays(Database& database, const std::vector<Edge>& edges, Usage& usage) {
  absl::StatusOr<Statement> rows = database.Prepare(
      "SELECT day, account, compute, memory, compute_moment_high, compute_moment_low, "
      "memory_moment_high, memory_moment_low, seal FROM rollup");
  if (!rows.ok()) return rows.status();
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, rows->Row());
    if (!row) return absl::OkStatus();
    Seal seal;
    for (int column = 0; column < 8; ++column) seal.Add(rows->Integer(column));
    const Change change{rows->Integer(0),
                        rows->Integer(1),
                        rows->Integer(2),
                        rows->Integer(3),
                        FromHalves(rows->Integer(4), rows->Integer(5)),
                        FromHalves(rows->Integer(6), rows->Integer(7))};
    if (seal.value() != rows->Integer(8)) {
      return absl::DataLossError(
          fmt::format("rollup of day {}, account {}: expected seal {}, found {}", change.at,
                      change.account, seal.value(), rows->Integer(8)));
    }
    for (const Edge& edge : edges) {
      if (change.at < DayStart(edge.at)) usage.Add(change, edge.at, edge.sign);
    }
  }
}

absl::Status AddDayOf(Database& database, const Edge& edge, Usage& usage) {
  absl::StatusOr<Statement> rows = database.Prepare(
      "SELECT e.at, p.account, p.compute, p.memory FROM entry e INDEXED BY entry_at "
      "JOIN posting p ON p.entry = e.id WHERE e.at >= ? AND e.at < ?");
  if (!rows.ok()) return rows.status();
  rows->Bind(DayStart(edge.at), edge.at);
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, rows->Row());
    if (!row) return absl::OkStatus();
    const Change change{
        rows->Integer(0), rows->Integer(1), rows->Integer(2), rows->Integer(3), 0, 0};
    usage.Add(change, edge.at, edge.sign);
  }
}

}  // namespace

GpuTime RestoredWithin(const RestoredRow& row, Instant from, Instant to) {
  const int64_t length = (row.span.end - row.span.start).count();
  const int64_t part = (std::min(row.span.end, to) - std::max(row.span.start, from)).count();
  if (part <= 0) return {};
  return {Share(row.time.compute, part, length), Share(row.time.memory, part, length)};
}

absl::StatusOr<std::vector<RestoredRow>> RestoredUses(Database& database,
                                                      const ReportQuery& query) {
  std::vector<RestoredRow> result;
  TRANCHE_ASSIGN_OR_RETURN(const bool known, HasRestored(database));
  if (!known) return result;
  absl::StatusOr<Statement> rows = database.Prepare(
      "SELECT r.name, r.model, r.start, r.until, r.compute, r.memory, r.source, r.source_entry, "
      "e.at, r.entry FROM restored r JOIN entry e ON e.id = r.entry WHERE r.of = 'leaf' ORDER BY "
      "r.entry");
  if (!rows.ok()) return rows.status();
  const int64_t to = std::min(MillisOf(query.to.value_or(query.now)), MillisOf(query.now));
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, rows->Row());
    if (!row) return result;
    RestoredRow use;
    use.entry = rows->Integer(9);
    use.leaf = rows->Bytes(0);
    use.model = rows->Bytes(1);
    use.span = {Instant(Millis(rows->Integer(2))), Instant(Millis(rows->Integer(3)))};
    const std::optional<Int128> compute = ParseInt128(rows->Bytes(4));
    const std::optional<Int128> memory = ParseInt128(rows->Bytes(5));
    use.mark = {std::string(rows->Bytes(6)), rows->Integer(7), Instant(Millis(rows->Integer(8)))};
    if (!compute || !memory || use.span.end <= use.span.start) {
      return absl::DataLossError(
          fmt::format("restored use of leaf '{}': expected amounts, found other text", use.leaf));
    }
    use.time = {*compute, *memory};
    if (query.leaf && use.leaf != *query.leaf) continue;
    if (query.from && use.span.end <= *query.from) continue;
    if (MillisOf(use.span.start) < to) result.push_back(std::move(use));
  }
}

absl::StatusOr<std::vector<ReportRow>> SumUsage(Database& database, const ReportQuery& query) {
  const int64_t to = std::min(MillisOf(query.to.value_or(query.now)), MillisOf(query.now));
  std::vector<Edge> edges = {{to, 1}};
  if (query.from) edges.push_back({std::min(MillisOf(*query.from), to), -1});
  TRANCHE_ASSIGN_OR_RETURN(AccountTable accounts, ReadAccounts(database));
  Usage usage(accounts, query.leaf);
  absl::Status status = AddDays(database, edges, usage);
  for (const Edge& edge : edges) {
    if (status.ok()) status = AddDayOf(database, edge, usage);
  }
  if (!status.ok()) return status;
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<RestoredRow> restored, RestoredUses(database, query));
  for (const RestoredRow& row : restored) {
    usage.AddRestored(row, query.from.value_or(row.span.start), Instant(Millis(to)));
  }
  return usage.Rows();
}

absl::StatusOr<std::vector<ReportRow>> ReportUsage(Database& database, const ReportQuery& query) {
  // One snapshot; well under a second even for 10 million entries.
  TRANCHE_RETURN_IF_ERROR(database.Execute("BEGIN"));
  absl::StatusOr<std::vector<ReportRow>> rows = SumUsage(database, query);
  database.Execute("COMMIT").IgnoreError();
  return rows;
}

absl::StatusOr<std::vector<FleetEntry>> FleetEntries(Database& database) {
  std::vector<FleetEntry> entries;
  TRANCHE_ASSIGN_OR_RETURN(const bool known, HasFleet(database));
  if (!known) return entries;
  absl::StatusOr<Statement> rows = database.Prepare(
      "SELECT id, kind, at, note FROM entry INDEXED BY entry_fleet WHERE kind >= 9 ORDER BY id");
  if (!rows.ok()) return rows.status();
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, rows->Row());
    if (!row) return entries;
    const auto kind = static_cast<EntryKind>(rows->Integer(1));
    const FleetKind of = kind == EntryKind::kFleet   ? FleetKind::kNode
                         : kind == EntryKind::kPrice ? FleetKind::kPrice
                                                     : FleetKind::kStranded;
    entries.push_back({rows->Integer(0), of, rows->Integer(2), std::string(rows->Bytes(3))});
  }
}

}  // namespace tranche::ledger
