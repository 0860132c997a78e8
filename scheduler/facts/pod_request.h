// What a pod asks for, in one normal form for every request style.
//
// A plain value: decoded once at the edge (wire/pods/pod_decode), compared and hashed by its shape
// in the core. Amounts are already checked; a pod whose amounts are not valid carries a
// refusal instead of asks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/spec.h"
#include "scheduler/facts/node_constraints.h"
#include "scheduler/facts/reason.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"
#include "topology/machine/machine.h"
#include "topology/mig.h"

namespace tranche {

enum class RequestStyle : uint8_t {
  kNone,          // asks no GPU
  kNative,        // nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-P[.shared]
  kTranche,       // tranche.dev/gpu-fraction, tranche.dev/gpu-memory
  kHami,          // nvidia.com/gpu with gpumem, gpumem-percentage, gpucores
  kVolcano,       // volcano.sh/vgpu-number, vgpu-memory, vgpu-memory-percentage, vgpu-cores
  kVolcanoOld,    // volcano.sh/gpu-memory, gpu-number
  kGpushare,      // aliyun.com/gpu-mem
  kTkestack,      // tencent.com/vcuda-core, vcuda-memory
  kElastic,       // elasticgpu.io/gpu-core, gpu-memory
  kVgpuManager,   // nvidia.com/vgpu-number, vgpu-cores, vgpu-memory
  kKai,           // annotations gpu-fraction, gpu-memory (KAI, Run:ai)
  kKoordinator,   // koordinator.sh/gpu, gpu-core, gpu-memory, gpu-memory-ratio, gpu.shared
  kOpenGpuShare,  // annotations alibabacloud.com/gpu-milli, gpu-count
  kHived,         // annotation hivedscheduler.microsoft.com/pod-scheduling-spec
};
inline constexpr int kRequestStyles = 14;
std::string_view StyleName(RequestStyle style);  // "none", "native", "tranche", "hami", ...

// Init containers run one after another before the app containers; a sidecar is an init container
// with restartPolicy Always and runs from its turn to the end of the pod.
enum class ContainerRole : uint8_t { kApp, kSidecar, kInit };

struct ContainerInfo {
  std::string name;
  ContainerRole role = ContainerRole::kApp;
  // What kubelet will ask the device plugin for: the limit of its style's primary key.
  int64_t plugin_count = 0;
  // CPUs the kubelet's static CPU manager pins: whole CPUs of a Guaranteed pod; else zero.
  MilliCpu pinned_cpu = {};
};

enum class Resource : uint8_t {
  kGpu,        // nvidia.com/gpu: one unit is what the node makes of it (card, replica, MIG device)
  kGpuShared,  // nvidia.com/gpu.shared: a replica of a card
  kMig,        // nvidia.com/mig-P[.shared]: an instance, or a replica of one
  kShare,      // a part of each of `count` different cards
};

// How much memory of each card a share takes.
struct MemoryNeed {
  // kAgentUnits: of the size the node's agent counts in (AgentRegister::memory_unit).
  enum class Kind : uint8_t { kNone, kWholeCard, kMib, kMilliOfCard, kPercentOfCard, kAgentUnits };
  Kind kind = Kind::kNone;
  int64_t value = 0;  // MiB, 1..999, 1..100 or units by kind; 0 otherwise
};

struct Ask {
  int container = 0;  // index into PodRequest::containers
  Resource resource = Resource::kGpu;
  int64_t count = 0;    // devices, at least 1
  MigResourceName mig;  // kMig only
  MemoryNeed memory;    // kShare only
  MilliGpu compute;     // kShare only: taken of each card, 0..1000
  // kShare only: the card may have no other user (HAMi: 100 % of the cores).
  bool exclusive = false;
};

// The pod's effective request of one resource key that nodes may advertise (Kubernetes' formula
// over init containers, sidecars and overhead). Source: kube-client-protocol section 18.
struct PoolNeed {
  std::string key;  // "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
  int64_t count = 0;
};

// Where several cards of a node would do, which to take.
enum class CardChoice : uint8_t { kStrategy, kTightest, kLoosest, kIdleOnly };

// What counts how much where the fullest or the emptiest card is taken: pods on it, compute, memory
// (HAMi's hami.io/device-scoring-weights). At least one is positive.
struct CardWeights {
  int64_t slot = 0;
  int64_t core = 0;
  int64_t memory = 0;
  friend bool operator==(const CardWeights&, const CardWeights&) = default;
};

struct Refusal {
  Reason reason = Reason::kNone;
  std::string detail;  // expected, found (quoted), where; for explain, never for the wire
};

// What a container sets of CUDA's MPS itself, in its environment. An MPS server holds the process
// to it, within what the server gives; it is no request, and nothing is charged by it.
struct OwnLimits {
  int container = 0;                // index into PodRequest::containers
  std::optional<MilliGpu> threads;  // CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, of the GPU's threads
  std::optional<Mebibytes> memory;  // CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, the largest of its devices
  std::string problem;              // what of it could not be read; empty: nothing
  friend bool operator==(const OwnLimits&, const OwnLimits&) = default;
};

struct PodRequest {
  PodUid uid;
  PodName name;
  std::string priority_class;
  std::string scheduler;  // spec.schedulerName; empty: the cluster's default one

  RequestStyle style = RequestStyle::kNone;
  // Every init container, then every app container, in order.
  std::vector<ContainerInfo> containers;
  std::vector<Ask> asks;              // ascending container
  std::vector<PoolNeed> pool_needs;   // ascending key, counts > 0
  std::vector<OwnLimits> own_limits;  // ascending container; of one that asks for GPUs
  std::optional<Refusal> refusal;     // set: the request can never be met; asks are empty

  std::vector<std::string> models_any;  // lower case; empty: any (see MatchesModel)
  std::vector<std::string> models_none;
  std::vector<std::string> uuids_any;  // empty: any
  std::vector<std::string> uuids_none;
  Mebibytes min_gpu_memory;              // of each card; zero: any
  bool one_numa_node = false;            // all cards of a container in one NUMA node
  std::optional<TopologyWish> topology;  // tranche.dev/topology; nullopt: as the policy says
  std::optional<LinkFloor> link_floor;   // tranche.dev/min-link: between any two of its cards
  std::optional<PathClass> nic_floor;    // tranche.dev/nic: from each card to some fabric NIC
  MilliCpu cpu;                          // effective request; of pods that ask no GPU too
  std::string vgpu_mode;                 // "", "hami-core", "mig", "mps"
  std::optional<Strategy> strategy;      // the pod's own wish for choosing nodes
  CardChoice card_choice = CardChoice::kStrategy;
  std::optional<CardWeights> card_weights;  // nullopt: the scarcer of compute and memory counts
  std::optional<Millis> expected_runtime;   // tranche.dev/expected-runtime
  // tranche.dev/gang, or the group of another controller as "jobset/NAME", ... (pod_gang.h); empty:
  // a gang of one.
  std::string gang;
  int gang_size = 0;                     // pods that start together; 0: not said
  int gang_rank = -1;                    // its place among them; -1: not said
  std::optional<GangLevel> gang_within;  // tranche.dev/gang-within: one domain of this level
  int32_t priority = 0;                  // spec.priority
  // Its share is of the card we name: its container's NVIDIA_VISIBLE_DEVICES is what the Binding
  // writes into tranche.dev/visible-devices, and it asks the kubelet for no GPU.
  bool follows_placeholder = false;
  // What its spec demands of nodes; null: nothing. Not part of its shape: only the planner asks.
  std::shared_ptr<const NodeConstraints> constraints;
  // Its spec demands or wishes what only kube-scheduler weighs: spread, affinity between pods,
  // preferred nodes, ports of the host, volumes, claims. Not part of its shape either.
  bool judged_elsewhere = false;

  bool asks_gpu() const { return style != RequestStyle::kNone; }
};

}  // namespace tranche
