// GET /api/v1/ledger?from&to&leaf: GPU-hours by leaf and model, exact to the millisecond.
//
// {"rows":[{"leaf","model","gpuHours"}],"total"} with decimal strings; times are RFC 3339. 404
// where the server keeps no ledger.
//
// GET /api/v1/ledger/bill?from&to&by: what use costs by team, namespace, class, pod, owner, node,
// model, pool, day or label:KEY, and what the fleet costs meanwhile (BillJson); from the first of
// the month to now where nothing is said.
//
// GET /api/v1/ledger/statement?from&to&by: the same of a span that is over, with the place in the
// chain by which it can be proven (StatementJson); the last month where nothing is said.
//
// GET /api/v1/ledger/held?at&from&leaf: who held which GPUs at a moment (HeldJson), or from one on;
// now where nothing is said. Cost: of what was open then, and of every end since. Thread rule: any
// thread; may take as long as a report takes.
#pragma once

#include <functional>
#include <string>

#include "scheduler/api/router.h"
#include "scheduler/host/engine_host.h"
#include "scheduler/ports/clock.h"

namespace tranche {

// The refusal of whatever is asked of a ledger where there is none.
http::Response NoLedger();

// Has work done on a thread that may read the ledger for as long as it takes.
using Later = std::function<void(std::function<void()>)>;

// What is asked of the ledger at `path`, on a thread that may wait for it.
using LedgerAnswer =
    std::function<http::Response(const std::string& path, const http::Request& request, Instant)>;
struct LedgerSource {
  std::string path;  // empty: there is no ledger
  EngineHost& host;
  const Clock& clock;
  Later later;
};
// A route whose answer has what happened before the question in it; 404 where there is no ledger.
void AddLedgerRoute(const LedgerSource& source, const char* route, LedgerAnswer answer,
                    Router& router);
void AddLedgerApi(const LedgerSource& source, Router& router);

}  // namespace tranche
