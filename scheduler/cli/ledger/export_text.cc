#include "scheduler/cli/ledger/export_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "quota/budget/budget.h"
#include "quota/tree/charge.h"
#include "scheduler/cli/ledger/bill_text.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche {
namespace {

// One value of a row, under the same name in both formats.
struct RowField {
  const char* name;
  enum class Kind { kText, kTime, kDecimal, kWord, kJson } kind;  // words and numbers go bare
  std::string value;                                              // empty: none
};

std::vector<RowField> FieldsOf(const ledger::ExportRow& row) {
  using Kind = RowField::Kind;
  const OpenInterval& interval = row.interval;
  const MeterPart& part = interval.parts.front();
  const int64_t milli = MilliGpuRoundedUp(GpuEquivalents(part.charge)).count();
  const GpuTime net{row.time.compute - row.refunded.compute, row.time.memory - row.refunded.memory};
  const auto time = [](const std::optional<Instant>& at) {
    return at ? wire::FormatTime(*at) : std::string();
  };
  return {
      {"podUid", Kind::kText, interval.uid.str()},
      {"interval", Kind::kWord, std::to_string(interval.interval)},
      {"namespace", Kind::kText, interval.pod.ns},
      {"pod", Kind::kText, interval.pod.name},
      {"leaf", Kind::kText, interval.leaf},
      {"class", Kind::kText, interval.workload_class},
      {"node", Kind::kText, interval.node.str()},
      {"model", Kind::kText, part.model},
      {"gpus", Kind::kDecimal, fmt::format("{}.{:03}", milli / 1000, milli % 1000)},
      {"start", Kind::kTime, time(interval.since)},
      {"running", Kind::kTime, time(interval.running)},
      {"end", Kind::kTime, time(row.end)},
      {"gpuHours", Kind::kDecimal, FormatGpuHours(Larger(net))},
      {"refundedGpuHours", Kind::kDecimal, FormatGpuHours(Larger(row.refunded))},
      {"estimated", Kind::kWord, row.estimated ? "true" : "false"},
      {"late", Kind::kWord, row.late ? "true" : "false"},
      {"devices", Kind::kJson, row.devices},
  };
}

Json ValueOf(const RowField& field) {
  switch (field.kind) {
    case RowField::Kind::kWord:
      return Json::parse(field.value);
    case RowField::Kind::kJson:
      // As it was stored; text that is no JSON must not break the document.
      if (field.value.empty()) return {};
      return Json::accept(field.value) ? Json::parse(field.value) : Json(field.value);
    case RowField::Kind::kTime:
      return wire::TextOrNull(field.value);
    case RowField::Kind::kText:
    case RowField::Kind::kDecimal:
      return field.value;
  }
  return {};
}

}  // namespace

std::string ExportedJson(const ledger::ExportRow& row) {
  Json line;
  for (const RowField& field : FieldsOf(row)) line[field.name] = ValueOf(field);
  return wire::Dump(line);
}

std::string ExportedCsv(const ledger::ExportRow& row) {
  std::string line;
  for (const RowField& field : FieldsOf(row)) {
    if (!line.empty()) line += ',';
    const bool ours = field.kind == RowField::Kind::kDecimal || field.kind == RowField::Kind::kWord;
    line += ours ? field.value : CsvText(field.value);
  }
  return line + "\r\n";
}

std::string ExportedCsvTitles() {
  ledger::ExportRow empty;
  empty.interval.parts.emplace_back();
  std::string titles;
  for (const RowField& field : FieldsOf(empty)) {
    titles += (titles.empty() ? "" : ",") + std::string(field.name);
  }
  return titles + "\r\n";
}

}  // namespace tranche
