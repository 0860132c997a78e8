#include "bench/forecast/forecast.h"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "bench/forecast/world.h"
#include "bench/report/report.h"

namespace tranche::bench {
namespace {

nlohmann::json RowOf(const std::string& history, const std::vector<forecast::Foretold>& all) {
  std::vector<double> errors, baseline;
  double covered = 0;
  for (const forecast::Foretold& one : all) {
    covered += one.covered ? 1 : 0;
    if (!one.given) continue;
    errors.push_back(static_cast<double>(std::llabs(one.p50 - one.start)));
    baseline.push_back(static_cast<double>(std::llabs(one.baseline - one.start)));
  }
  const auto asked = static_cast<double>(all.size());
  nlohmann::json row = {{"history", history},
                        {"forecasts", all.size()},
                        {"given", errors.size()},
                        {"coverage80", all.empty() ? 0.0 : covered / asked},
                        {"medianErrorSeconds", Quantile(errors, 0.5)},
                        {"baselineErrorSeconds", Quantile(baseline, 0.5)}};
  std::printf(
      "%-10s %5zu forecasts, %5zu with a time: %.3f in p10..p90, median error %.0f s, "
      "baseline %.0f s\n",
      history.c_str(), all.size(), errors.size(), row["coverage80"].get<double>(),
      row["medianErrorSeconds"].get<double>(), row["baselineErrorSeconds"].get<double>());
  std::fflush(stdout);
  return row;
}

}  // namespace

absl::Status RunForecast(const ForecastOptions& options) {
  const int64_t every = int64_t{3'600} * options.every_hours;
  nlohmann::json runs = nlohmann::json::array();
  for (const bool declared : {true, false}) {
    const forecast::World world =
        forecast::Synthetic(options.seed, options.synthetic_jobs, declared);
    runs.push_back(RowOf(declared ? "declared" : "learned",
                         forecast::Live(world, every, options.most_rehearsals)));
  }
  if (!options.jobs.empty()) {
    absl::StatusOr<Trace> trace = ReadTrace(options.jobs, options.tenants);
    if (!trace.ok()) return trace.status();
    forecast::World world;
    world.trace = *std::move(trace);
    const auto most = static_cast<std::size_t>(options.most_jobs);
    if (world.trace.jobs.size() > most) world.trace.jobs.resize(most);
    runs.push_back(RowOf("trace", forecast::Live(world, every, options.most_rehearsals)));
  }
  return WriteReport(nlohmann::json{{"benchmark", "forecast"}, {"runs", runs}}, options.out);
}

}  // namespace tranche::bench
