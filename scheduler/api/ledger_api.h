// GET /api/v1/ledger?from&to&leaf: GPU-hours by leaf and model, exact to the millisecond.
//
// {"rows":[{"leaf","model","gpuHours"}],"total"} with decimal strings; times are RFC 3339. 404
// where the server keeps no ledger.
//
// GET /api/v1/ledger/bill?from&to&by: what use costs by team, namespace, model, pool or day, and
// what the fleet costs meanwhile (BillJson); from the first of the month to now where nothing is
// said.
//
// GET /api/v1/ledger/held?at&leaf: who held which GPUs at a moment (HeldJson); now where nothing is
// said. Cost: of what was open then, and of every end since. Thread rule: any thread; may take as
// long as a report takes.
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

// `path` empty: there is no ledger.
void AddLedgerApi(const std::string& path, EngineHost& host, const Clock& clock, Later later,
                  Router& router);

}  // namespace tranche
