#include "scheduler/ledger/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/ledger/bill/workload_text.h"
#include "scheduler/ledger/files.h"
#include "scheduler/ledger/journal.h"
#include "scheduler/ledger/questions.h"
#include "scheduler/ledger/schema.h"
#include "scheduler/ledger/sqlite/numbers.h"
#include "scheduler/ledger/sqlite/sqlite.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

absl::StatusOr<Database> OpenAs(const std::string& path, Access access) {
  absl::StatusOr<Database> database = Database::Open(path, access);
  if (!database.ok()) return database;
  TRANCHE_RETURN_IF_ERROR(ApplyReadSettings(*database));
  const absl::Status known = CheckIdentity(*database, IfEmpty::kRefuse);
  // To who asks about a file, one that is no ledger is a wrong question.
  if (absl::IsDataLoss(known)) return absl::FailedPreconditionError(known.message());
  if (!known.ok()) return known;
  return database;
}

// A read-only connection still has to map the -shm file, which it makes (and fills from the -wal)
// where a writer was killed or has closed. In a folder that cannot be written it fails; then the
// file alone is the whole truth if no log lies beside it.
absl::StatusOr<Database> OpenToRead(const std::string& path) {
  absl::StatusOr<Database> database = OpenAs(path, Access::kRead);
  if (database.ok() || !absl::IsPermissionDenied(database.status())) return database;
  if (FileBytes(path + "-wal") > 0) return database;
  absl::StatusOr<Database> immutable = OpenAs(path, Access::kImmutable);
  return immutable.ok() ? std::move(immutable) : std::move(database);
}

// Notes what made the pod, and its label that is asked for.
absl::Status NoteWorkload(const BillGroup& by, const ExportRow& row, BillUse& use) {
  if (by.by != BillBy::kOwner && by.by != BillBy::kLabel) return absl::OkStatus();
  const absl::StatusOr<Workload> workload = ReadWorkloadText(row.workload);
  if (!workload.ok()) {
    return absl::DataLossError(fmt::format("interval {} of {}: {}", row.interval.interval,
                                           row.interval.pod.str(),
                                           std::string(workload.status().message())));
  }
  use.owner = workload->controller;
  const auto label = workload->labels.find(by.label);
  if (label != workload->labels.end()) use.label = label->second;
  return absl::OkStatus();
}

}  // namespace

struct Reader::Impl {
  Database database;
  std::string path;
};

absl::StatusOr<Reader> Reader::Open(const std::string& path) {
  if (!FileExists(path)) {
    return absl::NotFoundError(fmt::format("expected a ledger, found no file {}", path));
  }
  TRANCHE_ASSIGN_OR_RETURN(Database database, OpenToRead(path));
  return Reader(std::make_unique<Impl>(Impl{std::move(database), path}));
}

Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

absl::StatusOr<Instant> Reader::LastTime() { return ReadLastTime(impl_->database); }

absl::StatusOr<VerifyReport> Reader::Verify(
    const std::function<void(int64_t done, int64_t total)>& progress) {
  // It is never ahead of the file, so it is read first.
  const absl::StatusOr<std::optional<Head>> head = ReadHead(impl_->path);
  TRANCHE_ASSIGN_OR_RETURN(VerifyReport report,
                           VerifyRules(impl_->database, progress, [] { return false; }));
  if (absl::IsDataLoss(head.status())) {
    report.faults.push_back(fmt::format("rule 6: {}", std::string(head.status().message())));
  } else if (head.ok() && head->has_value()) {
    const absl::StatusOr<std::string> hash =
        impl_->database.Text(fmt::format("SELECT hash FROM entry WHERE id = {}", (*head)->entry));
    if (hash.ok() && Hex(*hash) != (*head)->hash) {
      report.faults.push_back(
          fmt::format("rule 6: expected entry {} with hash {}, which the head file remembers, "
                      "found {}",
                      (*head)->entry, (*head)->hash, hash->empty() ? "no such entry" : Hex(*hash)));
    }
  }
  return report;
}

absl::StatusOr<std::vector<ReportRow>> Reader::Report(const ReportQuery& query) {
  return ReportUsage(impl_->database, query);
}

absl::StatusOr<std::vector<RestoredRow>> Reader::Restored(const ReportQuery& query) {
  return RestoredUses(impl_->database, query);
}

absl::StatusOr<std::optional<ChainPoint>> Reader::PointAt(int64_t entry) {
  TRANCHE_ASSIGN_OR_RETURN(
      Statement row, impl_->database.Prepare("SELECT id, hash, written FROM entry WHERE id = ?"));
  row.Bind(entry);
  TRANCHE_ASSIGN_OR_RETURN(const bool found, row.Row());
  if (!found) return std::optional<ChainPoint>();
  return ChainPoint{row.Integer(0), Hex(std::string(row.Bytes(1))),
                    Instant(Millis(row.Integer(2)))};
}

absl::StatusOr<std::optional<ChainPoint>> Reader::Newest() {
  TRANCHE_ASSIGN_OR_RETURN(const int64_t entry,
                           impl_->database.Integer("SELECT coalesce(max(id), 0) FROM entry"));
  return PointAt(entry);
}

absl::StatusOr<Bill> Reader::MakeBill(BillQuery query) {
  TRANCHE_ASSIGN_OR_RETURN(const Instant last, LastTime());
  query.to = std::min(query.to, last);
  // Uses before the fleet: entries never change, and what comes in between is of later times.
  std::vector<BillUse> uses;
  ReportQuery span;
  span.from = query.from;
  span.to = query.to;
  span.now = query.to;
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<IdleSpan> idle,
                           ReadIdle(impl_->database, query.from, query.to));
  absl::Status unreadable;
  const auto add = [&](const ExportRow& row) {
    const OpenInterval& held = row.interval;
    BillUse use;
    unreadable.Update(NoteWorkload(query.by, row, use));
    use.node = held.node.str();
    use.model = PartsOf(held.parts[0].model).model;
    use.ns = held.pod.ns;
    use.team = held.leaf;
    use.pod = held.pod.name;
    use.workload_class = held.workload_class;
    use.from = MillisOf(held.since);
    use.until = MillisOf(std::min(row.end.value_or(query.to), query.to));
    use.charge = held.parts[0].charge;
    for (const RefundedPart& part : row.refunds) {
      use.refunds.push_back({MillisOf(part.span.start), MillisOf(part.span.end), part.charge});
    }
    for (const IdleSpan& one : std::ranges::equal_range(idle, held.uid, {}, &IdleSpan::uid)) {
      use.idle.push_back({MillisOf(one.since), MillisOf(one.until)});
    }
    uses.push_back(std::move(use));
  };
  TRANCHE_RETURN_IF_ERROR(ExportIntervals(impl_->database, span, add, query.as_of));
  TRANCHE_RETURN_IF_ERROR(unreadable);
  TRANCHE_ASSIGN_OR_RETURN(std::vector<FleetEntry> fleet, FleetEntries(impl_->database));
  if (query.as_of) {
    std::erase_if(fleet, [&](const FleetEntry& entry) { return entry.entry > *query.as_of; });
  }
  TRANCHE_ASSIGN_OR_RETURN(Bill bill, SumBill(query, fleet, uses));
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<RestoredRow> restored,
                           RestoredUses(impl_->database, span));
  std::map<std::pair<std::string, std::string>, GpuTime> sums;  // by leaf, model
  for (const RestoredRow& row : restored) {
    if (query.as_of && row.entry > *query.as_of) continue;
    sums[{row.leaf, row.model}] += RestoredWithin(row, query.from, query.to);
  }
  for (const auto& [line, time] : sums) {
    bill.restored += std::max(time.compute, time.memory) / kUnitWeight;
  }
  return bill;
}

absl::StatusOr<BillStatement> Reader::MakeStatement(BillQuery query) {
  TRANCHE_ASSIGN_OR_RETURN(const Instant last, LastTime());
  TRANCHE_ASSIGN_OR_RETURN(std::optional<ChainPoint> newest, Newest());
  if (!newest) return absl::FailedPreconditionError("expected a ledger with entries, found none");
  if (query.to == Instant::max()) query.to = MonthOf(last + Millis(1));
  if (query.from == Instant::min()) query.from = MonthOf(query.to);
  if (query.to > last) {
    return absl::InvalidArgumentError(
        fmt::format("to: expected the end of a span that is over, found {}; the ledger knows of "
                    "time until {}",
                    FormatDay(query.to), FormatDay(last)));
  }
  query.as_of = newest->entry;
  TRANCHE_ASSIGN_OR_RETURN(Bill bill, MakeBill(query));
  return BillStatement{*std::move(newest), std::move(bill)};
}

absl::StatusOr<RecordedPast> Reader::Past(Instant since, Instant until) {
  return ReadRecorded(impl_->database, since, until);
}

absl::StatusOr<RecordedPast> Reader::Asked(const AskedQuery& query) {
  return ReadAsked(impl_->database, query);
}

absl::StatusOr<std::vector<PodWork>> Reader::Work() { return ReadWork(impl_->database); }

absl::Status Reader::Export(const ReportQuery& query,
                            const std::function<void(const ExportRow&)>& row) {
  return ExportIntervals(impl_->database, query, row);
}

absl::StatusOr<std::vector<ExportRow>> Reader::HeldIn(Instant from, Instant to,
                                                      const std::optional<std::string>& leaf) {
  ReportQuery query;
  query.from = from;
  query.to = to + Millis(1);
  query.now = *query.to;
  query.leaf = leaf;
  std::vector<ExportRow> rows;
  bool all = true;
  TRANCHE_RETURN_IF_ERROR(Export(query, [&rows, &all](const ExportRow& row) {
    all = all && rows.size() < kMostHeld;
    if (all) rows.push_back(row);
  }));
  if (all) return rows;
  return absl::InvalidArgumentError(fmt::format(
      "expected a span with at most {} holders of GPUs, found more: ask for a shorter one",
      kMostHeld));
}

}  // namespace tranche::ledger
