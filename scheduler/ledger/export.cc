// The intervals of pods with their devices and GPU time: one row per interval and model.
//
// Entries never change, so pieces read one after another, each in its own short transaction, fit
// together: everything is as of the newest entry when the export began, or of an earlier one.

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "scheduler/ledger/journal.h"
#include "scheduler/ledger/questions.h"
#include "scheduler/ledger/sqlite/numbers.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

constexpr int64_t kEntriesPerPiece = 20'000;
constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

// An interval that overlaps the span, as small as it gets: there may be millions.
struct Candidate {
  int64_t start = 0;
  int64_t end = kForever;  // kForever: open
  int64_t interval = 0;
  int64_t open_entry = 0;
  int64_t end_flags = 0;
};

struct Refund {
  int64_t from = 0;
  int64_t until = 0;
  std::map<std::string, Charge> parts;  // by model
};

class Exporter {
 public:
  Exporter(Database& database, const ReportQuery& query, std::optional<int64_t> as_of)
      : database_(database),
        query_(query),
        as_of_(as_of),
        from_(query.from ? MillisOf(*query.from) : std::numeric_limits<int64_t>::min()),
        to_(std::min(MillisOf(query.to.value_or(query.now)), MillisOf(query.now))) {}

  absl::Status Run(const std::function<void(const ExportRow&)>& give) {
    absl::Status status = PrepareAll();
    if (status.ok()) status = FindOpen();
    if (status.ok() && as_of_) status = FindStillOpen();
    if (status.ok()) status = FindClosed();
    if (!status.ok()) return status;
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& left, const Candidate& right) {
                return std::tie(left.start, left.interval) < std::tie(right.start, right.interval);
              });
    for (std::size_t i = 0; i < candidates_.size();) {
      std::vector<ExportRow> rows;
      const int64_t start = candidates_[i].start;
      for (; i < candidates_.size() && candidates_[i].start == start; ++i) {
        if (status = Load(candidates_[i], rows); !status.ok()) return status;
      }
      std::sort(rows.begin(), rows.end(), [](const ExportRow& left, const ExportRow& right) {
        return std::tie(left.interval.uid, left.interval.interval, left.interval.parts[0].model) <
               std::tie(right.interval.uid, right.interval.interval, right.interval.parts[0].model);
      });
      for (const ExportRow& row : rows) give(row);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status PrepareAll() {
    TRANCHE_ASSIGN_OR_RETURN(const bool workload, HasWorkload(database_));
    const std::pair<Statement*, const char*> all[] = {
        {&closed_,
         "SELECT at, id, interval, flags FROM entry INDEXED BY entry_at WHERE kind = 3 AND at >= ? "
         "AND (at > ? OR id > ?) AND id <= ? ORDER BY at, id LIMIT ?"},
        {&opened_, "SELECT id, at FROM entry WHERE interval = ? AND kind = 1 AND kind <= 4"},
        {&details_,
         "SELECT i.uid, i.number, i.namespace, i.pod, i.node, i.leaf, i.class, i.devices, e.flags, "
         "(SELECT at FROM entry WHERE interval = i.id AND kind = 2 AND kind <= 4) "
         "FROM interval i, entry e WHERE i.id = ? AND e.id = ?"},
        {&parts_,
         "SELECT a.model, p.compute, p.memory FROM posting p JOIN account a ON a.id = p.account "
         "WHERE p.entry = ? AND a.kind = ? ORDER BY a.model"},
        {&refunds_,
         "SELECT s.id, s.at, e.at FROM entry s JOIN entry e ON e.id = s.id + 1 "
         "WHERE s.interval = ? AND s.kind = 5 AND s.id < ? ORDER BY s.id"},
    };
    for (const auto& [statement, sql] : all) {
      TRANCHE_ASSIGN_OR_RETURN(*statement, database_.Prepare(sql));
    }
    if (!workload) return absl::OkStatus();
    TRANCHE_ASSIGN_OR_RETURN(workload_,
                             database_.Prepare("SELECT workload FROM interval WHERE id = ?"));
    return absl::OkStatus();
  }

  // The newest entry and what is open as of it, in one statement and so one snapshot.
  absl::Status FindOpen() {
    absl::StatusOr<Statement> rows = database_.Prepare(
        "SELECT 0, 0, 0, coalesce(max(id), 0) FROM entry UNION ALL "
        "SELECT o.interval, o.entry, e.at, 0 FROM open_interval o JOIN entry e ON e.id = o.entry");
    if (!rows.ok()) return rows.status();
    while (true) {
      TRANCHE_ASSIGN_OR_RETURN(const bool row, rows->Row());
      if (!row) return absl::OkStatus();
      if (rows->Integer(0) == 0) {
        newest_ = as_of_.value_or(rows->Integer(3));
      } else {
        AddOpen(rows->Integer(0), rows->Integer(1), rows->Integer(2));
      }
    }
  }

  void AddOpen(int64_t interval, int64_t entry, int64_t start) {
    if (as_of_ && entry > *as_of_) return;
    // One that has only just begun is open as much as any other.
    if (start < to_ || (!query_.to && start == to_)) {
      candidates_.push_back({start, kForever, interval, entry, 0});
    }
  }

  // What was open as of an earlier entry and has ended, or come to nothing, since.
  absl::Status FindStillOpen() {
    absl::StatusOr<Statement> rows = database_.Prepare(
        "SELECT o.interval, o.id, o.at FROM entry e JOIN entry o ON o.interval = e.interval "
        "AND o.kind = 1 AND o.kind <= 4 WHERE e.id > ? AND e.kind IN (3, 4)");
    if (!rows.ok()) return rows.status();
    rows->Bind(*as_of_);
    while (true) {
      TRANCHE_ASSIGN_OR_RETURN(const bool row, rows->Row());
      if (!row) return absl::OkStatus();
      AddOpen(rows->Integer(0), rows->Integer(1), rows->Integer(2));
    }
  }

  absl::Status FindClosed() {
    int64_t at = from_;
    int64_t id = std::numeric_limits<int64_t>::max();  // an end at `from` itself does not overlap
    while (true) {
      std::vector<Candidate> piece;
      closed_.Bind(at, at, id, newest_, kEntriesPerPiece);
      while (true) {
        TRANCHE_ASSIGN_OR_RETURN(const bool row, closed_.Row());
        if (!row) break;
        at = closed_.Integer(0);
        id = closed_.Integer(1);
        piece.push_back({0, at, closed_.Integer(2), 0, closed_.Integer(3)});
      }
      if (piece.empty()) return absl::OkStatus();
      for (Candidate& candidate : piece) {
        opened_.Bind(candidate.interval);
        TRANCHE_ASSIGN_OR_RETURN(const bool row, opened_.Row());
        if (!row) continue;
        candidate.open_entry = opened_.Integer(0);
        candidate.start = opened_.Integer(1);
        opened_.Reset();
        if (candidate.start < to_) candidates_.push_back(candidate);
      }
    }
  }

  absl::Status Load(const Candidate& candidate, std::vector<ExportRow>& rows) {
    details_.Bind(candidate.interval, candidate.open_entry);
    TRANCHE_ASSIGN_OR_RETURN(const bool row, details_.Row());
    if (!row) return absl::OkStatus();
    ExportRow base;
    base.interval.uid = PodUid(details_.Bytes(0));
    base.interval.interval = static_cast<int>(details_.Integer(1));
    base.interval.pod = {std::string(details_.Bytes(2)), std::string(details_.Bytes(3))};
    base.interval.node = NodeName(details_.Bytes(4));
    base.interval.leaf = details_.Bytes(5);
    base.interval.workload_class = details_.Bytes(6);
    base.interval.since = At(candidate.start);
    if (!details_.Null(9)) base.interval.running = At(details_.Integer(9));
    if (candidate.end != kForever) base.end = At(candidate.end);
    base.devices = details_.Bytes(7);
    const int64_t flags = details_.Integer(8) | candidate.end_flags;
    base.estimated = (flags & kEstimatedFlag) != 0;
    base.late = (flags & kLateFlag) != 0;
    details_.Reset();
    TRANCHE_ASSIGN_OR_RETURN(base.workload, WorkloadOf(candidate.interval));
    if (query_.leaf && base.interval.leaf != *query_.leaf) return absl::OkStatus();
    TRANCHE_ASSIGN_OR_RETURN(const auto parts, Parts(candidate.open_entry, kHeld));
    TRANCHE_ASSIGN_OR_RETURN(const std::vector<Refund> refunds, Refunds(candidate.interval));
    for (const auto& [model, charge] : parts) {
      ExportRow filled = base;
      filled.interval.parts = {{model, charge}};
      AddTime(filled.time, charge, candidate.start, candidate.end);
      for (const Refund& refund : refunds) {
        const auto part = refund.parts.find(model);
        if (part == refund.parts.end()) continue;
        AddTime(filled.refunded, part->second, refund.from, refund.until);
        filled.refunds.push_back({{At(refund.from), At(refund.until)}, part->second});
      }
      rows.push_back(std::move(filled));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> WorkloadOf(int64_t interval) {
    if (!workload_.prepared()) return std::string();
    workload_.Bind(interval);
    TRANCHE_ASSIGN_OR_RETURN(const bool row, workload_.Row());
    std::string text(row ? workload_.Bytes(0) : std::string_view());
    workload_.Reset();
    return text;
  }

  // Adds the part of [start, end) that lies in the asked span.
  void AddTime(GpuTime& time, const Charge& charge, int64_t start, int64_t end) const {
    const int64_t first = std::max(start, from_);
    const int64_t last = std::min(end, to_);
    if (last <= first) return;
    const Int128 weighted = (Int128{last} - first) * kUnitWeight;
    time.compute += weighted * charge.compute;
    time.memory += weighted * charge.memory;
  }

  absl::StatusOr<std::map<std::string, Charge>> Parts(int64_t entry, const char* kind) {
    std::map<std::string, Charge> parts;
    parts_.Bind(entry, std::string_view(kind));
    while (true) {
      TRANCHE_ASSIGN_OR_RETURN(const bool row, parts_.Row());
      if (!row) return parts;
      parts[std::string(parts_.Bytes(0))] = {parts_.Integer(1), parts_.Integer(2)};
    }
  }

  absl::StatusOr<std::vector<Refund>> Refunds(int64_t interval) {
    std::vector<Refund> refunds;
    // Its end is the entry after it.
    refunds_.Bind(interval, newest_);
    while (true) {
      TRANCHE_ASSIGN_OR_RETURN(const bool row, refunds_.Row());
      if (!row) return refunds;
      TRANCHE_ASSIGN_OR_RETURN(auto parts, Parts(refunds_.Integer(0), kRefunded));
      refunds.push_back({refunds_.Integer(1), refunds_.Integer(2), std::move(parts)});
    }
  }

  Database& database_;
  const ReportQuery& query_;
  const std::optional<int64_t> as_of_;
  const int64_t from_;
  const int64_t to_;
  int64_t newest_ = 0;
  std::vector<Candidate> candidates_;
  Statement closed_;
  Statement opened_;
  Statement details_;
  Statement parts_;
  Statement refunds_;
  Statement workload_;  // not prepared in files of older versions
};

}  // namespace

absl::Status ExportIntervals(Database& database, const ReportQuery& query,
                             const std::function<void(const ExportRow&)>& row,
                             std::optional<int64_t> as_of) {
  return Exporter(database, query, as_of).Run(row);
}

}  // namespace tranche::ledger
