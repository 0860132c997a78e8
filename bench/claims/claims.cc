#include "bench/claims/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/report/report.h"
#include "scheduler/engine/engine.h"

namespace tranche::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;

int64_t GpusOf(const ProfilePod& pod) { return pod.milli / 1000; }

std::string NodeNameOf(int node) { return fmt::format("node-{:05}", node); }

// What NVIDIA's driver publishes.
dra::Device DeviceOf(const Profile& profile, int node, int gpu) {
  const std::string domain(dra::kGpuDriver);
  dra::Device device;
  device.name = fmt::format("gpu-{}", gpu);
  device.attributes = {
      {{domain, "architecture"}, std::string("Hopper")},
      {{domain, "index"}, int64_t{gpu}},
      {{domain, "productName"}, profile.product},
      {{domain, "type"}, std::string("gpu")},
      {{domain, "uuid"}, fmt::format("GPU-{}-{}", node, gpu)},
      {{"resource.kubernetes.io", "numaNode"}, int64_t{gpu / 4}},
  };
  device.capacities = {{{domain, "memory"}, dra::Quantity::Whole(profile.memory_mib << 20), {}}};
  return device;
}

dra::Slice SliceOf(const Profile& profile, int node) {
  dra::Slice slice;
  slice.name = NodeNameOf(node) + "-slice";
  slice.driver = std::string(dra::kGpuDriver);
  slice.pool = NodeNameOf(node);
  slice.generation = 1;
  slice.slice_count = 1;
  slice.node.kind = dra::NodeChoice::Kind::kName;
  slice.node.name = NodeName(NodeNameOf(node));
  for (int gpu = 0; gpu < profile.gpus_per_node; ++gpu) {
    slice.devices.push_back(DeviceOf(profile, node, gpu));
  }
  return slice;
}

// The engine, and the devices kube-scheduler has handed out.
class Cluster {
 public:
  explicit Cluster(const Profile& profile)
      : engine_(EngineOptions{}),
        gpus_(int64_t{profile.nodes} * profile.gpus_per_node),
        free_(static_cast<std::size_t>(profile.nodes)) {
    for (int node = 0; node < profile.nodes; ++node) {
      NodeFacts facts;
      facts.name = NodeName(NodeNameOf(node));
      engine_.UpsertNode(facts, now_);
      engine_.SetDraObject(SliceOf(profile, node), now_);
      names_.push_back(facts.name);
      for (int gpu = profile.gpus_per_node - 1; gpu >= 0; --gpu) FreeOf(node).push_back(gpu);
    }
    for (const NodeName& name : names_) views_.push_back(name.str());
    dra::DeviceClass gpus;
    gpus.name = std::string(dra::kGpuDriver);
    gpus.selectors = {
        "device.driver == 'gpu.nvidia.com' && "
        "device.attributes['gpu.nvidia.com'].type == 'gpu'"};
    engine_.SetDraObject(gpus, now_);
    engine_.FinishRestore(now_);
  }

  // Micros that filter took; -1: no node has room. `node`: where to take it, -1 as filter says.
  double Start(const ProfilePod& kind, int node) {
    const std::string name = fmt::format("p{}", pods_++);
    dra::Claim claim = ClaimOf(name, kind);
    PodFacts pod;
    pod.request.uid = PodUid(name);
    pod.request.name = {"team", name};
    dra::PodClaims uses;
    uses.claims.push_back({"gpu", claim.name, ""});
    uses.containers.push_back({"main", "gpu", ""});
    pod.claims = std::make_shared<const dra::PodClaims>(std::move(uses));
    engine_.SetDraObject(claim, now_);
    engine_.UpsertPod(pod, now_);
    double micros = 0;
    if (node < 0) {
      const SteadyClock::time_point begin = SteadyClock::now();
      engine_.Filter(pod.request, views_, now_, answer_);
      micros = Micros(SteadyClock::now() - begin).count();
      for (const uint32_t chosen : answer_.chosen) {
        if (std::ssize(free_[chosen]) < GpusOf(kind)) continue;
        node = static_cast<int>(chosen);
        break;
      }
      if (node < 0) return -1;
    }
    claim.allocation.emplace();
    for (int64_t gpu = 0; gpu < GpusOf(kind); ++gpu) {
      dra::AllocatedDevice held;
      held.request = "gpu";
      held.id = {std::string(dra::kGpuDriver), NodeNameOf(node),
                 fmt::format("gpu-{}", FreeOf(node).back())};
      FreeOf(node).pop_back();
      claim.allocation->devices.push_back(std::move(held));
    }
    claim.reserved_for = {pod.request.uid};
    used_ += GpusOf(kind);
    pod.node = names_[static_cast<std::size_t>(node)];
    engine_.SetDraObject(claim, now_);
    engine_.UpsertPod(pod, now_);
    living_.push_back({name, node, std::move(claim)});
    return micros;
  }

  void EndOldest() {
    const Living gone = std::move(living_.front());
    living_.pop_front();
    for (const dra::AllocatedDevice& held : gone.claim.allocation->devices) {
      FreeOf(gone.node).push_back(held.id.device.back() - '0');
      --used_;
    }
    engine_.DeletePod(PodUid(gone.pod), now_);
    engine_.RemoveDraObject({dra::ObjectRef::Kind::kClaim, "team", gone.claim.name}, now_);
  }

  int64_t FreeOn(int node) { return std::ssize(FreeOf(node)); }
  double share() const { return static_cast<double>(used_) / static_cast<double>(gpus_); }

 private:
  struct Living {
    std::string pod;
    int node = 0;
    dra::Claim claim;
  };

  static dra::Claim ClaimOf(const std::string& pod, const ProfilePod& kind) {
    dra::RequestChoice choice;
    choice.device_class = std::string(dra::kGpuDriver);
    choice.count = GpusOf(kind);
    if (!kind.selector.empty()) choice.selectors = {kind.selector};
    dra::Claim claim;
    claim.ns = "team";
    claim.name = pod + "-gpu";
    claim.uid = claim.name;
    claim.owner = PodUid(pod);
    claim.requests = {{"gpu", {choice}}};
    return claim;
  }
  std::vector<int>& FreeOf(int node) { return free_[static_cast<std::size_t>(node)]; }

  Engine engine_;
  const Instant now_{Millis(1'700'000'000'000)};
  const int64_t gpus_;
  std::vector<NodeName> names_;
  std::vector<std::string_view> views_;
  std::vector<std::vector<int>> free_;  // device numbers by node
  std::deque<Living> living_;
  FilterAnswer answer_;
  int64_t used_ = 0;
  int64_t pods_ = 0;
};

}  // namespace

absl::Status RunClaims(const ClaimsOptions& options) {
  const absl::StatusOr<Profile> read = ReadProfile(options.profile);
  if (!read.ok()) return read.status();
  const Profile& profile = *read;
  Cluster cluster(profile);
  std::mt19937_64 random(options.seed);
  // The last kind, whole nodes, comes later.
  const std::size_t early = std::max<std::size_t>(profile.waiting.size() - 1, 1);
  // Some nodes stay idle, for claims of whole ones.
  const auto used_nodes = static_cast<uint64_t>(profile.nodes * (1 + profile.fill) / 2);
  while (cluster.share() < profile.fill) {
    const ProfilePod& kind = profile.waiting[random() % early];
    const int node = static_cast<int>(random() % std::max<uint64_t>(used_nodes, 1));
    if (cluster.FreeOn(node) >= GpusOf(kind)) cluster.Start(kind, node);
  }
  std::vector<std::vector<double>> micros(profile.waiting.size());
  int64_t nowhere = 0;
  for (int i = 0; i < options.pods; ++i) {
    while (cluster.share() > profile.fill) cluster.EndOldest();
    const std::size_t kind = static_cast<std::size_t>(i) % profile.waiting.size();
    const double took = cluster.Start(profile.waiting[kind], -1);
    if (took < 0) {
      ++nowhere;
    } else {
      micros[kind].push_back(took);
    }
  }
  std::printf("%d nodes of %d GPUs, %.0f %% in use; filter of one pod, us\n\n", profile.nodes,
              profile.gpus_per_node, profile.fill * 100);
  std::printf("%-18s %6s %10s %10s %10s\n", "claim", "pods", "p50", "p99", "worst");
  std::string rows;
  for (std::size_t k = 0; k < micros.size(); ++k) {
    const std::string& name = profile.waiting[k].name;
    const double p50 = Quantile(micros[k], 0.5);
    const double p99 = Quantile(micros[k], 0.99);
    std::printf("%-18s %6zu %10.1f %10.1f %10.1f\n", name.c_str(), micros[k].size(), p50, p99,
                Quantile(micros[k], 1));
    rows += fmt::format(R"({}{{"claim":"{}","pods":{},"p50Us":{:.1f},"p99Us":{:.1f}}})",
                        rows.empty() ? "" : ",", name, micros[k].size(), p50, p99);
  }
  if (nowhere > 0) std::printf("\n%ld pods found no room\n", static_cast<long>(nowhere));
  return WriteReport(fmt::format(R"({{"nodes":{},"fill":{},"seed":{},"rows":[{}]}})", profile.nodes,
                                 profile.fill, options.seed, rows),
                     options.out);
}

}  // namespace tranche::bench
