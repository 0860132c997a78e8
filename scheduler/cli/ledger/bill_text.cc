#include "scheduler/cli/ledger/bill_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <ostream>
#include <vector>

#include "scheduler/cli/output/exit_code.h"
#include "scheduler/cli/output/table.h"
#include "scheduler/cli/output/words.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/units.h"

namespace tranche {
namespace {

// Older servers do not tell of it, nor is it known where nobody measures.
bool TellsIdle(const Json& bill) {
  return bill.contains("idle") && Text(bill.at("idle"), "gpuHours") != "0.000";
}

// Older servers do not tell of it, nor do ledgers before version 7.
bool TellsStranded(const Json& bill) {
  return bill.contains("stranded") && !bill.at("strandedKnownFrom").is_null();
}

// What is below the rows, but for all of it.
std::vector<std::string> SharesOf(const Json& bill) {
  std::vector<std::string> parts = {"used", "free"};
  if (TellsStranded(bill)) parts.emplace_back("stranded");
  parts.emplace_back("refunded");
  return parts;
}

// One line of a bill: a row, or one of the parts below them. `idle`: nullopt where no line has it.
std::vector<std::string> BillCells(const std::string& key, const Json& part,
                                   const std::optional<std::string>& idle) {
  std::vector<std::string> cells = {key, Text(part, "gpuHours")};
  if (idle) cells.push_back(*idle);
  cells.insert(cells.end(), {Text(part, "unpricedGpuHours"), Text(part, "cost")});
  return cells;
}

// FOCUS 1.2, the columns that a cluster can tell; what is ours alone begins with x_.
constexpr std::string_view kFocusTitles =
    "BilledCost,BillingCurrency,BillingPeriodStart,BillingPeriodEnd,ChargeCategory,ChargeClass,"
    "ChargeDescription,ChargeFrequency,ChargePeriodStart,ChargePeriodEnd,ConsumedQuantity,"
    "ConsumedUnit,ContractedCost,EffectiveCost,InvoiceIssuerName,ListCost,PricingCategory,"
    "PricingQuantity,PricingUnit,ProviderName,PublisherName,ResourceId,ResourceName,ResourceType,"
    "ServiceCategory,ServiceName,SubAccountId,SubAccountName,Tags,x_UnpricedQuantity,"
    "x_IdleQuantity";

constexpr std::string_view kLabelPrefix = "label:";

// FOCUS: a JSON object of keys and values. A row of pods without the label has none.
std::string TagsOf(const std::string& by, const std::string& key) {
  if (!by.starts_with(kLabelPrefix) || key.empty()) return "";
  return Json({{by.substr(kLabelPrefix.size()), key}}).dump();
}

// A label that is not kept is a bill of one row without a name.
bool KnowsNoLabel(const Json& bill) {
  const Json& rows = bill.at("rows");
  return Text(bill, "by").starts_with(kLabelPrefix) && !rows.empty() &&
         std::ranges::all_of(rows, [](const Json& row) { return row.at("key") == ""; });
}

std::string FocusLine(const Json& bill, const std::string& what, const std::string& key,
                      const Json& part) {
  const std::string by = Text(bill, "by");
  const bool is_row = what == "used";
  const std::string account = is_row && (by == "team" || by == "namespace") ? key : "";
  const std::string resource =
      is_row && (by == "model" || by == "pool" || by == "node" || by == "pod" || by == "owner")
          ? key
          : "";
  std::string from = Text(bill, "from");
  std::string to = Text(bill, "to");
  const std::string period = fmt::format("{},{}", from, to);
  const std::optional<Instant> day =
      is_row && by == "day" ? wire::ParseTime(key + "T00:00:00Z") : std::nullopt;
  if (day) {
    from = std::max(from, wire::FormatTime(*day));
    to = std::min(to, wire::FormatTime(*day + std::chrono::hours(24)));
  }
  const std::string cost = Text(part, "cost");
  const std::string hours = Text(part, "gpuHours");
  // No discount is known: what is paid is what is listed.
  constexpr const char* kLine =
      "{cost},{currency},{period},Usage,,{what},Usage-Based,{from},{to},{hours},GPU-Hours,"
      "{cost},{cost},Tranche,{cost},Standard,{hours},GPU-Hours,Tranche,Tranche,{resource},"
      "{resource},{type},Compute,GPU,{account},{account},{tags},{unpriced},{idle}\r\n";
  return fmt::format(
      kLine, fmt::arg("cost", cost),
      fmt::arg("currency", bill.at("currency").is_null() ? "" : Text(bill, "currency")),
      fmt::arg("period", period), fmt::arg("what", what), fmt::arg("from", from),
      fmt::arg("to", to), fmt::arg("hours", hours), fmt::arg("resource", CsvText(resource)),
      fmt::arg("type", resource.empty() ? "" : CsvText(by)), fmt::arg("account", CsvText(account)),
      fmt::arg("tags", CsvText(is_row ? TagsOf(by, key) : "")),
      fmt::arg("unpriced", Text(part, "unpricedGpuHours")),
      fmt::arg("idle", part.contains("idleGpuHours") ? Text(part, "idleGpuHours") : ""));
}

}  // namespace

// RFC 4180, guarded against spreadsheets that run what looks like a formula.
std::string CsvText(std::string_view text) {
  std::string cell;
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos) {
    cell = "'";
  }
  cell += text;
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

int PrintBill(const Json& bill, std::ostream& out) {
  std::string title = Text(bill, "by");
  std::ranges::transform(title, title.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  const bool priced = !bill.at("currency").is_null();
  const bool tells_idle = TellsIdle(bill);
  std::vector<std::string> titles = {title, "GPU-HOURS"};
  if (tells_idle) titles.emplace_back("IDLE");
  titles.insert(titles.end(), {"UNPRICED", priced ? Text(bill, "currency") : "COST"});
  Table table(titles);
  for (const Json& row : bill.at("rows")) {
    table.Add(BillCells(Text(row, "key"), row,
                        tells_idle ? std::optional(Text(row, "idleGpuHours")) : std::nullopt));
  }
  std::vector<std::string> parts = SharesOf(bill);
  parts.emplace_back("fleet");
  for (const std::string& part : parts) {
    const bool has_it = tells_idle && part == "used";
    const std::string idle = has_it ? Text(bill.at("idle"), "gpuHours") : "";
    table.Add(BillCells(part, bill.at(part), tells_idle ? std::optional(idle) : std::nullopt));
  }
  out << table.Text(TerminalOf(out));
  if (tells_idle) {
    out << fmt::format("{} of the GPU-hours used did nothing, for {}\n",
                       Text(bill.at("idle"), "gpuHours"), Text(bill.at("idle"), "cost"));
  }
  const auto known = [&](const char* what, const char* from, const char* missing) {
    out << (bill.at(from).is_null() ? fmt::format("{}\n", missing)
                                    : fmt::format("{} known from {}\n", what, Text(bill, from)));
  };
  known("the fleet is", "fleetKnownFrom",
        "the ledger does not tell of the fleet: nothing is billed");
  if (TellsStranded(bill)) known("what is stranded is", "strandedKnownFrom", "");
  known("prices are", "pricesKnownFrom", "the ledger does not tell of prices: nothing is billed");
  if (KnowsNoLabel(bill)) {
    out << fmt::format(
        "no pod of the span has the label {}, or it was not kept (ledger.billLabels)\n",
        Text(bill, "by").substr(kLabelPrefix.size()));
  }
  if (Text(bill, "unknownGpuHours") != "0.000") {
    out << fmt::format("{} GPU-hours were used on nodes that the ledger did not tell of then\n",
                       Text(bill, "unknownGpuHours"));
  }
  if (Text(bill, "restoredGpuHours") != "0.000") {
    out << fmt::format("{} GPU-hours were taken over from checkpoints and are not billed\n",
                       Text(bill, "restoredGpuHours"));
  }
  return kExitDone;
}

void PrintFocus(const Json& bill, std::ostream& out) {
  std::string text = std::string(kFocusTitles) + "\r\n";
  for (const Json& row : bill.at("rows")) text += FocusLine(bill, "used", row.at("key"), row);
  for (const std::string& part : SharesOf(bill)) {
    if (part != "used") text += FocusLine(bill, part, "", bill.at(part));
  }
  out << text;
}

}  // namespace tranche
