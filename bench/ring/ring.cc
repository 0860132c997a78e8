#include "bench/ring/ring.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "bench/fill/statistics.h"
#include "bench/report/report.h"
#include "bench/ring/choose_time.h"
#include "bench/ring/matrix.h"
#include "bench/ring/policies.h"
#include "bench/ring/simulation.h"
#include "fmt/format.h"

namespace tranche::bench {
namespace {

// Between the two nearest values; 0 of none.
double Percentile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - std::floor(at)) * (values[above] - values[below]);
}

// One machine and policy, all seeds.
struct Cell {
  std::string machine;
  std::string policy;
  RingRun all;
  std::vector<double> ratio_by_seed;  // mean, of sensitive jobs
};

Cell Measure(const RingMatrix& matrix, const std::string& policy,
             const std::vector<uint64_t>& seeds, int jobs) {
  Cell cell = {.machine = matrix.name(), .policy = policy, .all = {}, .ratio_by_seed = {}};
  const std::unique_ptr<RingPolicy> one = MakeRingPolicy(policy, matrix);
  for (const uint64_t seed : seeds) {
    const std::size_t before = cell.all.sensitive.ratio.size();
    SimulateRing(matrix, DrawRingJobs(jobs, seed), *one, cell.all);
    cell.ratio_by_seed.push_back(fill::Mean(std::span(cell.all.sensitive.ratio).subspan(before)));
  }
  return cell;
}

void PrintHeader(const RingOptions& options) {
  std::printf("ring: %d jobs of %d to %d GPUs, seeds %s\n\n", options.jobs, kFewestJobGpus,
              kMostJobGpus, options.seeds.c_str());
  std::printf("%-24s %-10s | %-50s | %-39s |\n", "", "", "bandwidth-sensitive jobs", "other jobs");
  std::printf("%-24s %-10s | %9s %9s %6s %6s %16s | %9s %6s %6s %15s | %9s\n", "machine", "policy",
              "mean GB/s", "ratio", "p25", "p05", "bottleneck GB/s", "ratio", "p25", "p05",
              "bottleneck GB/s", "choose us");
}

void Print(const Cell& cell) {
  const RingFigures& sensitive = cell.all.sensitive;
  const RingFigures& other = cell.all.insensitive;
  std::printf("%-24s %-10s | %9.1f %9.4f %6.3f %6.3f %16.2f | %9.4f %6.3f %6.3f %15.2f | %9.2f\n",
              cell.machine.c_str(), cell.policy.c_str(), fill::Mean(sensitive.bandwidth),
              fill::Mean(sensitive.ratio), Percentile(sensitive.ratio, 0.25),
              Percentile(sensitive.ratio, 0.05), fill::Mean(sensitive.bottleneck),
              fill::Mean(other.ratio), Percentile(other.ratio, 0.25), Percentile(other.ratio, 0.05),
              fill::Mean(other.bottleneck), fill::Mean(cell.all.choose_us));
  std::fflush(stdout);
}

void Print(const ChooseTime& time) {
  std::printf("%-24s %5d %10zu %12.1f %12.2f %12.2f %12.3f\n", time.machine.c_str(), time.gpus,
              time.questions, time.table_us, time.first_us, time.first_p99_us, time.again_us);
}

nlohmann::json ToJson(const RingFigures& figures) {
  return {{"jobs", figures.ratio.size()},
          {"meanGBs", fill::Mean(figures.bandwidth)},
          {"ratioMean", fill::Mean(figures.ratio)},
          {"ratioP25", Percentile(figures.ratio, 0.25)},
          {"ratioP05", Percentile(figures.ratio, 0.05)},
          {"bottleneckMeanGBs", fill::Mean(figures.bottleneck)},
          {"bottleneckP05GBs", Percentile(figures.bottleneck, 0.05)}};
}

// The figures of sensitive jobs are the run's own.
nlohmann::json ToJson(const Cell& cell, const RingOptions& options,
                      const std::vector<uint64_t>& seeds) {
  nlohmann::json run = ToJson(cell.all.sensitive);
  run["policy"] = cell.policy;
  run["machine"] = cell.machine;
  run["seeds"] = seeds;
  run["jobsPerSeed"] = options.jobs;
  run["ratioMeanBySeed"] = cell.ratio_by_seed;
  run["insensitive"] = ToJson(cell.all.insensitive);
  run["chooseUs"] = fill::Mean(cell.all.choose_us);
  return run;
}

nlohmann::json ToJson(const ChooseTime& time) {
  return {{"machine", time.machine},  {"gpus", time.gpus},        {"questions", time.questions},
          {"tableUs", time.table_us}, {"firstUs", time.first_us}, {"firstP99Us", time.first_p99_us},
          {"againUs", time.again_us}};
}

nlohmann::json MeasureAll(const std::vector<RingMatrix>& matrices) {
  std::printf("\n%-24s %5s %10s %12s %12s %12s %12s\n", "choosing a set", "GPUs", "questions",
              "table us", "first us", "first p99", "again us");
  nlohmann::json times = nlohmann::json::array();
  const auto measure = [&](const std::string& name, const std::shared_ptr<const Machine>& machine) {
    const ChooseTime time = MeasureChoosing(name, machine);
    Print(time);
    times.push_back(ToJson(time));
  };
  for (const RingMatrix& matrix : matrices) measure(matrix.name(), matrix.AsMachine());
  measure("irregular", IrregularMachine());
  return times;
}

}  // namespace

absl::Status RunRing(const RingOptions& options) {
  std::vector<RingMatrix> matrices;
  for (const std::string& file : options.matrices) {
    absl::StatusOr<RingMatrix> matrix = RingMatrix::Read(file);
    if (!matrix.ok()) return matrix.status();
    matrices.push_back(*std::move(matrix));
  }
  if (matrices.empty()) return absl::InvalidArgumentError("--matrix: expected a file, found none");
  for (const std::string& policy : options.policies) {
    if (MakeRingPolicy(policy, matrices.front()) != nullptr) continue;
    return absl::InvalidArgumentError(
        fmt::format("--policy: expected any of {}, found \"{}\"", RingPolicyNames(), policy));
  }
  const absl::StatusOr<std::vector<uint64_t>> seeds = ParseSeeds(options.seeds);
  if (!seeds.ok()) return seeds.status();

  nlohmann::json document = {{"benchmark", "ring"}, {"runs", nlohmann::json::array()}};
  PrintHeader(options);
  for (const RingMatrix& matrix : matrices) {
    for (const std::string& policy : options.policies) {
      const Cell cell = Measure(matrix, policy, *seeds, options.jobs);
      Print(cell);
      document["runs"].push_back(ToJson(cell, options, *seeds));
    }
  }
  document["choosing"] = MeasureAll(matrices);
  return WriteReport(document, options.out);
}

}  // namespace tranche::bench
