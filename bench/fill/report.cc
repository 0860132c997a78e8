#include "bench/fill/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <optional>

#include "bench/fill/statistics.h"

namespace tranche::bench::fill {
namespace {

constexpr std::size_t kWorstFrom = 50;
constexpr std::size_t kWorstTo = 130;

// Of every run, at a percent of arrival; a curve that ends before says what it said last.
std::vector<double> At(const FillResult& result, Curve FillRun::*curve, std::size_t percent) {
  std::vector<double> values;
  for (const FillRun& run : result.runs) {
    const Curve& all = run.*curve;
    values.push_back(all.empty() ? 0 : all[std::min(percent, all.size() - 1)]);
  }
  return values;
}

double MeanAt(const FillResult& result, Curve FillRun::*curve, std::size_t percent) {
  return Mean(At(result, curve, percent));
}

double Allocation(const FillResult& result, std::size_t percent) {
  return MeanAt(result, &FillRun::allocation, percent);
}

template <typename Field>
double MeanOf(const FillResult& result, Field field) {
  std::vector<double> values;
  for (const FillRun& run : result.runs) values.push_back(static_cast<double>(field(run)));
  return Mean(values);
}

double Dropped(const FillResult& result, std::size_t of) {
  return MeanOf(result, [of](const FillRun& run) { return run.dropped[of]; });
}
double Seconds(const FillResult& result) {
  return MeanOf(result, [](const FillRun& run) { return run.seconds; });
}
double Decisions(const FillResult& result) {
  return MeanOf(result, [](const FillRun& run) { return run.arrived; });
}
double NodesAt50(const FillResult& result) {
  return MeanOf(result, [](const FillRun& run) { return run.nodes_at_50; });
}

const FillResult* FgdOf(const std::vector<FillResult>& results, const Variant* variant) {
  const auto found = std::ranges::find_if(results, [variant](const FillResult& result) {
    return result.variant == variant && result.policy == "fgd";
  });
  return found == results.end() ? nullptr : &*found;
}

struct Worst {
  double points = 0;
  std::size_t at = kWorstFrom;
};

// The smallest lead over whole percents of arrival.
Worst WorstOf(const FillResult& result, const FillResult& fgd) {
  std::optional<Worst> worst;
  for (std::size_t at = kWorstFrom; at <= kWorstTo; ++at) {
    const double points = Allocation(result, at) - Allocation(fgd, at);
    if (!worst || points < worst->points) worst = Worst{points, at};
  }
  return *worst;
}

std::string Line(const FillResult& result, const FillResult* fgd) {
  std::string line = fmt::format(
      "{:<12} {:<16} {:6.2f} {:6.2f} {:6.2f} {:5.2f} {:6.2f} |", result.variant->name,
      result.policy, Allocation(result, 90), Allocation(result, 95), Allocation(result, 100),
      Deviation(At(result, &FillRun::allocation, 100)), Allocation(result, 130));
  line +=
      fmt::format(" {:5.1f} {:5.1f} {:5.2f} {:5.2f} {:6.0f} |", MeanAt(result, &FillRun::ratio, 50),
                  MeanAt(result, &FillRun::ratio, 80), MeanAt(result, &FillRun::amount, 50),
                  MeanAt(result, &FillRun::amount, 100), NodesAt50(result));
  for (std::size_t i = 0; i < kClasses; ++i) line += fmt::format(" {:7.1f}", Dropped(result, i));
  const double seconds = Seconds(result);
  line +=
      fmt::format(" | {:7.2f} {:8.0f} |", seconds, seconds > 0 ? Decisions(result) / seconds : 0);
  if (fgd == nullptr || fgd == &result) return line;
  const Worst worst = WorstOf(result, *fgd);
  for (const std::size_t at : {90, 95, 100}) {
    line += fmt::format(" {:+6.2f}", Allocation(result, at) - Allocation(*fgd, at));
  }
  return line + fmt::format(" {:+6.2f} at {}", worst.points, worst.at);
}

nlohmann::json Points(const FillResult& result, Curve FillRun::*curve,
                      std::initializer_list<std::size_t> percents) {
  nlohmann::json points = nlohmann::json::object();
  for (const std::size_t at : percents) {
    points[std::to_string(at)] = Rounded(MeanAt(result, curve, at));
  }
  return points;
}

nlohmann::json WholeCurve(const FillResult& result, Curve FillRun::*curve) {
  std::size_t last = 0;
  for (const FillRun& run : result.runs) last = std::max(last, (run.*curve).size());
  nlohmann::json points = nlohmann::json::array();
  for (std::size_t at = 1; at < last; ++at) points.push_back(Rounded(MeanAt(result, curve, at)));
  return points;
}

nlohmann::json Difference(const FillResult& result, const FillResult& fgd) {
  nlohmann::json difference = nlohmann::json::object();
  for (const std::size_t at : {90, 95, 100, 130}) {
    difference[std::to_string(at)] = Rounded(Allocation(result, at) - Allocation(fgd, at));
  }
  const Worst worst = WorstOf(result, fgd);
  difference["worst"] = {{"points", Rounded(worst.points)}, {"at", worst.at}};
  return difference;
}

// How often nodes were looked for, of all tasks that arrived.
double LooksPerTask(const FillResult& result) {
  int64_t looks = 0, arrived = 0;
  for (const FillRun& run : result.runs) {
    looks += run.looks;
    arrived += run.arrived;
  }
  return arrived == 0 ? 0.0 : static_cast<double>(looks) / static_cast<double>(arrived);
}

}  // namespace

nlohmann::json RunHead(const Variant& variant, const std::string& policy,
                       const std::vector<uint64_t>& seeds) {
  return {{"policy", policy},
          {"variant", variant.name},
          {"file", variant.path},
          {"fnv1a64", fmt::format("{:016x}", variant.hash)},
          {"seeds", seeds}};
}

void PrintFill(const std::vector<FillResult>& results) {
  std::printf("%-12s %-16s %34s | %30s | %47s | %16s | %s\n", "", "", "allocation % at arrival %",
              "fragments: % of idle, of all", "tasks dropped, by GPUs", "policy's time",
              "points over fgd");
  std::printf("%-12s %-16s %6s %6s %6s %5s %6s | %5s %5s %5s %5s %6s |", "variant", "policy", "90",
              "95", "100", "sd", "130", "50", "80", "50", "100", "nodes");
  for (const char* name : kClassNames) std::printf(" %7s", name);
  std::printf(" | %7s %8s | %6s %6s %6s %6s\n", "s/run", "tasks/s", "90", "95", "100", "worst");
  for (const FillResult& result : results) {
    std::printf("%s\n", Line(result, FgdOf(results, result.variant)).c_str());
  }
  for (const FillResult& result : results) {
    if (const double looks = LooksPerTask(result); looks > 0)
      std::printf("%-12s %-16s %.3f looks for nodes a task\n", result.variant->name.c_str(),
                  result.policy.c_str(), looks);
  }
}

nlohmann::json FillJson(const std::vector<FillResult>& results,
                        const std::vector<uint64_t>& seeds) {
  nlohmann::json runs = nlohmann::json::array();
  for (const FillResult& result : results) {
    nlohmann::json run = RunHead(*result.variant, result.policy, seeds);
    run["allocationAtArrival"] = Points(result, &FillRun::allocation, {90, 95, 100, 130});
    run["deviationAtArrival"] = nlohmann::json::object();
    for (const std::size_t at : {90, 95, 100, 130}) {
      run["deviationAtArrival"][std::to_string(at)] =
          Rounded(Deviation(At(result, &FillRun::allocation, at)));
    }
    run["bySeedAt100"] = nlohmann::json::array();
    for (const double value : At(result, &FillRun::allocation, 100)) {
      run["bySeedAt100"].push_back(Rounded(value));
    }
    run["fragmentRatioAtArrival"] = Points(result, &FillRun::ratio, {50, 80, 100});
    run["fragmentAmountAtArrival"] = Points(result, &FillRun::amount, {50, 80, 100});
    run["curve"] = WholeCurve(result, &FillRun::allocation);
    run["fragmentRatioCurve"] = WholeCurve(result, &FillRun::ratio);
    run["fragmentAmountCurve"] = WholeCurve(result, &FillRun::amount);
    for (std::size_t i = 0; i < kClasses; ++i) {
      run["dropped"][kClassNames[i]] = Rounded(Dropped(result, i));
    }
    run["nodesInUseAt50"] = Rounded(NodesAt50(result));
    run["secondsPerRun"] = Rounded(Seconds(result));
    run["decisionsPerRun"] = Rounded(Decisions(result));
    if (const double looks = LooksPerTask(result); looks > 0) run["looksPerTask"] = Rounded(looks);
    const FillResult* const fgd = FgdOf(results, result.variant);
    if (fgd != nullptr && fgd != &result) run["differenceToFgd"] = Difference(result, *fgd);
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace tranche::bench::fill
