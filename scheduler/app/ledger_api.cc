#include "scheduler/app/ledger_api.h"

#include <fmt/format.h>

#include <utility>

#include "scheduler/app/cli_ledger.h"
#include "scheduler/ledger/reader.h"
#include "scheduler/wire/json.h"

namespace tranche::app {
namespace {

http::Response Refused(const absl::Status& status) {
  const int code = absl::IsNotFound(status) ? 404 : 503;
  return ErrorResponse(code, std::string(status.message()));
}

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
    if (!time.ok()) return ErrorResponse(400, std::string(time.status().message()));
    *part = *time;
  }
  if (const auto leaf = request.query.find("leaf"); leaf != request.query.end()) {
    query.leaf = leaf->second;
  }
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) return Refused(reader.status());
  const absl::StatusOr<std::vector<ledger::ReportRow>> rows = reader->Report(query);
  if (!rows.ok()) return Refused(rows.status());
  const absl::StatusOr<std::vector<ledger::RestoredRow>> restored = reader->Restored(query);
  if (!restored.ok()) return Refused(restored.status());
  http::Response response;
  response.body = LedgerReportJson(*rows, *restored);
  return response;
}

}  // namespace

void AddLedgerApi(const std::string& path, Host& host, const Clock& clock, Router& router) {
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

}  // namespace tranche::app
