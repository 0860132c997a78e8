// GET /api/v1/{nodes,pods,explain/NS/POD,quotas,budgets,reclaims}: what people and the page ask.
//
// Nothing here changes a decision. Refusals are {"error":...} with 400, 404, 405 or 503.
// Thread rule: any thread.
#pragma once

#include "scheduler/api/router.h"
#include "scheduler/host/engine_host.h"

namespace tranche {

// The host must outlive the router's use.
void AddApi(EngineHost& host, Router& router);

}  // namespace tranche
