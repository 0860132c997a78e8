#include "bench/forecast/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>
#include <utility>

#include "bench/forecast/world.h"
#include "scheduler/engine/engine.h"
#include "scheduler/foresight/forecast.h"
#include "scheduler/foresight/track_record.h"

namespace tranche::bench::forecast {
namespace {

constexpr int kTeams = 100;
const Instant kFleetNow(std::chrono::seconds(1'700'000'000));

double CpuSeconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

PodFacts FleetPod(std::size_t number, int gpus) {
  PodFacts pod;
  pod.request =
      WholeGpus(PodUid(fmt::format("pod-uid-{}", number)),
                {fmt::format("team-{}", number % kTeams), fmt::format("work-{}", number)}, gpus);
  pod.owner = "owner-of-" + pod.request.name.name;
  pod.created = kFleetNow - std::chrono::hours(1);
  return pod;
}

}  // namespace

FleetCost ForetellFleet(int nodes, int waiting) {
  EngineOptions options;
  options.name_seed = 0x9e3779b97f4a7c15;
  Engine engine(options);
  FleetCost cost;
  cost.nodes = nodes;
  Runtimes runtimes;
  std::size_t number = 0;
  for (int node = 0; node < nodes; ++node) {
    const NodeFacts facts = NodeOf(node);
    engine.UpsertNode(facts, kFleetNow);
    for (const int gpus : {4, 2, 2}) {
      PodFacts pod = FleetPod(number++, gpus);
      pod.node = facts.name;
      pod.bound_at = kFleetNow - std::chrono::minutes(number % 600);
      pod.running_at = pod.bound_at;
      runtimes.NoteBegun(RunKindOf(pod.request.name, "", GpusOf(pod.request)), *pod.running_at,
                         std::nullopt);
      runtimes.Add(RunKindOf(pod.request.name, "", GpusOf(pod.request)),
                   {std::chrono::minutes(1 + number % 997), true});
      engine.UpsertPod(pod, kFleetNow);
    }
  }
  cost.running = number;
  engine.FinishRestore(kFleetNow);
  for (int i = 0; i < waiting; ++i) {
    engine.UpsertPod(FleetPod(number++, i % 3 == 0 ? 4 : 2), kFleetNow);
  }
  engine.effects() = {};
  ReplicaWalk first;
  engine.CopySlice(first, kFleetNow);  // does what is still to be done after all these objects
  const auto began = std::chrono::steady_clock::now();
  ReplicaWalk walk;
  while (!walk.done()) {
    const auto slice = std::chrono::steady_clock::now();
    engine.CopySlice(walk, kFleetNow);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - slice;
    cost.longest_slice_ms = std::max(cost.longest_slice_ms, took.count());
  }
  const ClusterCopy copy = walk.Take();
  cost.copy_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  TrackRecord record;
  const double before = CpuSeconds();
  Forecasts forecasts = Foretell(copy, runtimes);
  record.Move(forecasts);
  cost.seconds = CpuSeconds() - before;
  cost.rehearsals = forecasts.rehearsals;
  cost.waiting = forecasts.pods.size();
  for (const auto& [name, forecast] : forecasts.pods) cost.with_time += forecast.p50 ? 1 : 0;
  return cost;
}

}  // namespace tranche::bench::forecast
