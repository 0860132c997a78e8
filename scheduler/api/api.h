// GET /api/v1/{nodes,pods,explain/NS/POD,rank/NS/POD,quotas,budgets,reclaims,events}, and one of
// them by its name: pods/NS/NAME, nodes/NAME, teams/NAME. What people, the command line and the
// page ask.
//
// Nothing here changes a decision. Refusals are {"error":...} with 400, 404, 405 or 503.
// Thread rule: any thread. Cost: lists copy and encode all nodes or pods, in pieces of which each
// holds the engine for a moment; an object by its name costs the same however large the fleet is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/api/advice_api.h"
#include "scheduler/api/api_json.h"
#include "scheduler/api/router.h"
#include "scheduler/controllers/card_readings.h"
#include "scheduler/controllers/forecaster.h"
#include "scheduler/host/engine_host.h"
#include "scheduler/ports/provisioning.h"

namespace tranche {

// Of GET /api/v1/events?namespace&pod&node&team&kind&since&limit. Errors: InvalidArgument naming
// the parameter, what it takes and what was found.
absl::StatusOr<RecentQuery> ReadEventQuery(const http::Request& request);

// Beside what the engine knows. All may be empty: nothing is foretold, advised, measured or asked
// of autoscalers.
struct ApiSources {
  const Forecaster* forecaster = nullptr;
  LatestAdvice advice = {};
  std::function<std::shared_ptr<const CardReadings>()> readings = nullptr;
  // What an autoscaler was asked for a gang that waits: its namespace and name.
  std::function<std::optional<ProvisioningFound>(const std::string& ns, const std::string& gang)>
      provisioning = nullptr;
};
// Of one pod that is shown; `forecasts` and what it points to outlive the notes.
PodNotes NotesOf(const ApiSources& sources, const PodView& pod, const Forecasts* forecasts);
// The host must outlive the router's use, and so must the sources.
void AddApi(EngineHost& host, Router& router, const ApiSources& sources = {});

}  // namespace tranche
