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

Json PartJson(const ledger::BillPart& part) {
  return {{"gpuHours", ledger::FormatBilledHours(part.quantity)},
          {"unpricedGpuHours", ledger::FormatBilledHours(part.unpriced)},
          {"cost", ledger::FormatCents(part.cents)}};
}

Json BillRowJson(const ledger::BillRow& row) {
  Json entry = {{"key", row.key}};
  entry.update(PartJson(row.part));
  return entry;
}

Json MomentJson(const std::optional<Instant>& at) {
  return at ? Json(wire::FormatTime(*at)) : Json();
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

std::string BillJson(const ledger::Bill& bill) {
  return wire::Dump({{"from", wire::FormatTime(bill.from)},
                     {"to", wire::FormatTime(bill.to)},
                     {"by", std::string(NameOf(bill.by))},
                     {"currency", wire::TextOrNull(bill.currency)},
                     {"fleetKnownFrom", MomentJson(bill.fleet_from)},
                     {"pricesKnownFrom", MomentJson(bill.prices_from)},
                     {"rows", wire::ListOf(bill.rows, BillRowJson)},
                     {"fleet", PartJson(bill.fleet)},
                     {"used", PartJson(bill.used)},
                     {"free", PartJson(bill.free)},
                     {"refunded", PartJson(bill.refunded)},
                     {"unknownGpuHours", ledger::FormatBilledHours(bill.unknown)},
                     {"restoredGpuHours", ledger::FormatBilledHours(bill.restored)}});
}

}  // namespace tranche
