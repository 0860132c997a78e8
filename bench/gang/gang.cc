#include "bench/gang/gang.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/gang/simulation.h"
#include "bench/report/report.h"
#include "fmt/format.h"

namespace tranche::bench {
namespace {

// One scene and policy over all seeds.
struct Cell {
  GangScene scene;
  std::string policy;
  std::vector<GangFigures> runs;  // by seed

  // Means over gangs.
  double PerPlaced(double GangFigures::*sum) const {
    return Sum(sum) / std::max(1.0, Sum(&GangFigures::placed));
  }
  double PercentLevelled(int64_t GangFigures::*count) const {
    return 100 * Sum(count) / std::max(1.0, Sum(&GangFigures::levelled));
  }
  double PlacedPercent() const {
    return 100 * Sum(&GangFigures::placed) / std::max(1.0, Sum(&GangFigures::arrived));
  }
  double MicrosPerPlan() const {
    return 1e6 * Sum(&GangFigures::seconds) / std::max(1.0, Sum(&GangFigures::plans));
  }
  double LongestMicros() const {
    double longest = 0;
    for (const GangFigures& run : runs) longest = std::max(longest, run.longest_seconds);
    return 1e6 * longest;
  }

 private:
  template <typename T>
  double Sum(T GangFigures::*figure) const {
    double sum = 0;
    for (const GangFigures& run : runs) sum += static_cast<double>(run.*figure);
    return sum;
  }
};

Cell Measure(const GangOptions& options, const std::vector<uint64_t>& seeds, const GangScene& scene,
             const std::string& policy) {
  Cell cell{.scene = scene, .policy = policy, .runs = {}};
  for (const uint64_t seed : seeds) {
    if (isatty(STDERR_FILENO) != 0) {
      std::fprintf(stderr, "\r\x1b[K%s, %s: seed %llu", scene.name.c_str(), policy.c_str(),
                   static_cast<unsigned long long>(seed));
    }
    const GangCluster cluster(options.tree, scene, options.background, seed);
    int seats = 0;
    for (const int here : cluster.SeatsBy(GangLevel::kZone)) seats += here;
    const std::vector<GangArrival> gangs =
        DrawGangs(static_cast<std::size_t>(options.gangs), options.load, std::max(1, seats), seed);
    cell.runs.push_back(SimulateGangs(options.tree, gangs, cluster, *MakeGangPolicy(policy, seed)));
  }
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r\x1b[K");
  return cell;
}

void PrintHeader(const GangOptions& options) {
  const GangTree& tree = options.tree;
  std::printf(
      "gang: %d zones x %d blocks x %d racks x %d nodes of %d GPUs, other pods hold %.0f %%\n"
      "seeds %s, %d gangs of 2 to 64 members each, load %.2f\n\n",
      tree.zones, tree.blocks, tree.racks, tree.nodes, kGangGpus, 100 * options.background,
      options.seeds.c_str(), options.gangs, options.load);
  std::printf("%-9s %-10s %7s  %13s %13s  %13s  %17s\n", "", "", "", "to empty", "to now",
              "one domain", "plan us");
  std::printf("%-9s %-10s %7s  %6s %6s %6s %6s  %6s %6s  %8s %8s\n", "scene", "policy", "placed%",
              "racks", "blocks", "racks", "blocks", "met%", "could%", "mean", "most");
}

void Print(const Cell& cell) {
  std::printf(
      "%-9s %-10s %7.2f  %6.3f %6.3f %6.3f %6.3f  %6.2f %6.2f  %8.1f %8.1f\n",
      cell.scene.name.c_str(), cell.policy.c_str(), cell.PlacedPercent(),
      cell.PerPlaced(&GangFigures::racks_to_empty), cell.PerPlaced(&GangFigures::blocks_to_empty),
      cell.PerPlaced(&GangFigures::racks_to_now), cell.PerPlaced(&GangFigures::blocks_to_now),
      cell.PercentLevelled(&GangFigures::met), cell.PercentLevelled(&GangFigures::could),
      cell.MicrosPerPlan(), cell.LongestMicros());
  std::fflush(stdout);
}

nlohmann::json ToJson(const GangOptions& options, const std::vector<uint64_t>& seeds,
                      const Cell& cell) {
  nlohmann::json racks = nlohmann::json::array();
  for (const GangFigures& run : cell.runs) {
    racks.push_back(run.racks_to_empty / static_cast<double>(std::max<int64_t>(1, run.placed)));
  }
  const GangTree& tree = options.tree;
  return {{"policy", cell.policy},
          {"scene", cell.scene.name},
          {"gpusPerMember", cell.scene.gpus},
          {"background", cell.scene.others == GangScene::Others::kNone ? 0 : options.background},
          {"load", options.load},
          {"tree", {tree.zones, tree.blocks, tree.racks, tree.nodes}},
          {"gangs", options.gangs},
          {"seeds", seeds},
          {"placedPercent", cell.PlacedPercent()},
          {"racksToEmpty", cell.PerPlaced(&GangFigures::racks_to_empty)},
          {"racksToEmptyBySeed", std::move(racks)},
          {"blocksToEmpty", cell.PerPlaced(&GangFigures::blocks_to_empty)},
          {"racksToNow", cell.PerPlaced(&GangFigures::racks_to_now)},
          {"blocksToNow", cell.PerPlaced(&GangFigures::blocks_to_now)},
          {"levelMetPercent", cell.PercentLevelled(&GangFigures::met)},
          {"levelPossiblePercent", cell.PercentLevelled(&GangFigures::could)},
          {"microsPerPlan", cell.MicrosPerPlan()},
          {"longestPlanMicros", cell.LongestMicros()}};
}

absl::Status Check(const GangOptions& options, std::vector<GangScene>& scenes) {
  for (const std::string& text : options.scenes) {
    absl::StatusOr<GangScene> scene = ParseGangScene(text);
    if (!scene.ok()) return scene.status();
    scenes.push_back(*std::move(scene));
  }
  for (const std::string& policy : options.policies) {
    if (MakeGangPolicy(policy, 0)) continue;
    return absl::InvalidArgumentError(fmt::format(
        "--policy: expected any of random, binpack, first-fit, tranche, found \"{}\"", policy));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunGang(const GangOptions& options) {
  std::vector<GangScene> scenes;
  if (const absl::Status status = Check(options, scenes); !status.ok()) return status;
  const absl::StatusOr<std::vector<uint64_t>> seeds = ParseSeeds(options.seeds);
  if (!seeds.ok()) return seeds.status();

  nlohmann::json document = {{"benchmark", "gang"}, {"runs", nlohmann::json::array()}};
  PrintHeader(options);
  for (const GangScene& scene : scenes) {
    for (const std::string& policy : options.policies) {
      const Cell cell = Measure(options, *seeds, scene, policy);
      Print(cell);
      document["runs"].push_back(ToJson(options, *seeds, cell));
    }
  }
  return WriteReport(document, options.out);
}

}  // namespace tranche::bench
