#include "scheduler/api/ledger_api.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "scheduler/api/ledger_json.h"
#include "scheduler/ledger/reader.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

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

// The span and what a row is of; an Instant's extreme where a side is left out.
absl::StatusOr<ledger::BillQuery> BillQueryOf(const http::Request& request) {
  ledger::BillQuery query{Instant::min(), Instant::max()};
  TRANCHE_ASSIGN_OR_RETURN(const std::optional<Instant> to, TimeParameter(request, "to"));
  TRANCHE_ASSIGN_OR_RETURN(const std::optional<Instant> from, TimeParameter(request, "from"));
  query.to = to.value_or(query.to);
  query.from = from.value_or(query.from);
  const auto by = request.query.find("by");
  if (by == request.query.end()) return query;
  const std::optional<ledger::BillGroup> known = ledger::ParseBillBy(by->second);
  if (!known) {
    return absl::InvalidArgumentError(
        fmt::format("by: expected {}, found {}", ledger::kBillByWords, wire::Quoted(by->second)));
  }
  query.by = *known;
  return query;
}

http::Response Billed(const std::string& path, const http::Request& request, Instant now) {
  absl::StatusOr<ledger::BillQuery> query = BillQueryOf(request);
  if (!query.ok()) return ErrorResponse(query.status());
  if (query->to == Instant::max()) query->to = now;
  if (query->from == Instant::min()) query->from = ledger::MonthOf(query->to);
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) return ErrorResponse(reader.status());
  const absl::StatusOr<ledger::Bill> bill = reader->MakeBill(*query);
  return bill.ok() ? JsonResponse(BillJson(*bill)) : ErrorResponse(bill.status());
}

http::Response Stated(const std::string& path, const http::Request& request, Instant) {
  const absl::StatusOr<ledger::BillQuery> query = BillQueryOf(request);
  if (!query.ok()) return ErrorResponse(query.status());
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) return ErrorResponse(reader.status());
  const absl::StatusOr<ledger::BillStatement> statement = reader->MakeStatement(*query);
  return statement.ok() ? JsonResponse(StatementJson(*statement))
                        : ErrorResponse(statement.status());
}

// "from" and "at" of who is asked for; from is at where it is left out.
absl::StatusOr<std::pair<Instant, Instant>> HeldSpanOf(const http::Request& request, Instant now) {
  TRANCHE_ASSIGN_OR_RETURN(const std::optional<Instant> at, TimeParameter(request, "at"));
  TRANCHE_ASSIGN_OR_RETURN(const std::optional<Instant> from, TimeParameter(request, "from"));
  const std::pair span(from.value_or(at.value_or(now)), at.value_or(now));
  if (span.second > now) {
    return absl::InvalidArgumentError(
        fmt::format("at: expected a moment that has come, it is {}", wire::FormatTime(now)));
  }
  if (span.first > span.second) {
    return absl::InvalidArgumentError(fmt::format("from: expected a moment not after {}, found {}",
                                                  wire::FormatTime(span.second),
                                                  wire::FormatTime(span.first)));
  }
  return span;
}

http::Response HeldThen(const std::string& path, const http::Request& request, Instant now) {
  const auto span = HeldSpanOf(request, now);
  if (!span.ok()) return ErrorResponse(span.status());
  const auto& [from, at] = *span;
  const auto leaf = request.query.find("leaf");
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) return ErrorResponse(reader.status());
  absl::StatusOr<std::vector<ledger::ExportRow>> rows = reader->HeldIn(
      from, at, leaf == request.query.end() ? std::nullopt : std::optional(leaf->second));
  return rows.ok() ? JsonResponse(HeldJson(at, *std::move(rows))) : ErrorResponse(rows.status());
}

}  // namespace

http::Response NoLedger() {
  return ErrorResponse(404, "expected a server with --ledger, found one without");
}

void AddLedgerRoute(const LedgerSource& source, const char* route, LedgerAnswer answer,
                    Router& router) {
  const auto shared = std::make_shared<LedgerAnswer>(std::move(answer));
  router.Add("GET", route,
             [source, shared](const http::Request& request, const http::Responder& respond) {
               if (source.path.empty()) {
                 respond(NoLedger());
                 return;
               }
               source.later([source, shared, request, respond] {
                 // What happened before the question is in the answer.
                 source.host.Tick();
                 // Not on the thread that tells of it, which writes the ledger.
                 source.host.WhenMetered([source, shared, request, respond] {
                   source.later([source, shared, request, respond] {
                     respond((*shared)(source.path, request, source.clock.Now()));
                   });
                 });
               });
             });
}

void AddLedgerApi(const LedgerSource& source, Router& router) {
  AddLedgerRoute(source, "/api/v1/ledger", Report, router);
  AddLedgerRoute(source, "/api/v1/ledger/bill", Billed, router);
  AddLedgerRoute(source, "/api/v1/ledger/statement", Stated, router);
  AddLedgerRoute(source, "/api/v1/ledger/held", HeldThen, router);
}

}  // namespace tranche
