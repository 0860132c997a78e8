#include "scheduler/api/ledger_api.h"

#include <fmt/format.h>

#include "scheduler/api/ledger_json.h"
#include "scheduler/ledger/reader.h"
#include "scheduler/wire/json/json.h"

namespace tranche {
namespace {

http::Response Report(const std::string& path, const http::Request& request, Instant now) {
  ledger::ReportQuery query;
  query.now = now;
  for (auto* const part : {&query.from, &query.to}) {
    const absl::StatusOr<std::optional<Instant>> time =
        TimeParameter(request, part == &query.from ? "from" : "to");
    if (!time.ok()) return ErrorResponse(time.status());
    *part = *time;
  }
  if (const auto leaf = request.query.find("leaf"); leaf != request.query.end()) {
    query.leaf = leaf->second;
  }
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) return ErrorResponse(reader.status());
  const absl::StatusOr<std::vector<ledger::ReportRow>> rows = reader->Report(query);
  if (!rows.ok()) return ErrorResponse(rows.status());
  const absl::StatusOr<std::vector<ledger::RestoredRow>> restored = reader->Restored(query);
  if (!restored.ok()) return ErrorResponse(restored.status());
  return JsonResponse(LedgerReportJson(*rows, *restored));
}

http::Response Billed(const std::string& path, const http::Request& request, Instant now) {
  ledger::BillQuery query;
  const absl::StatusOr<std::optional<Instant>> to = TimeParameter(request, "to");
  if (!to.ok()) return ErrorResponse(to.status());
  query.to = to->value_or(now);
  const absl::StatusOr<std::optional<Instant>> from = TimeParameter(request, "from");
  if (!from.ok()) return ErrorResponse(from.status());
  query.from = from->value_or(ledger::MonthOf(query.to));
  if (const auto by = request.query.find("by"); by != request.query.end()) {
    const std::optional<ledger::BillBy> known = ledger::ParseBillBy(by->second);
    if (!known) {
      return ErrorResponse(400, fmt::format("by: expected {}, found {}", ledger::kBillByWords,
                                            wire::Quoted(by->second)));
    }
    query.by = *known;
  }
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) return ErrorResponse(reader.status());
  const absl::StatusOr<ledger::Bill> bill = reader->MakeBill(query);
  return bill.ok() ? JsonResponse(BillJson(*bill)) : ErrorResponse(bill.status());
}

http::Response HeldThen(const std::string& path, const http::Request& request, Instant now) {
  const absl::StatusOr<std::optional<Instant>> asked = TimeParameter(request, "at");
  if (!asked.ok()) return ErrorResponse(asked.status());
  const Instant at = asked->value_or(now);
  if (at > now) {
    return ErrorResponse(
        400, fmt::format("at: expected a moment that has come, it is {}", wire::FormatTime(now)));
  }
  ledger::ReportQuery query;
  query.from = at;
  query.to = at + Millis(1);
  query.now = *query.to;
  if (const auto leaf = request.query.find("leaf"); leaf != request.query.end()) {
    query.leaf = leaf->second;
  }
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) return ErrorResponse(reader.status());
  std::vector<ledger::ExportRow> rows;
  const absl::Status read =
      reader->Export(query, [&rows](const ledger::ExportRow& row) { rows.push_back(row); });
  return read.ok() ? JsonResponse(HeldJson(at, std::move(rows))) : ErrorResponse(read);
}

using LedgerAnswer = http::Response (*)(const std::string& path, const http::Request& request,
                                        Instant now);

}  // namespace

http::Response NoLedger() {
  return ErrorResponse(404, "expected a server with --ledger, found one without");
}

void AddLedgerApi(const std::string& path, EngineHost& host, const Clock& clock, Later later,
                  Router& router) {
  const auto add = [&](const char* route, LedgerAnswer answer) {
    router.Add("GET", route,
               [path, &host, &clock, later, answer](const http::Request& request,
                                                    const http::Responder& respond) {
                 if (path.empty()) {
                   respond(NoLedger());
                   return;
                 }
                 later([path, &host, &clock, later, answer, request, respond] {
                   // What happened before the question is in the answer.
                   host.Tick();
                   // Not on the thread that tells of it, which writes the ledger.
                   host.WhenMetered([path, &clock, later, answer, request, respond] {
                     later([path, &clock, answer, request, respond] {
                       respond(answer(path, request, clock.Now()));
                     });
                   });
                 });
               });
  };
  add("/api/v1/ledger", Report);
  add("/api/v1/ledger/bill", Billed);
  add("/api/v1/ledger/held", HeldThen);
}

}  // namespace tranche
