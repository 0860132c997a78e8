// What a Reader answers, as functions of a connection; reader.h says what each returns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/ledger/reader.h"
#include "scheduler/ledger/sqlite/sqlite.h"

namespace tranche::ledger {

// `stop` is asked every few milliseconds; true ends it (Cancelled).
absl::StatusOr<VerifyReport> VerifyRules(
    Database& database, const std::function<void(int64_t done, int64_t total)>& progress,
    const std::function<bool()>& stop);

absl::StatusOr<std::vector<ReportRow>> ReportUsage(Database& database, const ReportQuery& query);

// The same within a transaction of the caller's.
absl::StatusOr<std::vector<ReportRow>> SumUsage(Database& database, const ReportQuery& query);

absl::StatusOr<std::vector<RestoredRow>> RestoredUses(Database& database, const ReportQuery& query);

// As much of it as lies in [from, to), evenly over its span.
GpuTime RestoredWithin(const RestoredRow& row, Instant from, Instant to);

// All that the entries say of the fleet, ascending entry.
absl::StatusOr<std::vector<FleetEntry>> FleetEntries(Database& database);

// `as_of`: as if that entry were the newest; nullopt: the newest is.
absl::Status ExportIntervals(Database& database, const ReportQuery& query,
                             const std::function<void(const ExportRow&)>& row,
                             std::optional<int64_t> as_of = {});

}  // namespace tranche::ledger
