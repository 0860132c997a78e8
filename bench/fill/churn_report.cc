#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "bench/fill/report.h"
#include "bench/fill/statistics.h"

namespace tranche::bench::fill {
namespace {

// One figure of every run.
template <typename Field>
std::vector<double> Figures(const ChurnResult& result, Field field) {
  std::vector<double> values;
  for (const ChurnRun& run : result.runs) values.push_back(field(run));
  return values;
}

double AllocationOf(const ChurnRun& run) { return run.allocation; }

// Percent of the tasks of a class.
auto LostOf(std::size_t of) {
  return [of](const ChurnRun& run) {
    const auto arrived = static_cast<double>(run.arrived[of]);
    return run.arrived[of] == 0 ? 0.0 : 100 * static_cast<double>(run.lost[of]) / arrived;
  };
}

// Seed by seed: the same tasks came.
template <typename Field>
std::vector<double> Differences(const ChurnResult& result, const ChurnResult& fgd, Field field) {
  std::vector<double> values = Figures(result, field);
  const std::vector<double> others = Figures(fgd, field);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= others[i];
  return values;
}

const ChurnResult* FgdOf(const std::vector<ChurnResult>& results, const ChurnResult& of) {
  const auto found = std::ranges::find_if(results, [&of](const ChurnResult& result) {
    return result.variant == of.variant && result.load == of.load && result.policy == "fgd";
  });
  return found == results.end() || &*found == &of ? nullptr : &*found;
}

double DecisionsPerSecond(const ChurnResult& result) {
  const double seconds = Mean(Figures(result, [](const ChurnRun& run) { return run.seconds; }));
  const double decisions =
      Mean(Figures(result, [](const ChurnRun& run) { return static_cast<double>(run.decisions); }));
  return seconds > 0 ? decisions / seconds : 0;
}

template <typename Field>
std::string Figure(const ChurnResult& result, const ChurnResult* fgd, Field field) {
  const double mean = Mean(Figures(result, field));
  if (fgd == nullptr) return fmt::format("{:6.2f} {:14}", mean, "");
  const std::vector<double> differences = Differences(result, *fgd, field);
  return fmt::format("{:6.2f} ({:+.2f} ± {:.2f})", mean, Mean(differences),
                     StandardError(differences));
}

template <typename Field>
nlohmann::json FigureJson(const ChurnResult& result, const ChurnResult* fgd, Field field) {
  const std::vector<double> values = Figures(result, field);
  nlohmann::json figure = {{"mean", Rounded(Mean(values))},
                           {"deviation", Rounded(Deviation(values))}};
  if (fgd == nullptr) return figure;
  const std::vector<double> differences = Differences(result, *fgd, field);
  figure["differenceToFgd"] = Rounded(Mean(differences));
  figure["standardError"] = Rounded(StandardError(differences));
  return figure;
}

}  // namespace

void PrintChurn(const std::vector<ChurnResult>& results) {
  std::printf("in brackets: difference to fgd on the same tasks, ± its standard error\n");
  std::printf("%-12s %4s %-16s %-22s | lost, %% of the tasks that came, by GPUs\n", "", "", "",
              "allocation %");
  std::printf("%-12s %4s %-16s %-22s |", "variant", "load", "policy", "over time");
  for (const char* name : kClassNames) std::printf(" %-22s", name);
  std::printf("| %8s\n", "tasks/s");
  for (const ChurnResult& result : results) {
    const ChurnResult* const fgd = FgdOf(results, result);
    std::string line = fmt::format("{:<12} {:4.2f} {:<16} {:<22} |", result.variant->name,
                                   result.load, result.policy, Figure(result, fgd, AllocationOf));
    for (std::size_t i = 0; i < kClasses; ++i) {
      line += fmt::format(" {:<22}", Figure(result, fgd, LostOf(i)));
    }
    std::printf("%s| %8.0f\n", line.c_str(), DecisionsPerSecond(result));
  }
}

nlohmann::json ChurnJson(const std::vector<ChurnResult>& results,
                         const std::vector<uint64_t>& seeds) {
  nlohmann::json runs = nlohmann::json::array();
  for (const ChurnResult& result : results) {
    const ChurnResult* const fgd = FgdOf(results, result);
    nlohmann::json run = RunHead(*result.variant, result.policy, seeds);
    run["load"] = result.load;
    run["allocation"] = FigureJson(result, fgd, AllocationOf);
    for (std::size_t i = 0; i < kClasses; ++i) {
      nlohmann::json lost = FigureJson(result, fgd, LostOf(i));
      lost["tasksPerRun"] = Rounded(Mean(Figures(
          result, [i](const ChurnRun& one) { return static_cast<double>(one.arrived[i]); })));
      run["lostPercent"][kClassNames[i]] = std::move(lost);
    }
    run["decisionsPerSecond"] = Rounded(DecisionsPerSecond(result));
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace tranche::bench::fill
