// tranche-bench forecast: how good expected starts are, against what then happened.
//
// Jobs arrive, wait and run in an engine that is driven as kube-scheduler would (a Rehearsal whose
// ends are the true ones). Now and then the engine is copied and every waiting job's start is
// foretold from what was known then: ends that were declared, or how long jobs ran that had ended.
// Rows: how many starts lay between p10 and p90 as they are shown, and as rehearsals said before
// they were moved (track_record.h), and the median error of p50 and of three rules of thumb
// (Thumbs).
//
//   at-once   synthetic, all jobs are there from the start and declare their true runtime
//   declared  synthetic, all declare it and come as time goes by
//   learned   synthetic, none does; each tenant has short and long kinds of work by name
//   uneven    synthetic, none does; runtimes spread over orders of magnitude, names tell nothing
//   trace     jobs of --jobs, each tenant within the nodes it has in --tenants; none declares
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tranche::bench {

struct ForecastOptions {
  std::string jobs;       // CSV of a trace; empty: the synthetic histories alone
  std::string tenants;    // of the same
  int most_jobs = 2'000;  // of the trace, the first ones
  uint64_t seed = 42;
  int synthetic_jobs = 1'500;
  int every_hours = 3;  // a forecast
  int most_rehearsals = 11;
  int fleet_nodes = 0;  // of a large fleet of which one forecast is timed; 0: none
  std::string out;      // JSON file; empty: none
};

absl::Status RunForecast(const ForecastOptions& options);

}  // namespace tranche::bench
