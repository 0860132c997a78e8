#include "scheduler/cli/cli_ledger.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "quota/budget/budget.h"
#include "quota/tree/charge.h"
#include "scheduler/api/ledger_json.h"
#include "scheduler/cli/cli_ask.h"
#include "scheduler/cli/output/exit_code.h"
#include "scheduler/cli/output/json.h"
#include "scheduler/cli/output/output_format.h"
#include "scheduler/cli/output/table.h"
#include "scheduler/cli/output/words.h"
#include "scheduler/kube/transport/server_url.h"
#include "scheduler/ledger/sqlite_ledger.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

constexpr int kBad = 1;

int EndWith(std::ostream& err, const absl::Status& status) {
  err << "tranche: " << std::string(status.message()) << '\n';
  return absl::IsDataLoss(status) ? kBad : kExitUsage;
}

absl::StatusOr<std::optional<Instant>> ReadTime(const char* flag,
                                                const std::optional<std::string>& text) {
  if (!text) return std::optional<Instant>();
  constexpr std::size_t kDate = 10;  // YYYY-MM-DD
  const std::string full = text->size() == kDate ? *text + "T00:00:00Z" : *text;
  const std::optional<Instant> time = wire::ParseTime(full);
  if (time) return time;
  return absl::InvalidArgumentError(
      fmt::format("expected {} as YYYY-MM-DD or RFC 3339, found {}", flag, wire::Quoted(*text)));
}

// The opened file and what to ask it.
struct LedgerQuestion {
  ledger::Reader reader;
  ledger::ReportQuery query;
};

// The span's times and team.
absl::StatusOr<ledger::ReportQuery> QueryOf(const LedgerSpan& span) {
  ledger::ReportQuery query;
  TRANCHE_ASSIGN_OR_RETURN(query.from, ReadTime("--from", span.from));
  TRANCHE_ASSIGN_OR_RETURN(query.to, ReadTime("--to", span.to));
  if (query.from && query.to && *query.to < *query.from) {
    return absl::InvalidArgumentError(
        fmt::format("expected --to not before --from, found {} before {}", *span.to, *span.from));
  }
  query.leaf = span.leaf;
  return query;
}

absl::StatusOr<LedgerQuestion> Prepare(const LedgerSpan& span) {
  TRANCHE_ASSIGN_OR_RETURN(ledger::ReportQuery query, QueryOf(span));
  TRANCHE_ASSIGN_OR_RETURN(ledger::Reader reader, ledger::Reader::Open(span.path));
  TRANCHE_ASSIGN_OR_RETURN(query.now, reader.LastTime());
  return LedgerQuestion{std::move(reader), std::move(query)};
}

// A line that is written over, where somebody watches and it takes long.
class Progress {
 public:
  explicit Progress(std::ostream& err)
      : err_(err), watched_(&err == &std::cerr && isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (shown_) err_ << "\r\033[K";
  }
  void Show(int64_t done, int64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!watched_ || now - last_ < std::chrono::seconds(1)) return;
    last_ = now;
    shown_ = true;
    err_ << fmt::format("\r{} of {} entries", done, total) << std::flush;
  }

 private:
  std::ostream& err_;
  const bool watched_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

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

std::string CsvLine(const std::vector<RowField>& fields) {
  std::string line;
  for (const RowField& field : fields) {
    if (!line.empty()) line += ',';
    const bool ours = field.kind == RowField::Kind::kDecimal || field.kind == RowField::Kind::kWord;
    line += ours ? field.value : CsvText(field.value);
  }
  return line + "\r\n";
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

std::string JsonLine(const std::vector<RowField>& fields) {
  Json line;
  for (const RowField& field : fields) line[field.name] = ValueOf(field);
  return wire::Dump(line);
}

std::string VerifyJson(const ledger::VerifyReport& report) {
  return wire::Dump({{"sound", report.faults.empty()},
                     {"entries", report.entries},
                     {"postings", report.postings},
                     {"openIntervals", report.open_intervals},
                     {"restored", report.restored},
                     {"head", report.head},
                     {"faults", report.faults}});
}

std::string CsvTitles() {
  ledger::ExportRow empty;
  empty.interval.parts.emplace_back();
  std::string titles;
  for (const RowField& field : FieldsOf(empty)) {
    titles += (titles.empty() ? "" : ",") + std::string(field.name);
  }
  return titles + "\r\n";
}

}  // namespace

absl::StatusOr<std::string> LedgerQueryOf(const LedgerSpan& span) {
  TRANCHE_ASSIGN_OR_RETURN(const ledger::ReportQuery query, QueryOf(span));
  std::string text;
  const auto add = [&text](const char* name, const std::string& value) {
    text += fmt::format("{}{}={}", text.empty() ? '?' : '&', name, kube::PercentEncoded(value));
  };
  if (query.from) add("from", wire::FormatTime(*query.from));
  if (query.to) add("to", wire::FormatTime(*query.to));
  if (span.leaf) add("leaf", *span.leaf);
  return text;
}

int LedgerRepairClock(const std::string& path, std::ostream& out, std::ostream& err) {
  const Instant now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  const absl::StatusOr<Instant> newest = ledger::SqliteLedger::RepairClock(path, now);
  if (!newest.ok()) return EndWith(err, newest.status());
  out << fmt::format("the newest moment of {} is {}\n", path, wire::FormatTime(*newest));
  return 0;
}

int LedgerVerify(const std::string& path, bool json, std::ostream& out, std::ostream& err) {
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) return EndWith(err, reader.status());
  absl::StatusOr<ledger::VerifyReport> report;
  {
    Progress progress(err);
    report =
        reader->Verify([&progress](int64_t done, int64_t total) { progress.Show(done, total); });
  }
  if (!report.ok()) return EndWith(err, report.status());
  if (json) {
    out << VerifyJson(*report) << '\n';
  } else {
    for (const std::string& fault : report->faults) out << fault << '\n';
  }
  if (!report->faults.empty()) {
    return EndWith(err,
                   absl::DataLossError(fmt::format("expected a sound ledger, found {} faults in {}",
                                                   report->faults.size(), path)));
  }
  if (json) return 0;
  out << fmt::format("sound: {} entries, {} postings, {} open intervals, head {}\n",
                     report->entries, report->postings, report->open_intervals, report->head);
  if (report->restored > 0) {
    out << fmt::format("{} entries were taken over from checkpoints of another ledger\n",
                       report->restored);
  }
  return 0;
}

namespace {

std::string RestoredNote(const std::vector<ledger::RestoredRow>& restored) {
  if (restored.empty()) return "";
  Instant newest = restored.front().mark.at;
  for (const ledger::RestoredRow& row : restored) newest = std::max(newest, row.mark.at);
  return fmt::format(
      "RESTORED was taken over from checkpoints, the newest of {}, after an earlier ledger was "
      "lost: known as a sum, shown evenly over its time\n",
      wire::FormatTime(newest));
}

}  // namespace

int LedgerReport(const LedgerReportOptions& options, std::ostream& out, std::ostream& err) {
  absl::StatusOr<LedgerQuestion> question = Prepare(options.span);
  if (!question.ok()) return EndWith(err, question.status());
  const absl::StatusOr<std::vector<ledger::ReportRow>> rows =
      question->reader.Report(question->query);
  if (!rows.ok()) return EndWith(err, rows.status());
  const absl::StatusOr<std::vector<ledger::RestoredRow>> restored =
      question->reader.Restored(question->query);
  if (!restored.ok()) return EndWith(err, restored.status());
  if (options.json) {
    out << LedgerReportJson(*rows, *restored) << '\n';
    return 0;
  }
  // The column is there where there is something to say.
  std::vector<std::string> titles = {"TEAM", "MODEL", "GPU-HOURS"};
  if (!restored->empty()) titles.emplace_back("RESTORED");
  Table table(std::move(titles));
  const auto add = [&table, &restored](std::vector<std::string> cells, Int128 taken_over) {
    if (!restored->empty()) cells.push_back(FormatGpuHours(taken_over));
    table.Add(std::move(cells));
  };
  Int128 total = 0;
  for (const ledger::ReportRow& row : *rows) {
    total += Larger(row.restored);
    add({row.leaf.empty() ? "-" : row.leaf, row.model, FormatGpuHours(Larger(row.time))},
        Larger(row.restored));
  }
  add({"total", "", FormatGpuHours(TotalOf(*rows))}, total);
  out << table.Text(TerminalOf(out)) << RestoredNote(*restored);
  return 0;
}

namespace {

// Older servers do not tell of it, nor is it known where nobody measures.
bool TellsIdle(const Json& bill) {
  return bill.contains("idle") && Text(bill.at("idle"), "gpuHours") != "0.000";
}

// One line of a bill: a row, or one of the parts below them. `idle`: nullopt where no line has it.
std::vector<std::string> BillCells(const std::string& key, const Json& part,
                                   const std::optional<std::string>& idle) {
  std::vector<std::string> cells = {key, Text(part, "gpuHours")};
  if (idle) cells.push_back(*idle);
  cells.insert(cells.end(), {Text(part, "unpricedGpuHours"), Text(part, "cost")});
  return cells;
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
  for (const std::string part : {"used", "free", "refunded", "fleet"}) {
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
  known("prices are", "pricesKnownFrom", "the ledger does not tell of prices: nothing is billed");
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

// FOCUS 1.2, the columns that a cluster can tell; what is ours alone begins with x_.
constexpr std::string_view kFocusTitles =
    "BilledCost,BillingCurrency,BillingPeriodStart,BillingPeriodEnd,ChargeCategory,"
    "ChargeDescription,ChargePeriodStart,ChargePeriodEnd,ConsumedQuantity,ConsumedUnit,"
    "EffectiveCost,ProviderName,ResourceId,ResourceType,ServiceCategory,ServiceName,SubAccountId,"
    "SubAccountName,x_UnpricedQuantity,x_IdleQuantity";

std::string FocusLine(const Json& bill, const std::string& what, const std::string& key,
                      const Json& part) {
  const std::string by = Text(bill, "by");
  const bool is_row = what == "used";
  const std::string account = is_row && (by == "team" || by == "namespace") ? key : "";
  const std::string resource = is_row && (by == "model" || by == "pool") ? key : "";
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
  constexpr const char* kLine =
      "{},{},{},Usage,{},{},{},{},GPU-Hours,{},Tranche,{},{},Compute,GPU,{},{},{},{}\r\n";
  return fmt::format(kLine, cost, bill.at("currency").is_null() ? "" : Text(bill, "currency"),
                     period, what, from, to, Text(part, "gpuHours"), cost, CsvText(resource),
                     resource.empty() ? "" : CsvText(by), CsvText(account), CsvText(account),
                     Text(part, "unpricedGpuHours"),
                     part.contains("idleGpuHours") ? Text(part, "idleGpuHours") : "");
}

void PrintFocus(const Json& bill, std::ostream& out) {
  std::string text = std::string(kFocusTitles) + "\r\n";
  for (const Json& row : bill.at("rows")) text += FocusLine(bill, "used", row.at("key"), row);
  for (const char* const part : {"free", "refunded"}) {
    text += FocusLine(bill, part, "", bill.at(part));
  }
  out << text;
}

absl::StatusOr<ledger::BillQuery> BillQueryOf(const LedgerBillOptions& options) {
  TRANCHE_ASSIGN_OR_RETURN(const ledger::ReportQuery span, QueryOf(options.span));
  const std::optional<ledger::BillBy> by = ledger::ParseBillBy(options.by);
  if (!by) {
    return absl::InvalidArgumentError(
        fmt::format("--by: expected {}, found {}", ledger::kBillByWords, wire::Quoted(options.by)));
  }
  const Instant to = span.to.value_or(Instant::max());
  return ledger::BillQuery{span.from.value_or(Instant::min()), to, *by};
}

// Of a file.
absl::StatusOr<Answer> ReadBill(const std::string& path, ledger::BillQuery query) {
  TRANCHE_ASSIGN_OR_RETURN(ledger::Reader reader, ledger::Reader::Open(path));
  TRANCHE_ASSIGN_OR_RETURN(const Instant last, reader.LastTime());
  query.to = std::min(query.to, last);
  if (query.from == Instant::min()) query.from = ledger::MonthOf(query.to);
  TRANCHE_ASSIGN_OR_RETURN(const ledger::Bill bill, reader.MakeBill(query));
  std::string body = BillJson(bill);
  Json json = Json::parse(body);
  return Answer{std::move(body), std::move(json)};
}

}  // namespace

int LedgerBill(const LedgerBillOptions& options, const ClientOptions& client, std::ostream& out,
               std::ostream& err) {
  const bool csv = client.output == "csv";
  const absl::StatusOr<OutputFormat> format =
      csv ? OutputFormat() : ParseOutputFormat(client.output, kBillFormats);
  if (!format.ok()) return EndWith(err, format.status());
  const absl::StatusOr<ledger::BillQuery> query = BillQueryOf(options);
  if (!query.ok()) return EndWith(err, query.status());
  Answer answer;
  if (options.span.path.empty()) {
    const absl::StatusOr<std::string> span = LedgerQueryOf(options.span);
    if (!span.ok()) return EndWith(err, span.status());
    const absl::StatusOr<Server> server = ReadServerFlags(client.server);
    if (!server.ok()) return Fail(err, server.status());
    const std::string target =
        fmt::format("/api/v1/ledger/bill{}{}by={}", *span, span->empty() ? '?' : '&', options.by);
    int code = kExitUsage;
    std::optional<Answer> told = AskServer(*server, "GET", target, "", err, code);
    if (!told) return code;
    answer = std::move(*told);
  } else {
    absl::StatusOr<Answer> read = ReadBill(options.span.path, *query);
    if (!read.ok()) return EndWith(err, read.status());
    answer = std::move(*read);
  }
  if (!csv) return ShowAnswer(*format, answer, out, err, PrintBill);
  try {
    PrintFocus(answer.json, out);
    return kExitDone;
  } catch (const Json::exception& error) {
    return FailOfForm(err, error);
  }
}

int LedgerExport(const LedgerExportOptions& options, std::ostream& out, std::ostream& err) {
  absl::StatusOr<LedgerQuestion> question = Prepare(options.span);
  if (!question.ok()) return EndWith(err, question.status());
  const bool json = options.format == ExportFormat::kJson;
  bool first = true;
  out << (json ? "{\"rows\":[" : CsvTitles());
  const absl::Status done =
      question->reader.Export(question->query, [&](const ledger::ExportRow& row) {
        const std::vector<RowField> fields = FieldsOf(row);
        if (json) {
          out << (first ? "\n" : ",\n") << JsonLine(fields);
        } else {
          out << CsvLine(fields);
        }
        first = false;
      });
  if (!done.ok()) return EndWith(err, done);
  if (json) out << (first ? "]}\n" : "\n]}\n");
  return 0;
}

}  // namespace tranche
