// Reading a ledger file, beside a running writer or after a crash; never changes it, never creates
// it. Reads are cut into pieces of at most 1 s so that the writer's checkpoints get through.
//
// Thread rule: one thread per Reader.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "quota/budget/budget.h"
#include "scheduler/facts/metering.h"
#include "scheduler/ledger/bill/bill.h"
#include "scheduler/ledger/past/recorded.h"

namespace tranche::ledger {

struct VerifyReport {
  int64_t entries = 0;
  int64_t postings = 0;
  int64_t open_intervals = 0;
  int64_t restored = 0;  // entries taken over from checkpoints
  std::string head;      // hex
  // What is wrong, one line each: rule, entry, expected, found. Empty: every rule holds.
  std::vector<std::string> faults;
};

// An entry and the hash of the chain up to it: all that was written by then.
struct ChainPoint {
  int64_t entry = 0;
  std::string hash;  // hex
  Instant written;
};

struct ReportRow {
  std::string leaf;  // "" for pods of no leaf
  std::string model;
  GpuTime time;      // weight kUnitWeight: plain GPU time
  GpuTime restored;  // of it, taken over from checkpoints
};

// What a span cost, as the ledger said when an entry was its newest.
struct BillStatement {
  ChainPoint point;
  Bill bill;  // its idleness is in no chain
};

// GPU time of a leaf and model that was taken over from a checkpoint.
struct RestoredRow {
  int64_t entry = 0;
  std::string leaf;
  std::string model;
  TimeSpan span;  // the entry's: known is the sum over it, not when in it
  GpuTime time;   // over all of it
  CheckpointMark mark;
};

// Part of an interval's use that was given back.
struct RefundedPart {
  TimeSpan span;
  Charge charge;
};

// One interval of one pod on one model's GPUs, for export.
struct ExportRow {
  OpenInterval interval;
  std::optional<Instant> end;  // nullopt: still open
  bool estimated = false;
  bool late = false;
  std::string devices;                // JSON
  std::string workload;               // bill/workload_text.h; "": nothing is known
  GpuTime time;                       // within the asked span
  GpuTime refunded;                   // of it, given back
  std::vector<RefundedPart> refunds;  // all of the interval's, whatever span is asked
};

struct ReportQuery {
  std::optional<Instant> from;  // nullopt: the first entry
  std::optional<Instant> to;    // nullopt: `now`
  std::optional<std::string> leaf;
  Instant now;  // open intervals count up to here
};

class Reader {
 public:
  // Errors: NotFound (no such file; it is not created), FailedPrecondition (not a ledger, newer
  // schema), DataLoss, PermissionDenied.
  static absl::StatusOr<Reader> Open(const std::string& path);
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  // The newest time the ledger knows of: of an entry or a heartbeat. What is open is known to have
  // been in use until then. Errors: DataLoss.
  absl::StatusOr<Instant> LastTime();
  // The newest entry; nullopt: there is none. Errors: DataLoss.
  absl::StatusOr<std::optional<ChainPoint>> Newest();
  // nullopt: there is no such entry.
  absl::StatusOr<std::optional<ChainPoint>> PointAt(int64_t entry);
  // integrity_check, foreign_key_check, rules 1 to 6, and the head file beside the ledger.
  // `progress(done, total)` in entries.
  absl::StatusOr<VerifyReport> Verify(
      const std::function<void(int64_t done, int64_t total)>& progress);
  // GPU time by leaf and model, refunds taken off; ascending leaf, model. Exact; from rollups
  // except at the edges: 10 million entries in under a second.
  absl::StatusOr<std::vector<ReportRow>> Report(const ReportQuery& query);
  // What was taken over that overlaps the span, in the order it was. Included in Report, evenly
  // over the time it is the sum of.
  absl::StatusOr<std::vector<RestoredRow>> Restored(const ReportQuery& query);
  // What use and fleet cost; `to` is no later than the newest time the ledger knows of. Errors: as
  // of SumBill. Some 250 bytes for each interval in the span.
  absl::StatusOr<Bill> MakeBill(BillQuery query);
  // The same of a span that is over, with the place in the chain by which it can be proven later.
  // `to` Instant::max(): the end of the last month; `from` Instant::min(): the first of its month.
  // Errors: as of MakeBill, InvalidArgument (the span is not over), FailedPrecondition (the ledger
  // is empty).
  absl::StatusOr<BillStatement> MakeStatement(BillQuery query);
  // What happened between the two, and what was so when it began. Errors: DataLoss.
  absl::StatusOr<RecordedPast> Past(Instant since, Instant until);
  // Of them the pods that came last. Errors: DataLoss.
  absl::StatusOr<RecordedPast> Asked(const AskedQuery& query);
  // What running pods did, as it was told last. Ascending uid.
  absl::StatusOr<std::vector<PodWork>> Work();
  // Intervals that overlap the span, ascending start, uid, interval, model.
  absl::Status Export(const ReportQuery& query, const std::function<void(const ExportRow&)>& row);
  // Those that held something from one moment to another, both included, in that order; `leaf`: of
  // one team alone. Errors: InvalidArgument for more than kMostHeld.
  static constexpr std::size_t kMostHeld = 50'000;
  absl::StatusOr<std::vector<ExportRow>> HeldIn(Instant from, Instant to,
                                                const std::optional<std::string>& leaf);

 private:
  struct Impl;
  explicit Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::ledger
