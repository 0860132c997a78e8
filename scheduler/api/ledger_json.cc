#include "scheduler/api/ledger_json.h"

#include <nlohmann/json.hpp>

#include "quota/budget/budget.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche {
namespace {

using wire::Json;

Json RowJson(const ledger::ReportRow& row) {
  Json entry = {
      {"leaf", row.leaf}, {"model", row.model}, {"gpuHours", FormatGpuHours(Larger(row.time))}};
  if (row.restored != GpuTime{}) entry["restoredGpuHours"] = FormatGpuHours(Larger(row.restored));
  return entry;
}

Json RestoredJson(const ledger::RestoredRow& row) {
  return {{"leaf", row.leaf},
          {"model", row.model},
          {"gpuHours", FormatGpuHours(Larger(row.time))},
          {"from", wire::FormatTime(row.span.start)},
          {"to", wire::FormatTime(row.span.end)},
          {"checkpoint", wire::FormatTime(row.mark.at)}};
}

}  // namespace

Int128 TotalOf(const std::vector<ledger::ReportRow>& rows) {
  Int128 total = 0;
  for (const ledger::ReportRow& row : rows) total += Larger(row.time);
  return total;
}

std::string LedgerReportJson(const std::vector<ledger::ReportRow>& rows,
                             const std::vector<ledger::RestoredRow>& restored) {
  Json report = {{"rows", wire::ListOf(rows, RowJson)}, {"total", FormatGpuHours(TotalOf(rows))}};
  if (!restored.empty()) report["restored"] = wire::ListOf(restored, RestoredJson);
  return wire::Dump(report);
}

}  // namespace tranche
