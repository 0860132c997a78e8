// What a node tells about its GPUs. A plain value. All of it is read from the Node object, but
// `zones` and `slices`, which other objects of the cluster say of the node.
//
// What the node does not say stays unset; nothing is invented. Labels are hints and lag; counts
// come from status.allocatable. Source: node-inventory facts, sections 1, 2, 6, 8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/facts/agent.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/node_constraints.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"
#include "topology/machine/machine.h"
#include "topology/machine/machine_sources.h"
#include "topology/machine/numa_align.h"
#include "topology/mig.h"

namespace tranche {

enum class SharingMethod : uint8_t { kNone, kTimeSlicing, kMps };
enum class MigStrategy : uint8_t { kNone, kSingle, kMixed };

// One extended resource of status.allocatable / status.capacity.
struct ResourceCount {
  int64_t allocatable = 0;
  int64_t capacity = 0;
  friend bool operator==(const ResourceCount&, const ResourceCount&) = default;
};

// One nvidia.com/mig-P[.shared] key with the labels of its profile.
struct MigResourceFacts {
  MigResourceName name;
  ResourceCount count;
  int64_t replicas = 1;             // label nvidia.com/mig-P.replicas, for shared ones
  std::optional<Mebibytes> memory;  // label nvidia.com/mig-P.memory
  std::optional<int> gi_slices;     // label nvidia.com/mig-P.slices.gi
  friend bool operator==(const MigResourceFacts&, const MigResourceFacts&) = default;
};

// An extended resource of a node agent's plugin, as volcano.sh/vgpu-number or aliyun.com/gpu-mem.
struct AgentAmount {
  std::string key;
  ResourceCount count;
  friend bool operator==(const AgentAmount&, const AgentAmount&) = default;
};

// What a NodeResourceTopology object says. Counts per NUMA node; the exporter's view lags.
struct NodeZones {
  NumaPolicy policy = NumaPolicy::kNone;
  NumaScope scope = NumaScope::kContainer;
  std::vector<ZoneCounts> zones;  // ascending zone
  friend bool operator==(const NodeZones&, const NodeZones&) = default;
};

// Annotation tranche.dev/probe: what `tranche probe` saw on the node.
struct ProbeGpu {
  int index = 0;
  GpuUuid uuid;
  std::string pci_bus;
  std::optional<int> numa;
  bool mig = false;               // MIG mode is on
  std::vector<MigDevice> layout;  // its instances
  friend bool operator==(const ProbeGpu&, const ProbeGpu&) = default;
};
struct ProbePod {
  PodName pod;
  std::vector<GpuUuid> gpus;  // whole cards and replicas (ids without "::n"); ascending
  friend bool operator==(const ProbePod&, const ProbePod&) = default;
};
struct NodeProbe {
  Instant at;  // when the probe looked
  std::vector<ProbeGpu> gpus;
  // What the kubelet says it handed out; nullopt: the probe could not ask.
  std::optional<std::vector<ProbePod>> pods;  // ascending pod
  friend bool operator==(const NodeProbe&, const NodeProbe&) = default;
};

struct NodeFacts {
  NodeName name;
  NodeUid uid;
  bool ready = true;  // false: condition Ready is False or Unknown; absent counts as ready
  // Condition Ready is Unknown: nobody has heard of the kubelet since this moment
  // (lastHeartbeatTime, else lastTransitionTime). nullopt otherwise, heartbeats included.
  std::optional<Instant> lost_since;
  bool cordoned = false;      // spec.unschedulable
  std::string operator_busy;  // the label and value that keep pods away; empty: none
  // What is wrong with its agent's register, without which the node would look like one with whole
  // cards; empty: nothing.
  std::string agent_unreadable;

  // status.allocatable.cpu; nullopt: the node does not say. CPU decides nothing here, but GPUs
  // whose node has no CPU left are stranded.
  std::optional<MilliCpu> cpu;

  std::string product;              // label nvidia.com/gpu.product
  std::optional<Mebibytes> memory;  // label nvidia.com/gpu.memory, per card (or per MIG device)
  std::optional<int64_t> count;     // label nvidia.com/gpu.count
  std::optional<int64_t> replicas;  // label nvidia.com/gpu.replicas
  SharingMethod sharing = SharingMethod::kNone;
  MigStrategy mig_strategy = MigStrategy::kNone;
  // Label tranche.dev/mig-layout: instances are made where a Binding says.
  bool mig_planned = false;

  std::optional<ResourceCount> gpu;         // nvidia.com/gpu
  std::optional<ResourceCount> gpu_shared;  // nvidia.com/gpu.shared
  std::vector<MigResourceFacts> mig;        // ascending resource name
  // What its node agent registers, by annotations, advertised amounts or an object of its own.
  std::optional<AgentRegister> agent;
  std::vector<AgentAmount> agent_amounts;  // ascending key
  std::vector<GpuUuid> cordoned_devices;   // annotation hami.io/device-cordon

  // How the GPUs are connected, by source.
  std::string machine;            // label nvidia.com/gpu.machine
  std::optional<Machine> matrix;  // annotation tranche.dev/topology
  std::vector<PairScore> scores;  // as HAMi or vgpu-manager publishes them
  std::optional<NodeProbe> probe;
  std::optional<NodeZones> zones;
  std::vector<SliceDevice> slices;

  LabelText labels;           // all of them
  std::vector<Taint> taints;  // NoSchedule and NoExecute

  std::vector<std::string> problems;  // what could not be read: expected, found, where
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

}  // namespace tranche
