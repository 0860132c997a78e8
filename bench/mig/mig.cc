#include "bench/mig/mig.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/mig/simulation.h"
#include "bench/report/report.h"
#include "fmt/format.h"

namespace tranche::bench {
namespace {

constexpr const char* kReference = "fgd-mig";
using SteadyClock = std::chrono::steady_clock;

using Seeds = std::vector<uint64_t>;

struct Mean {
  double value = 0;
  double error = 0;  // standard error
};

Mean MeanOf(const std::vector<MigFigures>& runs, const std::function<double(std::size_t)>& figure) {
  const auto count = static_cast<double>(runs.size());
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    sum += figure(i);
    squares += figure(i) * figure(i);
  }
  const double mean = sum / count;
  const double variance = std::max(0.0, squares / count - mean * mean);
  return {mean, count > 1 ? std::sqrt(variance / (count - 1)) : 0};
}

// One mix, load and policy over all seeds.
struct Cell {
  std::string policy;
  MigMix mix;
  double load = 0;
  std::vector<MigFigures> runs;  // by seed
  double wall_seconds = 0;

  double Accept(std::size_t seed) const {
    return 100.0 * static_cast<double>(runs[seed].Accepted()) /
           static_cast<double>(std::max<int64_t>(1, runs[seed].Arrived()));
  }
  double MovesPer100(std::size_t seed) const {
    return 100.0 * static_cast<double>(runs[seed].moves) /
           static_cast<double>(std::max<int64_t>(1, runs[seed].Accepted()));
  }
  // Percent, over all seeds.
  double AcceptOf(std::size_t kind) const {
    int64_t arrived = 0;
    int64_t accepted = 0;
    for (const MigFigures& run : runs) {
      arrived += run.arrived[kind];
      accepted += run.accepted[kind];
    }
    return arrived == 0 ? 100.0
                        : 100.0 * static_cast<double>(accepted) / static_cast<double>(arrived);
  }
  double DecisionsPerSecond() const {
    double decisions = 0;
    double seconds = 0;
    for (const MigFigures& run : runs) {
      decisions += static_cast<double>(run.decisions);
      seconds += run.seconds;
    }
    return decisions / std::max(seconds, 1e-9);
  }
};

Cell Measure(const MigOptions& options, const Seeds& seeds, const std::string& policy,
             const MigMix& mix, double load) {
  const bool shows = isatty(STDERR_FILENO) != 0;
  const auto begin = SteadyClock::now();
  Cell cell = {.policy = policy, .mix = mix, .load = load, .runs = {}, .wall_seconds = 0};
  cell.runs.resize(seeds.size());
  const MigPolicyFactory make = *MakeMigPolicy(policy, mix, options.known);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < seeds.size(); i = next++) {
      if (shows) {
        std::fprintf(stderr, "\r\x1b[K%s, load %.2f, %s: seed %zu of %zu", mix.name.c_str(), load,
                     policy.c_str(), i + 1, seeds.size());
      }
      const uint64_t seed = seeds[i];
      const std::unique_ptr<MigPolicy> one = make(seed);
      cell.runs[i] =
          SimulateMig(DrawMigArrivals(mix, load, options.gpus, seed), options.gpus, *one);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
  work();
  for (std::thread& thread : threads) thread.join();
  if (shows) std::fprintf(stderr, "\r\x1b[K");
  cell.wall_seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  return cell;
}

Mean SlotsOf(const Cell& cell) {
  return MeanOf(cell.runs, [&](std::size_t seed) { return cell.runs[seed].slots; });
}

// Slot utilisation seed by seed above the reference.
Mean GainOf(const Cell& cell, const Cell& reference) {
  return MeanOf(cell.runs, [&](std::size_t seed) {
    return cell.runs[seed].slots - reference.runs[seed].slots;
  });
}

double AcceptOf(const Cell& cell) {
  return MeanOf(cell.runs, [&](std::size_t seed) { return cell.Accept(seed); }).value;
}

double MovesOf(const Cell& cell) {
  return MeanOf(cell.runs, [&](std::size_t seed) { return cell.MovesPer100(seed); }).value;
}

double GpusOf(const Cell& cell) {
  return MeanOf(cell.runs, [&](std::size_t seed) { return cell.runs[seed].gpus_in_use; }).value;
}

void PrintHeader(const MigOptions& options) {
  std::printf("mig: %d GPUs (%s), seeds %s, mix %s\n\n", options.gpus, BenchBoard().id.data(),
              options.seeds.c_str(), options.known ? "known" : "learned by tranche");
  std::printf("%-18s %4s %-15s %7s %7s %14s %6s %7s  %-41s %6s %11s\n", "mix", "load", "policy",
              "accept%", "slot%", "to fgd-mig", "moves", "GPUs", "accept% 7g 4g 3g 2g 1g.20 1g.10",
              "wall s", "decisions/s");
}

void Print(const Cell& cell, const Cell& reference) {
  std::string kinds;
  for (std::size_t i = 0; i < kMigProfiles; ++i) kinds += fmt::format(" {:6.2f}", cell.AcceptOf(i));
  const Mean gain = GainOf(cell, reference);
  std::printf("%-18s %4.2f %-15s %7.2f %7.2f %+7.2f (%.2f) %6.1f %7.1f %s %6.1f %11.0f\n",
              cell.mix.name.c_str(), cell.load, cell.policy.c_str(), AcceptOf(cell),
              SlotsOf(cell).value, gain.value, gain.error, MovesOf(cell), GpusOf(cell),
              kinds.c_str(), cell.wall_seconds, cell.DecisionsPerSecond());
  std::fflush(stdout);
}

nlohmann::json ToJson(const MigOptions& options, const Seeds& seeds, const Cell& cell,
                      const Cell& reference) {
  nlohmann::json kinds = nlohmann::json::object();
  nlohmann::json by_seed = nlohmann::json::array();
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    by_seed.push_back(cell.runs[i].slots);
  }
  for (std::size_t i = 0; i < kMigProfiles; ++i) {
    const auto index = static_cast<std::size_t>(BenchProfiles()[i]);
    kinds[std::string(BenchBoard().profiles[index].name)] = cell.AcceptOf(i);
  }
  const Mean gain = GainOf(cell, reference);
  return {{"policy", cell.policy},
          {"mix", cell.mix.name},
          {"mixShares", cell.mix.shares},
          {"mixKnown", options.known},
          {"load", cell.load},
          {"gpus", options.gpus},
          {"seeds", seeds},
          {"slotUtilization", SlotsOf(cell).value},
          {"slotUtilizationStandardError", SlotsOf(cell).error},
          {"slotUtilizationBySeed", std::move(by_seed)},
          {"slotGainOverFgdMig", gain.value},
          {"slotGainOverFgdMigStandardError", gain.error},
          {"acceptRate", AcceptOf(cell)},
          {"acceptRateByProfile", std::move(kinds)},
          {"migrationsPer100Accepts", MovesOf(cell)},
          {"gpusInUse", GpusOf(cell)},
          {"wallSeconds", cell.wall_seconds},
          {"decisionsPerSecond", cell.DecisionsPerSecond()}};
}

absl::Status Check(const MigOptions& options, std::vector<MigMix>& mixes) {
  for (const std::string& text : options.mixes) {
    absl::StatusOr<MigMix> mix = ParseMigMix(text);
    if (!mix.ok()) return mix.status();
    mixes.push_back(*std::move(mix));
  }
  for (const std::string& policy : options.policies) {
    if (MakeMigPolicy(policy, mixes.front(), true)) continue;
    return absl::InvalidArgumentError(
        fmt::format("--policy: expected any of {}, found \"{}\"", MigPolicyNames(), policy));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunMig(const MigOptions& options) {
  std::vector<MigMix> mixes;
  if (const absl::Status status = Check(options, mixes); !status.ok()) return status;
  const absl::StatusOr<Seeds> seeds = ParseSeeds(options.seeds);
  if (!seeds.ok()) return seeds.status();

  nlohmann::json document = {{"benchmark", "mig"}, {"runs", nlohmann::json::array()}};
  PrintHeader(options);
  for (const MigMix& mix : mixes) {
    for (const double load : options.loads) {
      const Cell reference = Measure(options, *seeds, kReference, mix, load);
      for (const std::string& policy : options.policies) {
        const Cell cell =
            policy == kReference ? reference : Measure(options, *seeds, policy, mix, load);
        Print(cell, reference);
        document["runs"].push_back(ToJson(options, *seeds, cell, reference));
      }
    }
  }
  return WriteReport(document, options.out);
}

}  // namespace tranche::bench
