#include "bench/claims/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/engine/engine.h"

namespace tranche::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;

constexpr int kGpusPerNode = 8;

struct Kind {
  const char* name;
  int64_t gpus;
  bool selects;  // by a CEL expression of its own, beside the class's
};
constexpr Kind kKinds[] = {
    {"1 GPU", 1, false}, {"1 GPU, by memory", 1, true}, {"2 GPUs", 2, false}, {"8 GPUs", 8, false}};

std::string NodeNameOf(int node) { return fmt::format("node-{:05}", node); }

// What NVIDIA's driver publishes of an H100.
dra::Device DeviceOf(int node, int gpu) {
  const std::string domain(dra::kGpuDriver);
  dra::Device device;
  device.name = fmt::format("gpu-{}", gpu);
  device.attributes = {
      {{domain, "architecture"}, std::string("Hopper")},
      {{domain, "index"}, int64_t{gpu}},
      {{domain, "productName"}, std::string("NVIDIA H100 80GB HBM3")},
      {{domain, "type"}, std::string("gpu")},
      {{domain, "uuid"}, fmt::format("GPU-{}-{}", node, gpu)},
      {{"resource.kubernetes.io", "numaNode"}, int64_t{gpu / 4}},
  };
  device.capacities = {{{domain, "memory"}, dra::Quantity::Whole(int64_t{81559} << 20), {}}};
  return device;
}

dra::Slice SliceOf(int node) {
  dra::Slice slice;
  slice.name = NodeNameOf(node) + "-slice";
  slice.driver = std::string(dra::kGpuDriver);
  slice.pool = NodeNameOf(node);
  slice.generation = 1;
  slice.slice_count = 1;
  slice.node.kind = dra::NodeChoice::Kind::kName;
  slice.node.name = NodeName(NodeNameOf(node));
  for (int gpu = 0; gpu < kGpusPerNode; ++gpu) slice.devices.push_back(DeviceOf(node, gpu));
  return slice;
}

// The engine, and the devices kube-scheduler has handed out.
class Cluster {
 public:
  explicit Cluster(int nodes) : engine_(EngineOptions{}), free_(static_cast<std::size_t>(nodes)) {
    for (int node = 0; node < nodes; ++node) {
      NodeFacts facts;
      facts.name = NodeName(NodeNameOf(node));
      engine_.UpsertNode(facts, now_);
      engine_.SetDraObject(SliceOf(node), now_);
      names_.push_back(facts.name);
      for (int gpu = kGpusPerNode - 1; gpu >= 0; --gpu) FreeOf(node).push_back(gpu);
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
  double Start(const Kind& kind, int node) {
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
        if (std::ssize(free_[chosen]) < kind.gpus) continue;
        node = static_cast<int>(chosen);
        break;
      }
      if (node < 0) return -1;
    }
    claim.allocation.emplace();
    for (int64_t gpu = 0; gpu < kind.gpus; ++gpu) {
      dra::AllocatedDevice held;
      held.request = "gpu";
      held.id = {std::string(dra::kGpuDriver), NodeNameOf(node),
                 fmt::format("gpu-{}", FreeOf(node).back())};
      FreeOf(node).pop_back();
      claim.allocation->devices.push_back(std::move(held));
    }
    claim.reserved_for = {pod.request.uid};
    used_ += kind.gpus;
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
  double share() const {
    return static_cast<double>(used_) / static_cast<double>(names_.size() * kGpusPerNode);
  }

 private:
  struct Living {
    std::string pod;
    int node = 0;
    dra::Claim claim;
  };

  static dra::Claim ClaimOf(const std::string& pod, const Kind& kind) {
    dra::RequestChoice choice;
    choice.device_class = std::string(dra::kGpuDriver);
    choice.count = kind.gpus;
    if (kind.selects) {
      choice.selectors = {
          "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0"};
    }
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
  std::vector<NodeName> names_;
  std::vector<std::string_view> views_;
  std::vector<std::vector<int>> free_;  // device numbers by node
  std::deque<Living> living_;
  FilterAnswer answer_;
  int64_t used_ = 0;
  int64_t pods_ = 0;
};

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

}  // namespace

absl::Status RunClaims(const ClaimsOptions& options) {
  Cluster cluster(options.nodes);
  std::mt19937_64 random(options.seed);
  const auto draw = [&random] { return kKinds[random() % 3]; };  // whole nodes come later
  // Some nodes stay idle, for claims of whole ones.
  const auto used_nodes = static_cast<uint64_t>(options.nodes * (1 + options.fill) / 2);
  while (cluster.share() < options.fill) {
    const Kind kind = draw();
    const int node = static_cast<int>(random() % std::max<uint64_t>(used_nodes, 1));
    if (cluster.FreeOn(node) >= kind.gpus) cluster.Start(kind, node);
  }
  std::vector<std::vector<double>> micros(std::size(kKinds));
  int64_t nowhere = 0;
  for (int i = 0; i < options.pods; ++i) {
    while (cluster.share() > options.fill) cluster.EndOldest();
    const std::size_t kind = static_cast<std::size_t>(i) % std::size(kKinds);
    const double took = cluster.Start(kKinds[kind], -1);
    if (took < 0) {
      ++nowhere;
    } else {
      micros[kind].push_back(took);
    }
  }
  std::printf("%d nodes of %d GPUs, %.0f %% in use; filter of one pod, us\n\n", options.nodes,
              kGpusPerNode, options.fill * 100);
  std::printf("%-18s %6s %10s %10s %10s\n", "claim", "pods", "p50", "p99", "worst");
  std::string rows;
  for (std::size_t k = 0; k < std::size(kKinds); ++k) {
    const double p50 = Quantile(micros[k], 0.5);
    const double p99 = Quantile(micros[k], 0.99);
    std::printf("%-18s %6zu %10.1f %10.1f %10.1f\n", kKinds[k].name, micros[k].size(), p50, p99,
                Quantile(micros[k], 1));
    rows += fmt::format(R"({}{{"claim":"{}","pods":{},"p50Us":{:.1f},"p99Us":{:.1f}}})",
                        rows.empty() ? "" : ",", kKinds[k].name, micros[k].size(), p50, p99);
  }
  if (nowhere > 0) std::printf("\n%ld pods found no room\n", static_cast<long>(nowhere));
  if (options.out.empty()) return absl::OkStatus();
  std::ofstream file(options.out);
  file << fmt::format(R"({{"nodes":{},"fill":{},"seed":{},"rows":[{}]}})", options.nodes,
                      options.fill, options.seed, rows)
       << '\n';
  if (!file) return absl::UnavailableError("cannot write " + options.out);
  return absl::OkStatus();
}

}  // namespace tranche::bench
