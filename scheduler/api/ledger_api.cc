#include "scheduler/api/ledger_api.h"

#include <fmt/format.h>

#include <utility>

#include "scheduler/api/ledger_json.h"
#include "scheduler/ledger/reader.h"
#include "scheduler/wire/json/json.h"

namespace tranche {
namespace {

// The moment of a parameter; an error names it. Absent: nullopt.
absl::StatusOr<std::optional<Instant>> TimeOf(const http::Request& request,
                                              const std::string& name) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return std::optional<Instant>();
  const std::optional<Instant> time = wire::ParseTime(found->second);
  if (!time) {
    return absl::InvalidArgumentError(
        fmt::format("{}: expected an RFC 3339 time, found {}", name, wire::Quoted(found->second)));
  }
  return time;
}

http::Response Report(const std::string& path, const http::Request& request, Instant now) {
  ledger::ReportQuery query;
  query.now = now;
  for (auto* const part : {&query.from, &query.to}) {
    const absl::StatusOr<std::optional<Instant>> time =
        TimeOf(request, part == &query.from ? "from" : "to");
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

}  // namespace

void AddLedgerApi(const std::string& path, EngineHost& host, const Clock& clock, Router& router) {
  router.Add("GET", "/api/v1/ledger",
             [path, &host, &clock](const http::Request& request, const http::Responder& respond) {
               if (path.empty()) {
                 respond(ErrorResponse(404, "expected a server with --ledger, found one without"));
                 return;
               }
               // What happened before the question is in the answer.
               host.Tick();
               host.WhenMetered([path, &clock, request, respond] {
                 respond(Report(path, request, clock.Now()));
               });
             });
}

}  // namespace tranche
