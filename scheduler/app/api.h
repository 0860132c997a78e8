// GET /api/v1/{nodes,pods,explain/NS/POD,quotas,budgets,reclaims} and POST /api/v1/whatif: what
// people and the page ask.
//
// Nothing here changes a decision. Refusals are {"error":...} with 400, 404, 405 or 503.
// Thread rule: any thread.
#pragma once

#include "scheduler/app/host.h"
#include "scheduler/app/router.h"

namespace tranche::app {

// A what-if of more pods than this is refused: it would hold up kube-scheduler.
inline constexpr std::size_t kMaxWhatIfPods = 1000;

// The host must outlive the router's use.
void AddApi(Host& host, Router& router);

}  // namespace tranche::app
