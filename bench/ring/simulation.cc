#include "bench/ring/simulation.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "bench/fill/draws.h"

namespace tranche::bench {
namespace {

constexpr uint64_t kServices = 20;
constexpr int kShortestService = 5;

GpuSet SetOf(const RingOrder& order) {
  GpuSet set;
  for (const int gpu : order) set.Add(gpu);
  return set;
}

void Record(const RingMatrix& matrix, const RingOrder& order, RingFigures& figures) {
  const double bandwidth = matrix.RingBandwidth(order);
  figures.bandwidth.push_back(bandwidth);
  figures.ratio.push_back(bandwidth / matrix.Ideal(static_cast<int>(order.size())));
  figures.bottleneck.push_back(matrix.Bottleneck(matrix.BestRing(SetOf(order))));
}

}  // namespace

std::vector<RingJob> DrawRingJobs(int count, uint64_t seed) {
  fill::Draws draws(seed);
  std::vector<RingJob> jobs;
  for (int i = 0; i < count; ++i) {
    RingJob job;
    job.gpus = kFewestJobGpus + static_cast<int>(draws.Below(kMostJobGpus - kFewestJobGpus + 1));
    job.service = kShortestService + static_cast<int>(draws.Below(kServices));
    job.sensitive = draws.Below(3) < 2;
    jobs.push_back(job);
  }
  return jobs;
}

void SimulateRing(const RingMatrix& matrix, const std::vector<RingJob>& jobs, RingPolicy& policy,
                  RingRun& run) {
  using Clock = std::chrono::steady_clock;
  GpuSet free = GpuSet::FirstOf(matrix.size());
  std::multimap<int, GpuSet> running;  // by end
  int now = 0;
  for (const RingJob& job : jobs) {
    while (free.size() < job.gpus) {
      now = running.begin()->first;
      while (!running.empty() && running.begin()->first == now) {
        free = free | running.begin()->second;
        running.erase(running.begin());
      }
    }
    const auto begin = Clock::now();
    const RingOrder order = policy.Choose(free, job.gpus, job.sensitive);
    run.choose_us.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    Record(matrix, order, job.sensitive ? run.sensitive : run.insensitive);
    free = free - SetOf(order);
    running.emplace(now + job.service, SetOf(order));
  }
}

}  // namespace tranche::bench
