#include "scheduler/app/ledger_json.h"

#include "scheduler/wire/json.h"

namespace tranche::app {

std::string EncodeLedgerReport(std::span<const ledger::ReportRow> rows) {
  std::string out = "{\"rows\":[";
  Int128 total = 0;
  for (const ledger::ReportRow& row : rows) {
    out += out.back() == '}' ? ",{\"leaf\":" : "{\"leaf\":";
    if (row.leaf.empty()) {
      out += "null";
    } else {
      wire::AppendQuoted(out, row.leaf);
    }
    out += ",\"model\":";
    wire::AppendQuoted(out, row.model);
    out += ",\"gpuHours\":";
    wire::AppendQuoted(out, FormatGpuHours(Larger(row.time)));
    out += '}';
    total += Larger(row.time);
  }
  out += "],\"total\":";
  wire::AppendQuoted(out, FormatGpuHours(total));
  return out + '}';
}

}  // namespace tranche::app
