#include "bench/forecast/forecast.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "bench/forecast/fleet.h"
#include "bench/forecast/world.h"
#include "bench/report/report.h"

namespace tranche::bench {
namespace {

double PartOf(const std::vector<forecast::Foretold>& all, bool forecast::Foretold::*what) {
  return all.empty() ? 0.0
                     : static_cast<double>(std::ranges::count(all, true, what)) /
                           static_cast<double>(all.size());
}

nlohmann::json RowOf(const std::string& history, const std::vector<forecast::Foretold>& all) {
  std::vector<double> errors, median, mean, position, by_gpus, widths;
  for (const forecast::Foretold& one : all) {
    if (!one.given) continue;
    const auto off = [&one](int64_t at) { return static_cast<double>(std::llabs(at - one.start)); };
    errors.push_back(off(one.p50));
    median.push_back(off(one.thumbs.median));
    mean.push_back(off(one.thumbs.mean));
    position.push_back(off(one.thumbs.position));
    by_gpus.push_back(off(one.thumbs.position_by_gpus));
    widths.push_back(static_cast<double>(one.width));
  }
  const nlohmann::json row = {
      {"history", history},
      {"forecasts", all.size()},
      {"given", errors.size()},
      {"coverage80", PartOf(all, &forecast::Foretold::covered)},
      {"coverage80OfRehearsals", PartOf(all, &forecast::Foretold::covered_before)},
      {"medianWidthSeconds", Quantile(widths, 0.5)},
      {"medianErrorSeconds", Quantile(errors, 0.5)},
      {"medianOfWaitsErrorSeconds", Quantile(median, 0.5)},
      {"meanOfWaitsErrorSeconds", Quantile(mean, 0.5)},
      {"positionErrorSeconds", Quantile(position, 0.5)},
      {"positionByGpusErrorSeconds", Quantile(by_gpus, 0.5)}};
  std::printf("%-10s %9zu %8.3f %11.3f %8.0f %8.0f %8.0f %8.0f %8.0f %8.0f\n", history.c_str(),
              all.size(), row["coverage80"].get<double>(),
              row["coverage80OfRehearsals"].get<double>(), Quantile(widths, 0.5),
              Quantile(errors, 0.5), Quantile(median, 0.5), Quantile(mean, 0.5),
              Quantile(position, 0.5), Quantile(by_gpus, 0.5));
  std::fflush(stdout);
  return row;
}

nlohmann::json FleetRow(int nodes) {
  const forecast::FleetCost cost = forecast::ForetellFleet(nodes, nodes * 4 / 5);
  std::printf(
      "\n%d nodes, %zu pods run, %zu wait: %zu have a time after %.2f s of one core (%d "
      "rehearsals); "
      "copied in %.2f s, at most %.2f ms at a time\n",
      cost.nodes, cost.running, cost.waiting, cost.with_time, cost.seconds, cost.rehearsals,
      cost.copy_seconds, cost.longest_slice_ms);
  return {{"nodes", cost.nodes},
          {"running", cost.running},
          {"waiting", cost.waiting},
          {"withTime", cost.with_time},
          {"rehearsals", cost.rehearsals},
          {"foretellSeconds", cost.seconds},
          {"copySeconds", cost.copy_seconds},
          {"longestSliceMicros", 1000 * cost.longest_slice_ms}};
}

}  // namespace

absl::Status RunForecast(const ForecastOptions& options) {
  const int64_t every = int64_t{3'600} * options.every_hours;
  nlohmann::json report = {{"benchmark", "forecast"}};
  nlohmann::json& runs = report["runs"] = nlohmann::json::array();
  std::printf(
      "                     starts in the span   median        median error, s, of\n"
      "history    forecasts    shown  rehearsed width, s      p50   median     mean position  by "
      "GPUs\n");
  const auto live = [&](const std::string& history, const forecast::World& world) {
    runs.push_back(RowOf(history, forecast::Live(world, every, options.most_rehearsals)));
  };
  const int jobs = options.synthetic_jobs;
  live("at-once", forecast::Synthetic(options.seed, jobs, /*declared=*/true, /*at_once=*/true));
  live("declared", forecast::Synthetic(options.seed, jobs, /*declared=*/true, /*at_once=*/false));
  live("learned", forecast::Synthetic(options.seed, jobs, /*declared=*/false, /*at_once=*/false));
  live("uneven", forecast::Uneven(options.seed, 4 * jobs));
  if (!options.jobs.empty()) {
    absl::StatusOr<Trace> trace = ReadTrace(options.jobs, options.tenants);
    if (!trace.ok()) return trace.status();
    forecast::World world;
    world.trace = *std::move(trace);
    const auto most = static_cast<std::size_t>(options.most_jobs);
    if (world.trace.jobs.size() > most) world.trace.jobs.resize(most);
    live("trace", world);
  }
  if (options.fleet_nodes > 0) report["fleet"] = FleetRow(options.fleet_nodes);
  return WriteReport(report, options.out);
}

}  // namespace tranche::bench
