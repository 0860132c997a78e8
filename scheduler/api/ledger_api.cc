#include "scheduler/api/ledger_api.h"

#include "scheduler/api/ledger_json.h"
#include "scheduler/ledger/reader.h"

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

}  // namespace

http::Response NoLedger() {
  return ErrorResponse(404, "expected a server with --ledger, found one without");
}

void AddLedgerApi(const std::string& path, EngineHost& host, const Clock& clock, Later later,
                  Router& router) {
  router.Add("GET", "/api/v1/ledger",
             [path, &host, &clock, later = std::move(later)](const http::Request& request,
                                                             const http::Responder& respond) {
               if (path.empty()) {
                 respond(NoLedger());
                 return;
               }
               later([path, &host, &clock, later, request, respond] {
                 // What happened before the question is in the answer.
                 host.Tick();
                 // Not on the thread that tells of it, which writes the ledger.
                 host.WhenMetered([path, &clock, later, request, respond] {
                   later([path, &clock, request, respond] {
                     respond(Report(path, request, clock.Now()));
                   });
                 });
               });
             });
}

}  // namespace tranche
