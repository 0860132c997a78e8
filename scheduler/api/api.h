// GET /api/v1/{nodes,pods,explain/NS/POD,quotas,budgets,reclaims} and POST /api/v1/whatif: what
// people and the page ask.
//
// Nothing here changes a decision. Refusals are {"error":...} with 400, 404, 405 or 503.
// Thread rule: any thread.
#pragma once

#include "scheduler/api/router.h"
#include "scheduler/host/engine_host.h"

namespace tranche {

// A what-if of more pods than this is refused: it would hold up kube-scheduler.
inline constexpr std::size_t kMaxWhatIfPods = 1000;

// The host must outlive the router's use.
void AddApi(EngineHost& host, Router& router);

}  // namespace tranche
