// Nodes and pods for tests of the core: a row says only what matters to it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/engine.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_facts.h"
#include "scheduler/facts/pod_request.h"

namespace tranche::test {

inline constexpr int64_t kH100Mib = 81559;

inline NodeFacts StockNode(const std::string& name, int gpus,
                           const std::string& product = "NVIDIA-H100-80GB-HBM3",
                           int64_t mib = kH100Mib) {
  NodeFacts node;
  node.name = NodeName(name);
  node.uid = NodeUid("node-" + name);
  node.product = product;
  node.memory = Mebibytes::Of(mib);
  node.count = gpus;
  node.replicas = 1;
  node.gpu = ResourceCount{gpus, gpus};
  return node;
}

// Time-sliced (or MPS) cards; renamed ones are advertised as nvidia.com/gpu.shared.
inline NodeFacts SharedNode(const std::string& name, int gpus, int replicas, bool renamed,
                            SharingMethod method = SharingMethod::kTimeSlicing) {
  NodeFacts node = StockNode(name, gpus, renamed ? "NVIDIA-L40S" : "NVIDIA-L40S-SHARED", 46068);
  node.replicas = replicas;
  node.sharing = method;
  const ResourceCount count{int64_t{gpus} * replicas, int64_t{gpus} * replicas};
  node.gpu = renamed ? std::nullopt : std::optional(count);
  node.gpu_shared = renamed ? std::optional(count) : std::nullopt;
  return node;
}

struct MigCount {
  std::string profile;
  int64_t count = 0;
  int64_t replicas = 1;
};

// Strategy mixed: `whole` cards without MIG, the others cut.
inline NodeFacts MigNode(const std::string& name, int gpus, int whole,
                         const std::vector<MigCount>& instances) {
  NodeFacts node = StockNode(name, whole, "NVIDIA-A100-SXM4-80GB", 81251);
  node.product = "NVIDIA-A100-80GB-PCIe";
  node.count = gpus;
  node.mig_strategy = MigStrategy::kMixed;
  if (whole == 0) {
    node.gpu.reset();
    node.replicas = 0;
  }
  for (const MigCount& instance : instances) {
    MigResourceFacts mig;
    mig.name = {instance.profile, instance.replicas > 1};
    mig.replicas = instance.replicas;
    mig.count = {instance.count * instance.replicas, instance.count * instance.replicas};
    node.mig.push_back(mig);
  }
  return node;
}

inline NodeFacts HamiNode(const std::string& name, int gpus, int slots = 10) {
  NodeFacts node = StockNode(name, gpus, "Tesla-T4", 15109);
  node.gpu = ResourceCount{int64_t{gpus} * slots, int64_t{gpus} * slots};
  AgentRegister hami;
  hami.minor = 9;
  for (int i = 0; i < gpus; ++i) {
    AgentDevice device;
    device.uuid = GpuUuid("GPU-" + name + "-" + std::to_string(i));
    device.index = i;
    device.slots = slots;
    device.memory = Mebibytes::Of(15109);
    device.cores_percent = 100;
    device.type = "NVIDIA-Tesla T4";
    device.numa = i % 2;
    device.mode = "hami-core";
    device.healthy = true;
    hami.devices.push_back(device);
  }
  node.agent = hami;
  return node;
}

// What the plugin of an agent advertises for `gpus` cards of `units` of memory each, ten slots a
// card. Agents that advertise nothing of their own: empty.
inline std::vector<AgentAmount> AmountsOf(AgentKind kind, int64_t gpus, int64_t units) {
  const auto amount = [](const char* key, int64_t count) {
    return AgentAmount{key, {count, count}};
  };
  switch (kind) {
    case AgentKind::kVolcano:
      return {amount("volcano.sh/vgpu-number", gpus * 10)};
    case AgentKind::kVolcanoOld:
      return {amount("volcano.sh/gpu-memory", gpus * units), amount("volcano.sh/gpu-number", gpus)};
    case AgentKind::kGpushare:
      return {amount("aliyun.com/gpu-count", gpus), amount("aliyun.com/gpu-mem", gpus * units)};
    case AgentKind::kTkestack:
      return {amount("tencent.com/vcuda-core", gpus * 100),
              amount("tencent.com/vcuda-memory", gpus * units)};
    case AgentKind::kElastic:
      return {amount("elasticgpu.io/gpu-core", gpus * 100),
              amount("elasticgpu.io/gpu-memory", gpus * units)};
    case AgentKind::kVgpuManager:
      return {amount("nvidia.com/vgpu-number", gpus * 10)};
    default:
      return {};
  }
}

// Equal cards of `units` x `unit` MiB that an agent divides; UUIDs where it goes by them.
inline NodeFacts AgentNode(AgentKind kind, const std::string& name, int gpus, int64_t units,
                           int64_t unit = 1) {
  NodeFacts node = HamiNode(name, gpus);
  node.memory = Mebibytes::Of(units * unit);
  node.agent->kind = kind;
  node.agent->minor = kind == AgentKind::kHami ? 9 : 0;
  node.agent->memory_unit = Mebibytes::Of(unit);
  node.agent_amounts = AmountsOf(kind, gpus, units);
  if (!node.agent_amounts.empty()) node.gpu.reset();
  if (kind == AgentKind::kKoordinator) node.gpu = ResourceCount{gpus, gpus};
  const bool by_index = kind == AgentKind::kVolcanoOld || kind == AgentKind::kGpushare ||
                        kind == AgentKind::kTkestack || kind == AgentKind::kElastic;
  for (AgentDevice& device : node.agent->devices) {
    device.memory = *node.memory;
    if (by_index || kind == AgentKind::kKoordinator) device.slots = 0;
    if (!by_index) continue;
    device.uuid = {};
    device.type.clear();
    device.mode.clear();
    device.numa.reset();
  }
  return node;
}

inline PodRequest EmptyRequest(const std::string& name) {
  PodRequest request;
  request.uid = PodUid("uid-" + name);
  request.name = {"team", name};
  request.containers.push_back({"main", ContainerRole::kApp, 0});
  return request;
}

inline PodRequest WholePod(const std::string& name, int64_t gpus) {
  PodRequest request = EmptyRequest(name);
  request.style = RequestStyle::kNative;
  request.containers[0].plugin_count = gpus;
  Ask ask;
  ask.resource = Resource::kGpu;
  ask.count = gpus;
  request.asks.push_back(ask);
  request.pool_needs.push_back({"nvidia.com/gpu", gpus});
  return request;
}

inline PodRequest SharedPod(const std::string& name, int64_t replicas) {
  PodRequest request = EmptyRequest(name);
  request.style = RequestStyle::kNative;
  Ask ask;
  ask.resource = Resource::kGpuShared;
  ask.count = replicas;
  request.asks.push_back(ask);
  request.pool_needs.push_back({"nvidia.com/gpu.shared", replicas});
  return request;
}

inline PodRequest MigPod(const std::string& name, const std::string& profile, int64_t count,
                         bool shared = false) {
  PodRequest request = EmptyRequest(name);
  request.style = RequestStyle::kNative;
  Ask ask;
  ask.resource = Resource::kMig;
  ask.count = count;
  ask.mig = {profile, shared};
  request.asks.push_back(ask);
  request.pool_needs.push_back({FormatMigResource(ask.mig), count});
  return request;
}

// tranche.dev/gpu-fraction on `cards` cards.
inline PodRequest FractionPod(const std::string& name, int64_t milli, int64_t cards = 1) {
  PodRequest request = EmptyRequest(name);
  request.style = RequestStyle::kTranche;
  Ask ask;
  ask.resource = Resource::kShare;
  ask.count = cards;
  ask.compute = MilliGpu::Of(milli);
  ask.memory = {MemoryNeed::Kind::kMilliOfCard, milli};
  request.asks.push_back(ask);
  return request;
}

// nvidia.com/gpu: cards with gpumem and gpucores.
inline PodRequest HamiPod(const std::string& name, int64_t cards, int64_t mib, int64_t cores = 0) {
  PodRequest request = EmptyRequest(name);
  request.style = RequestStyle::kHami;
  request.containers[0].plugin_count = cards;
  Ask ask;
  ask.resource = Resource::kShare;
  ask.count = cards;
  ask.compute = MilliGpu::Of(cores * 10);
  ask.memory = {MemoryNeed::Kind::kMib, mib};
  ask.exclusive = cores == 100;
  request.asks.push_back(ask);
  request.pool_needs.push_back({"nvidia.com/gpu", cards});
  return request;
}

// A part of each of `cards` cards, in any style. `key`, `amount`: what kubelet is asked for; empty:
// nothing.
inline PodRequest SharePod(const std::string& name, RequestStyle style, const std::string& key,
                           int64_t amount, const MemoryNeed& memory, int64_t cores = 0,
                           int64_t cards = 1) {
  PodRequest request = EmptyRequest(name);
  request.style = style;
  Ask ask;
  ask.resource = Resource::kShare;
  ask.count = cards;
  ask.compute = MilliGpu::Of(cores * 10);
  ask.memory = memory;
  request.asks.push_back(ask);
  if (key.empty()) return request;
  request.containers[0].plugin_count = amount;
  request.pool_needs.push_back({key, amount});
  return request;
}

inline PodFacts Pending(const PodRequest& request) {
  PodFacts pod;
  pod.request = request;
  return pod;
}

inline PodFacts Bound(const PodRequest& request, const std::string& node,
                      std::optional<Allocation> allocation = std::nullopt) {
  PodFacts pod;
  pod.request = request;
  pod.node = NodeName(node);
  pod.phase = PodPhase::kRunning;
  pod.allocation = std::move(allocation);
  return pod;
}

inline Instant At(int64_t seconds) {
  return Instant(std::chrono::seconds(1'700'000'000 + seconds));
}

// Administrators declared this policy and nothing else.
inline void SetPolicy(Engine& engine, const GpuPolicy& policy) {
  engine.SetPolicies(std::make_shared<const PolicySet>(), policy, Instant());
}

}  // namespace tranche::test
