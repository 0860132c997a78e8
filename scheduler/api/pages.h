// Health, version, metrics and the web page.
//
// Thread rule: any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "scheduler/api/router.h"
#include "scheduler/host/host.h"
#include "scheduler/metrics/metrics.h"

namespace tranche {

// The version of this build, "0.1.0".
const char* Version();

// The JSON API as scheduler/api/openapi.yaml describes it; compiled in.
std::string_view OpenApiText();

// GET /healthz /livez /readyz /version /metrics /api/openapi.json / /ui/...; `scrape` gathers the
// state for one answer of /metrics; `note` is a second line of /readyz, "" or null: none. All must
// outlive the router's use.
void AddPages(std::function<Readiness()> readiness, std::function<std::string()> note,
              const metrics::Metrics& metrics, std::function<metrics::Scrape()> scrape,
              Router& router);

}  // namespace tranche
