#include "bench/tenants/tenants.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/report/report.h"
#include "bench/tenants/simulation.h"
#include "bench/tenants/trace.h"

namespace tranche::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct Figures {
  std::string policy;
  double jct_mean = 0;    // s, from submission to end
  double queue_mean = 0;  // s, of that without the job's duration
  int64_t queue_p95 = 0;
  int64_t queue_p99 = 0;
  std::vector<double> tenant_queue_means;
  Outcome outcome;
  double took_seconds = 0;
};

// Nearest rank from below, of a sorted sample.
int64_t Quantile(const std::vector<int64_t>& sorted, int percent) {
  return sorted.empty() ? 0 : sorted[(sorted.size() - 1) * static_cast<std::size_t>(percent) / 100];
}

Figures Summarise(const Trace& trace, Outcome outcome) {
  Figures figures;
  std::vector<int64_t> queued;
  std::vector<double> sums(trace.tenants.size()), counts(trace.tenants.size());
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    const Job& job = trace.jobs[i];
    queued.push_back(outcome.ends[i] - job.submit - job.duration);
    const auto jobs = static_cast<double>(trace.jobs.size());
    figures.jct_mean += static_cast<double>(outcome.ends[i] - job.submit) / jobs;
    figures.queue_mean += static_cast<double>(queued.back()) / jobs;
    sums[static_cast<std::size_t>(job.tenant)] += static_cast<double>(queued.back());
    counts[static_cast<std::size_t>(job.tenant)] += 1;
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    figures.tenant_queue_means.push_back(sums[i] / std::max(counts[i], 1.0));
  }
  std::sort(queued.begin(), queued.end());
  figures.queue_p95 = Quantile(queued, 95);
  figures.queue_p99 = Quantile(queued, 99);
  figures.outcome = std::move(outcome);
  return figures;
}

Figures Measure(const Trace& trace, const SharingPolicy& policy, int64_t window) {
  const bool shows = isatty(STDERR_FILENO) != 0;
  const auto begin = SteadyClock::now();
  auto shown = begin;
  const auto progress = [&](std::size_t ended) {
    const auto now = SteadyClock::now();
    if (!shows || now - shown < std::chrono::milliseconds(200)) return;
    shown = now;
    std::fprintf(stderr, "\r%s: %zu of %zu jobs", policy.name.c_str(), ended, trace.jobs.size());
  };
  Figures figures = Summarise(trace, Simulate(trace, policy, window, progress));
  figures.policy = policy.name;
  figures.took_seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  if (shows) std::fprintf(stderr, "\r\x1b[K");
  std::fprintf(stderr, "%s: %.1f s\n", policy.name.c_str(), figures.took_seconds);
  return figures;
}

double GpuHours(int64_t gpu_seconds) { return static_cast<double>(gpu_seconds) / 3600; }

// Tenants that wait longer on average than on their own nodes.
int Worse(const Figures& figures, const Figures& alone) {
  int worse = 0;
  for (std::size_t i = 0; i < figures.tenant_queue_means.size(); ++i) {
    worse += figures.tenant_queue_means[i] > alone.tenant_queue_means[i];
  }
  return worse;
}

void Print(const Trace& trace, const std::vector<Figures>& runs, const Figures& alone) {
  std::printf("tenants: %zu jobs of %zu tenants on %d nodes x %d GPUs\n\n", trace.jobs.size(),
              trace.tenants.size(), trace.nodes(), kGpusPerNode);
  std::printf("%-16s %8s %8s %8s %8s %6s %9s %10s %13s %6s\n", "", "JCT s", "queue s", "p95", "p99",
              "util", "evictions", "lost GPU-h", "restart GPU-h", "worse");
  for (const Figures& run : runs) {
    std::printf("%-16s %8.0f %8.0f %8lld %8lld %5.1f%% %9lld %10.1f %13.1f %6d\n",
                run.policy.c_str(), run.jct_mean, run.queue_mean,
                static_cast<long long>(run.queue_p95), static_cast<long long>(run.queue_p99),
                100 * run.outcome.utilisation, static_cast<long long>(run.outcome.evictions),
                GpuHours(run.outcome.lost_gpu_seconds), GpuHours(run.outcome.restart_gpu_seconds),
                Worse(run, alone));
  }
  std::printf("\nmean queueing by tenant, s\n%-16s", "");
  for (const Tenant& tenant : trace.tenants) std::printf(" %8s", tenant.name.c_str());
  std::printf("\n");
  for (const Figures& run : runs) {
    std::printf("%-16s", run.policy.c_str());
    for (const double mean : run.tenant_queue_means) std::printf(" %8.0f", mean);
    std::printf("\n");
  }
}

nlohmann::json ToJson(const Trace& trace, const Figures& run, const Figures& alone,
                      std::optional<uint64_t> seed) {
  nlohmann::json seeds = nlohmann::json::array();  // without a split nothing is drawn at random
  if (seed) seeds.push_back(*seed);
  nlohmann::json tenants = nlohmann::json::array();
  for (std::size_t i = 0; i < trace.tenants.size(); ++i) {
    tenants.push_back({{"name", trace.tenants[i].name},
                       {"queueMeanSeconds", run.tenant_queue_means[i]},
                       {"queueMeanSecondsStatic", alone.tenant_queue_means[i]}});
  }
  return {{"policy", run.policy},
          {"seeds", std::move(seeds)},
          {"queueMeanSeconds", run.queue_mean},
          {"queueP95Seconds", run.queue_p95},
          {"queueP99Seconds", run.queue_p99},
          {"jctMeanSeconds", run.jct_mean},
          {"utilisation", run.outcome.utilisation},
          {"evictions", run.outcome.evictions},
          {"lostGpuHours", GpuHours(run.outcome.lost_gpu_seconds)},
          {"restartGpuHours", GpuHours(run.outcome.restart_gpu_seconds)},
          {"tenantsWorseThanStatic", Worse(run, alone)},
          {"tenants", std::move(tenants)}};
}

// A line for each split, and what all of them come to on average.
nlohmann::json RunSplits(const Trace& trace, const std::vector<SharingPolicy>& policies,
                         const TenantsOptions& options, int64_t window) {
  nlohmann::json runs = nlohmann::json::array();
  std::printf("%6s %7s %10s", "split", "tenants", "static s");
  for (const SharingPolicy& policy : policies)
    std::printf(" | %16s s %10s %5s", policy.name.c_str(), "lost GPU-h", "worse");
  std::printf("\n");
  struct Sums {
    double queue = 0, lost = 0, worse = 0;
  };
  std::vector<Sums> sums(policies.size());
  for (const uint64_t seed : options.splits) {
    const Trace split = SplitAtRandom(trace, seed);
    const Figures alone = Measure(split, *PolicyNamed("static"), window);
    std::printf("%6llu %7zu %10.0f", static_cast<unsigned long long>(seed), split.tenants.size(),
                alone.queue_mean);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      const Figures run = Measure(split, policies[i], window);
      const double lost = GpuHours(run.outcome.lost_gpu_seconds);
      const int worse = Worse(run, alone);
      std::printf(" | %18.0f %10.1f %5d", run.queue_mean, lost, worse);
      sums[i].queue += run.queue_mean;
      sums[i].lost += lost;
      sums[i].worse += worse;
      runs.push_back(ToJson(split, run, alone, seed));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  const auto splits = static_cast<double>(options.splits.size());
  std::printf("%6s %7s %10s", "mean", "", "");
  for (const Sums& sum : sums)
    std::printf(" | %18.0f %10.1f %5.1f", sum.queue / splits, sum.lost / splits,
                sum.worse / splits);
  std::printf("\n");
  return runs;
}

}  // namespace

absl::Status RunTenants(const TenantsOptions& options) {
  std::vector<SharingPolicy> policies;
  for (const std::string& mode : options.modes) {
    const std::optional<SharingPolicy> policy = PolicyNamed(mode);
    if (!policy) {
      return absl::InvalidArgumentError(
          fmt::format("--mode: expected any of {}, found \"{}\"", PolicyNames(), mode));
    }
    policies.push_back(*policy);
  }
  const absl::StatusOr<Trace> trace = ReadTrace(options.jobs, options.tenants);
  if (!trace.ok()) return trace.status();

  const int64_t window = int64_t{options.window_hours} * 3600;
  nlohmann::json document = {{"benchmark", "tenants"}, {"runs", nlohmann::json::array()}};
  if (!options.splits.empty()) {
    document["runs"] = RunSplits(*trace, policies, options, window);
    return WriteReport(document, options.out);
  }
  const Figures alone = Measure(*trace, *PolicyNamed("static"), window);
  std::vector<Figures> runs;
  for (const SharingPolicy& policy : policies) {
    runs.push_back(policy.partitioned ? alone : Measure(*trace, policy, window));
  }
  Print(*trace, runs, alone);
  for (const Figures& run : runs)
    document["runs"].push_back(ToJson(*trace, run, alone, std::nullopt));
  return WriteReport(document, options.out);
}

}  // namespace tranche::bench
