// Health, version, metrics and the web page.
//
// Thread rule: any thread.
#pragma once

#include <functional>
#include <string>

#include "scheduler/api/router.h"
#include "scheduler/host/host.h"
#include "scheduler/metrics/metrics.h"

namespace tranche {

// The version of this build, "0.1.0".
const char* Version();

// GET /healthz /livez /readyz /version /metrics / /ui/...; `scrape` gathers the state for one
// answer of /metrics; `note` is a second line of /readyz, "" or null: none. All must outlive the
// router's use.
void AddPages(std::function<Readiness()> readiness, std::function<std::string()> note,
              const metrics::Metrics& metrics, std::function<metrics::Scrape()> scrape,
              Router& router);

}  // namespace tranche
