#include "scheduler/api/ledger_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

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

// What statements of older versions do not have is left out of those that have nothing to tell of
// it.
enum class Form : uint8_t { kBill, kStatement };

Json BillRowJson(const ledger::BillRow& row, Form form) {
  Json entry = {{"key", row.key}};
  entry.update(PartJson(row.part));
  if (form == Form::kStatement) return entry;
  entry["idleGpuHours"] = ledger::FormatBilledHours(row.idle.quantity);
  entry["idleCost"] = ledger::FormatCents(row.idle.cents);
  return entry;
}

Json HeldRowJson(const ledger::ExportRow& row) {
  const OpenInterval& held = row.interval;
  const Charge& charge = held.parts[0].charge;
  // As many GPU-hours as it holds GPUs, in an hour.
  const Int128 an_hour = Int128{std::max(charge.compute, charge.memory)} * 3'600'000;
  const Json record = Json::parse(row.devices, nullptr, /*allow_exceptions=*/false);
  return {{"node", held.node.str()},
          {"model", held.parts[0].model},
          {"gpus", ledger::FormatBilledHours(an_hour)},
          {"leaf", held.leaf},
          {"namespace", held.pod.ns},
          {"pod", held.pod.name},
          {"class", held.workload_class},
          {"since", wire::FormatTime(held.since)},
          {"until", row.end ? Json(wire::FormatTime(*row.end)) : Json()},
          {"containers", record.is_object() ? record.value("containers", Json()) : Json()}};
}

Json MomentJson(const std::optional<Instant>& at) {
  return at ? Json(wire::FormatTime(*at)) : Json();
}

Json BillValue(const ledger::Bill& bill, Form form) {
  Json rows = Json::array();
  for (const ledger::BillRow& row : bill.rows) rows.push_back(BillRowJson(row, form));
  Json value = {{"from", wire::FormatTime(bill.from)},
                {"to", wire::FormatTime(bill.to)},
                {"by", TextOf(bill.by)},
                {"currency", wire::TextOrNull(bill.currency)},
                {"fleetKnownFrom", MomentJson(bill.fleet_from)},
                {"pricesKnownFrom", MomentJson(bill.prices_from)},
                {"rows", std::move(rows)},
                {"fleet", PartJson(bill.fleet)},
                {"used", PartJson(bill.used)}};
  if (form == Form::kBill) value["idle"] = PartJson(bill.idle);
  value["free"] = PartJson(bill.free);
  if (form == Form::kBill || bill.stranded_from) {
    value["strandedKnownFrom"] = MomentJson(bill.stranded_from);
    value["stranded"] = PartJson(bill.stranded);
  }
  value["refunded"] = PartJson(bill.refunded);
  value["unknownGpuHours"] = ledger::FormatBilledHours(bill.unknown);
  value["restoredGpuHours"] = ledger::FormatBilledHours(bill.restored);
  return value;
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

std::string HeldJson(Instant at, std::vector<ledger::ExportRow> rows) {
  std::ranges::sort(rows, {}, [](const ledger::ExportRow& row) {
    const OpenInterval& held = row.interval;
    return std::tie(held.node, held.parts[0].model, held.since, held.pod);
  });
  return wire::Dump({{"at", wire::FormatTime(at)}, {"rows", wire::ListOf(rows, HeldRowJson)}});
}

std::string BillJson(const ledger::Bill& bill) { return wire::Dump(BillValue(bill, Form::kBill)); }

std::string StatementJson(const ledger::BillStatement& statement) {
  const ledger::ChainPoint& point = statement.point;
  return wire::Dump({{"statement", 1},
                     {"ledger",
                      {{"entry", point.entry},
                       {"hash", point.hash},
                       {"written", wire::FormatTime(point.written)}}},
                     {"bill", BillValue(statement.bill, Form::kStatement)}});
}

}  // namespace tranche
