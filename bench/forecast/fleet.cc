#include "bench/forecast/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>
#include <utility>

#include "scheduler/engine/engine.h"
#include "scheduler/foresight/forecast.h"
#include "scheduler/foresight/track_record.h"

namespace tranche::bench::forecast {
namespace {

constexpr int kTeams = 100;
constexpr int kFleetGpus = 8;  // of a node
const Instant kFleetNow(std::chrono::seconds(1'700'000'000));

double CpuSeconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

NodeFacts FleetNode(int number) {
  NodeFacts node;
  node.name = NodeName(fmt::format("node-{:05}", number));
  node.uid = NodeUid(fmt::format("node-uid-{}", number));
  node.product = "NVIDIA-H100-80GB-HBM3";
  node.memory = Mebibytes::Of(81'559);
  node.count = kFleetGpus;
  node.replicas = 1;
  node.gpu = ResourceCount{kFleetGpus, kFleetGpus};
  return node;
}

PodFacts FleetPod(std::size_t number, int gpus) {
  PodFacts pod;
  PodRequest& request = pod.request;
  request.uid = PodUid(fmt::format("pod-uid-{}", number));
  request.name = {fmt::format("team-{}", number % kTeams), fmt::format("work-{}", number)};
  request.style = RequestStyle::kNative;
  request.containers.push_back({"main", ContainerRole::kApp, gpus});
  Ask ask;
  ask.resource = Resource::kGpu;
  ask.count = gpus;
  request.asks.push_back(ask);
  request.pool_needs.push_back({"nvidia.com/gpu", gpus});
  pod.owner = "owner-of-" + request.name.name;
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
    engine.UpsertNode(FleetNode(node), kFleetNow);
    for (const int gpus : {4, 2, 2}) {
      PodFacts pod = FleetPod(number++, gpus);
      pod.node = NodeName(fmt::format("node-{:05}", node));
      pod.bound_at = kFleetNow - std::chrono::minutes(number % 600);
      pod.running_at = pod.bound_at;
      runtimes.NoteBegun(RunKindOf(pod.request.name, "", GpusOf(pod.request)), *pod.running_at);
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
