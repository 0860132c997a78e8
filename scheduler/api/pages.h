// Health, version, metrics and the web page.
//
// Thread rule: any thread.
#pragma once

#include <functional>

#include "scheduler/api/router.h"
#include "scheduler/host/host.h"
#include "scheduler/metrics/metrics.h"

namespace tranche {

// The version of this build, "0.1.0".
const char* Version();

// GET /healthz /livez /readyz /version /metrics / /ui/...; `scrape` gathers the state for one
// answer of /metrics. All must outlive the router's use.
void AddPages(std::function<Readiness()> readiness, const metrics::Metrics& metrics,
              std::function<metrics::Scrape()> scrape, Router& router);

}  // namespace tranche
