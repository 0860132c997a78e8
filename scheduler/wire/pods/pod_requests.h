// The GPU amounts a pod's containers name, and the pod's effective request of each.
//
// Only keys that mean GPUs are kept: those of every request style, and those of other vendors,
// which matter when a pod mixes them with ours. Source: request-dialects sections 4-14.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/facts/pod_request.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/resource_amount.h"

namespace tranche::wire {

enum class AmountKind : uint8_t {
  kGpu,               // nvidia.com/gpu
  kGpuShared,         // nvidia.com/gpu.shared
  kMig,               // nvidia.com/mig-...
  kHamiMemory,        // nvidia.com/gpumem
  kHamiPercent,       // nvidia.com/gpumem-percentage
  kHamiCores,         // nvidia.com/gpucores
  kVolcanoNumber,     // volcano.sh/vgpu-number
  kVolcanoMemory,     // volcano.sh/vgpu-memory
  kVolcanoPercent,    // volcano.sh/vgpu-memory-percentage
  kVolcanoCores,      // volcano.sh/vgpu-cores
  kVolcanoOldMemory,  // volcano.sh/gpu-memory
  kVolcanoOldNumber,  // volcano.sh/gpu-number
  kGpushareMemory,    // aliyun.com/gpu-mem
  kVcudaCore,         // tencent.com/vcuda-core
  kVcudaMemory,       // tencent.com/vcuda-memory
  kElasticCore,       // elasticgpu.io/gpu-core
  kElasticMemory,     // elasticgpu.io/gpu-memory
  kVgpuNumber,        // nvidia.com/vgpu-number
  kVgpuMemory,        // nvidia.com/vgpu-memory
  kVgpuCores,         // nvidia.com/vgpu-cores
  kKoordGpu,          // koordinator.sh/gpu
  kKoordShared,       // koordinator.sh/gpu.shared
  kKoordCore,         // koordinator.sh/gpu-core
  kKoordMemory,       // koordinator.sh/gpu-memory; in MiB, rounded up from bytes
  kKoordRatio,        // koordinator.sh/gpu-memory-ratio
  kHivedEnable,       // hivedscheduler.microsoft.com/pod-scheduling-enable
  kForeign,           // another vendor's GPUs, or a style that is not read here
};

// The style whose key this is; kNone of foreign keys. nvidia.com/gpu is native here, though other
// styles build on it.
RequestStyle StyleOf(AmountKind kind);
// Kubelet calls a device plugin for this key, and a node counts it.
bool IsPluginKey(AmountKind kind);

// One resource key of one container. Views point into the parsed document.
struct Amount {
  int container = 0;  // index into PodRequest::containers
  AmountKind kind = AmountKind::kGpu;
  std::string_view key;
  int64_t value = 0;    // as the key counts; of kKoordMemory in MiB
  std::string problem;  // why the value cannot be used; empty: it can

  // Asks for something, or may do so: a value nobody can read is no zero.
  bool is_present() const { return value > 0 || !problem.empty(); }
};

// The pod's effective request of CPU, container by container in order (Kubernetes' formula). What
// cannot be read counts as nothing: CPU is kube-scheduler's to judge.
class CpuSum {
 public:
  // `resources` of a container: requests.cpu, else limits.cpu.
  void AddContainer(Object resources, ContainerRole role, FieldReader& reader);
  void AddOverhead(Object overhead);
  // spec.resources, which stands above what containers say.
  void SetPod(Object resources, FieldReader& reader);
  MilliCpu Total() const;

 private:
  int64_t running_ = 0;  // sidecars started so far, then the app containers too
  int64_t largest_ = 0;  // while an init container runs
  int64_t overhead_ = 0;
  std::optional<int64_t> pod_;
};

// Container index of the pod's overhead, behind every container.
inline constexpr int kOverhead = INT32_MAX;

// Appends the amounts of one container's `resources`, ascending key. Limits win; requests fill in
// keys the limits lack; where both name a key they must be equal, as the API demands of extended
// resources. `name` is the container's, for problems. Values that are neither text nor number fail
// `reader`.
void ReadAmounts(Object resources, int container, std::string_view name, FieldReader& reader,
                 std::vector<Amount>& out);
// Appends the amounts of spec.overhead, which has one list only.
void ReadOverhead(Object overhead, FieldReader& reader, std::vector<Amount>& out);

// Appends HAMi's amounts that stand in an annotation instead of in the containers they are for,
// where the webhook moved them: {"main": {"nvidia.com/gpumem": "8000"}}. `text` is the
// annotation's. What is wrong with it is the problem of an amount. Cost: O(n log n) of text and
// containers.
void AddMovedAmounts(std::string_view text, const std::vector<ContainerInfo>& containers,
                     std::vector<Amount>& out);

// Kubernetes' effective request of every key that nodes count (IsPluginKey).
// Cost: sorting the amounts. Requires: `amounts` ascending container.
// Source: kube-client-protocol section 18, KEP-753.
std::vector<PoolNeed> EffectiveRequests(const std::vector<Amount>& amounts,
                                        const std::vector<ContainerInfo>& containers);

}  // namespace tranche::wire
