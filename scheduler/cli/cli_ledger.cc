#include "scheduler/cli/cli_ledger.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "quota/budget/budget.h"
#include "quota/tree/charge.h"
#include "scheduler/api/ledger_json.h"
#include "scheduler/cli/cli_ask.h"
#include "scheduler/cli/ledger/bill_text.h"
#include "scheduler/cli/ledger/export_text.h"
#include "scheduler/cli/ledger/hashed_names.h"
#include "scheduler/cli/ledger/held_text.h"
#include "scheduler/cli/ledger/past_text.h"
#include "scheduler/cli/ledger/statement_proof.h"
#include "scheduler/cli/output/exit_code.h"
#include "scheduler/cli/output/json.h"
#include "scheduler/cli/output/output_format.h"
#include "scheduler/cli/output/table.h"
#include "scheduler/embedded/text_file.h"
#include "scheduler/kube/transport/server_url.h"
#include "scheduler/ledger/sqlite_ledger.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

constexpr int kBad = 1;
constexpr std::size_t kMostStatementBytes = std::size_t{64} << 20U;

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

std::string VerifyJson(const ledger::VerifyReport& report) {
  return wire::Dump({{"sound", report.faults.empty()},
                     {"entries", report.entries},
                     {"postings", report.postings},
                     {"openIntervals", report.open_intervals},
                     {"restored", report.restored},
                     {"head", report.head},
                     {"faults", report.faults}});
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

absl::StatusOr<ledger::BillQuery> BillQueryOf(const LedgerBillOptions& options) {
  TRANCHE_ASSIGN_OR_RETURN(const ledger::ReportQuery span, QueryOf(options.span));
  const std::optional<ledger::BillGroup> by = ledger::ParseBillBy(options.by);
  if (!by) {
    return absl::InvalidArgumentError(
        fmt::format("--by: expected {}, found {}", ledger::kBillByWords, wire::Quoted(options.by)));
  }
  const Instant to = span.to.value_or(Instant::max());
  return ledger::BillQuery{span.from.value_or(Instant::min()), to, *by};
}

// nullopt: names stay.
absl::StatusOr<std::optional<HashedNames>> NamesOf(const std::optional<std::string>& hash_key) {
  if (!hash_key) return std::optional<HashedNames>();
  TRANCHE_ASSIGN_OR_RETURN(HashedNames names, HashedNames::Read(*hash_key));
  return std::optional<HashedNames>(std::move(names));
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
  const absl::StatusOr<std::optional<HashedNames>> names = NamesOf(options.hash_key);
  if (!names.ok()) return EndWith(err, names.status());
  Answer answer;
  if (options.span.path.empty()) {
    const absl::StatusOr<std::string> span = LedgerQueryOf(options.span);
    if (!span.ok()) return EndWith(err, span.status());
    const absl::StatusOr<Server> server = ReadServerFlags(client.server);
    if (!server.ok()) return Fail(err, server.status());
    const std::string target =
        fmt::format("/api/v1/ledger/bill{}{}by={}", *span, span->empty() ? '?' : '&',
                    kube::PercentEncoded(options.by));
    int code = kExitUsage;
    std::optional<Answer> told = AskServer(*server, "GET", target, "", err, code);
    if (!told) return code;
    answer = std::move(*told);
  } else {
    absl::StatusOr<Answer> read = ReadBill(options.span.path, *query);
    if (!read.ok()) return EndWith(err, read.status());
    answer = std::move(*read);
  }
  try {
    if (*names) {
      HashKeys(**names, answer.json);
      answer.body = wire::Dump(answer.json);
    }
    if (!csv) return ShowAnswer(*format, answer, out, err, PrintBill);
    PrintFocus(answer.json, out);
    return kExitDone;
  } catch (const Json::exception& error) {
    return FailOfForm(err, error);
  }
}

namespace {

// "2026-11": from its first moment to the next month's.
absl::Status SetMonth(const std::string& text, ledger::BillQuery& query) {
  const std::optional<Instant> first = wire::ParseTime(text + "-01T00:00:00Z");
  constexpr std::size_t kMonth = 7;
  if (!first || text.size() != kMonth) {
    return absl::InvalidArgumentError(
        fmt::format("--month: expected YYYY-MM, found {}", wire::Quoted(text)));
  }
  query.from = *first;
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(*first));
  query.to = std::chrono::sys_days((day.year() / day.month() + std::chrono::months(1)) / 1);
  return absl::OkStatus();
}

absl::StatusOr<ledger::BillQuery> StatementQueryOf(const LedgerStatementOptions& options) {
  TRANCHE_ASSIGN_OR_RETURN(ledger::BillQuery query, BillQueryOf(options.bill));
  if (!options.month) return query;
  if (options.bill.span.from || options.bill.span.to) {
    return absl::InvalidArgumentError("expected --month or --from and --to, found both");
  }
  TRANCHE_RETURN_IF_ERROR(SetMonth(*options.month, query));
  return query;
}

absl::StatusOr<std::string> ReadStatement(const std::string& path, const ledger::BillQuery& query) {
  TRANCHE_ASSIGN_OR_RETURN(ledger::Reader reader, ledger::Reader::Open(path));
  TRANCHE_ASSIGN_OR_RETURN(const ledger::BillStatement statement, reader.MakeStatement(query));
  return StatementJson(statement);
}

}  // namespace

int LedgerStatement(const LedgerStatementOptions& options, const ClientOptions& client,
                    std::ostream& out, std::ostream& err) {
  const absl::StatusOr<ledger::BillQuery> query = StatementQueryOf(options);
  if (!query.ok()) return EndWith(err, query.status());
  if (!options.bill.span.path.empty()) {
    const absl::StatusOr<std::string> text = ReadStatement(options.bill.span.path, *query);
    if (!text.ok()) return EndWith(err, text.status());
    out << *text << '\n';
    return kExitDone;
  }
  const absl::StatusOr<Server> server = ReadServerFlags(client.server);
  if (!server.ok()) return Fail(err, server.status());
  std::string target =
      fmt::format("/api/v1/ledger/statement?by={}", kube::PercentEncoded(options.bill.by));
  const auto add = [&target](const char* name, Instant at) {
    target += fmt::format("&{}={}", name, kube::PercentEncoded(wire::FormatTime(at)));
  };
  if (query->from != Instant::min()) add("from", query->from);
  if (query->to != Instant::max()) add("to", query->to);
  int code = kExitUsage;
  const std::optional<Answer> told = AskServer(*server, "GET", target, "", err, code);
  if (!told) return code;
  out << told->body << (told->body.ends_with('\n') ? "" : "\n");
  return kExitDone;
}

int LedgerProve(const std::string& path, const std::string& statement, bool json, std::ostream& out,
                std::ostream& err) {
  const auto text = embedded::ReadTextFile(statement, kMostStatementBytes, 0);
  if (!text.ok()) return EndWith(err, text.status());
  const absl::StatusOr<StatedBill> stated = ReadStatedBill(*text);
  if (!stated.ok()) {
    return EndWith(err, absl::InvalidArgumentError(fmt::format(
                            "{}: {}", statement, std::string(stated.status().message()))));
  }
  // A chain that does not hold proves nothing.
  std::ostringstream sound;
  if (const int code = LedgerVerify(path, json, sound, err); code != kExitDone) {
    out << sound.str();
    return code;
  }
  if (!json) out << sound.str();
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) return EndWith(err, reader.status());
  const absl::StatusOr<StatementProof> proof = ProveStatement(*reader, *stated);
  if (!proof.ok()) return EndWith(err, proof.status());
  const std::vector<std::string>& faults = proof->faults;
  if (json) {
    out << wire::Dump({{"proven", faults.empty()}, {"faults", faults}, {"since", proof->since}})
        << '\n';
  } else {
    for (const std::string& fault : faults) out << fault << '\n';
    if (faults.empty()) out << proof->proven << '\n';
    for (const std::string& change : proof->since) out << "since then " << change << '\n';
  }
  if (faults.empty()) return kExitDone;
  return EndWith(
      err, absl::DataLossError(fmt::format(
               "expected {} to be what {} said then, found that it is not", statement, path)));
}

namespace {

absl::StatusOr<Answer> ReadHeld(const LedgerHeldOptions& options, std::optional<Instant> at) {
  TRANCHE_ASSIGN_OR_RETURN(ledger::Reader reader, ledger::Reader::Open(options.path));
  if (!at) {
    TRANCHE_ASSIGN_OR_RETURN(at, reader.LastTime());
  }
  TRANCHE_ASSIGN_OR_RETURN(std::vector<ledger::ExportRow> rows,
                           reader.HeldIn(*at, *at, options.leaf));
  std::string body = HeldJson(*at, std::move(rows));
  Json json = Json::parse(body);
  return Answer{std::move(body), std::move(json)};
}

}  // namespace

int LedgerHeld(const LedgerHeldOptions& options, const ClientOptions& client, std::ostream& out,
               std::ostream& err) {
  const absl::StatusOr<std::optional<Instant>> at = ReadTime("--at", options.at);
  if (!at.ok()) return EndWith(err, at.status());
  if (options.path.empty()) {
    std::string target = "/api/v1/ledger/held";
    const auto add = [&target](const char* name, const std::string& value) {
      const char mark = target.find('?') == std::string::npos ? '?' : '&';
      target += fmt::format("{}{}={}", mark, name, kube::PercentEncoded(value));
    };
    if (*at) add("at", wire::FormatTime(**at));
    if (options.leaf) add("leaf", *options.leaf);
    return Show(client, "GET", target, "", out, err, PrintHeld);
  }
  const absl::StatusOr<OutputFormat> format = ParseOutputFormat(client.output, kAnswerFormats);
  if (!format.ok()) return EndWith(err, format.status());
  const absl::StatusOr<Answer> answer = ReadHeld(options, *at);
  if (!answer.ok()) return EndWith(err, answer.status());
  return ShowAnswer(*format, *answer, out, err, PrintHeld);
}

namespace {

int ExportPast(LedgerQuestion& question, const HashedNames* names, std::ostream& out,
               std::ostream& err) {
  const Instant to = question.query.to.value_or(question.query.now);
  // Before the ledger tells of anything there is nothing to ask.
  absl::StatusOr<ledger::RecordedPast> past =
      question.reader.Past(question.query.from.value_or(Instant()), to);
  if (!past.ok()) return EndWith(err, past.status());
  const Instant from = question.query.from.value_or(past->from.value_or(to));
  out << PastSpanLine(*past, from, to) << '\n';
  for (const ledger::RecordedChange& change : past->changes) {
    out << PastChangeLine(*past, change, names) << '\n';
  }
  for (const ledger::RecordedPod& pod : past->pods) {
    out << PastPodLine(*past, pod, names) << '\n';
  }
  return kExitDone;
}

}  // namespace

int LedgerExport(const LedgerExportOptions& options, std::ostream& out, std::ostream& err) {
  absl::StatusOr<LedgerQuestion> question = Prepare(options.span);
  if (!question.ok()) return EndWith(err, question.status());
  const absl::StatusOr<std::optional<HashedNames>> read = NamesOf(options.hash_key);
  if (!read.ok()) return EndWith(err, read.status());
  const HashedNames* const names = *read ? &**read : nullptr;
  if (options.past && options.span.leaf) {
    return EndWith(err, absl::InvalidArgumentError("expected --past or --leaf, found both"));
  }
  if (options.past) return ExportPast(*question, names, out, err);
  const bool json = options.format == ExportFormat::kJson;
  bool first = true;
  out << (json ? "{\"rows\":[" : ExportedCsvTitles());
  const auto write = [&](const ledger::ExportRow& row) {
    if (json) {
      out << (first ? "\n" : ",\n") << ExportedJson(row);
    } else {
      out << ExportedCsv(row);
    }
    first = false;
  };
  const absl::Status done = question->reader.Export(
      question->query,
      [&](const ledger::ExportRow& row) { write(names == nullptr ? row : Hashed(*names, row)); });
  if (!done.ok()) return EndWith(err, done);
  if (json) out << (first ? "]}\n" : "\n]}\n");
  return 0;
}

}  // namespace tranche
