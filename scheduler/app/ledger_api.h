// GET /api/v1/ledger?from&to&leaf: GPU-hours by leaf and model, exact to the millisecond.
//
// {"rows":[{"leaf","model","gpuHours"}],"total"} with decimal strings; times are RFC 3339. 404
// where the server keeps no ledger. Thread rule: any thread; may take as long as a report takes.
#pragma once

#include <string>

#include "scheduler/app/host.h"
#include "scheduler/app/router.h"
#include "scheduler/ports/clock.h"

namespace tranche::app {

// `path` empty: there is no ledger.
void AddLedgerApi(const std::string& path, Host& host, const Clock& clock, Router& router);

}  // namespace tranche::app
