// What a node tells about its GPUs, read from the Node object and nothing else. A plain value.
//
// What the node does not say stays unset; nothing is invented. Labels are hints and lag; counts
// come from status.allocatable. Source: node-inventory facts, sections 1, 2, 6, 8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/facts/node_constraints.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"
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

// One device of HAMi's register annotation.
struct HamiMigProfile {
  std::string name;
  Mebibytes memory;
  int cores_percent = 0;
  std::vector<std::pair<int, int>> placements;  // start, size
  friend bool operator==(const HamiMigProfile&, const HamiMigProfile&) = default;
};
struct HamiDevice {
  GpuUuid uuid;
  int index = 0;
  int slots = 0;          // how many pods may share it
  Mebibytes memory;       // already scaled by HAMi
  int cores_percent = 0;  // 100, or more where HAMi scales cores
  std::string type;       // "NVIDIA-NVIDIA A100-SXM4-40GB"
  int numa = 0;
  std::string mode;  // "hami-core", "mig", "mps"
  bool healthy = false;
  std::vector<HamiMigProfile> mig_profiles;
  friend bool operator==(const HamiDevice&, const HamiDevice&) = default;
};
struct HamiRegister {
  // The oldest HAMi minor version that writes this form: 4 (text), 9 (JSON; 2.8 looks the same),
  // 10 (JSON with migProfiles).
  int minor = 0;
  std::vector<HamiDevice> devices;  // ascending index
  friend bool operator==(const HamiRegister&, const HamiRegister&) = default;
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

  // status.allocatable.cpu; nullopt: the node does not say. CPU decides nothing here, but GPUs
  // whose node has no CPU left are stranded.
  std::optional<MilliCpu> cpu;

  std::string product;              // label nvidia.com/gpu.product
  std::optional<Mebibytes> memory;  // label nvidia.com/gpu.memory, per card (or per MIG device)
  std::optional<int64_t> count;     // label nvidia.com/gpu.count
  std::optional<int64_t> replicas;  // label nvidia.com/gpu.replicas
  SharingMethod sharing = SharingMethod::kNone;
  MigStrategy mig_strategy = MigStrategy::kNone;
  bool mig_planned =
      false;  // label tranche.dev/mig-layout: instances are made where a Binding says

  std::optional<ResourceCount> gpu;         // nvidia.com/gpu
  std::optional<ResourceCount> gpu_shared;  // nvidia.com/gpu.shared
  std::vector<MigResourceFacts> mig;        // ascending resource name
  std::optional<HamiRegister> hami;
  std::vector<GpuUuid> cordoned_devices;  // annotation hami.io/device-cordon

  LabelText labels;           // all of them
  std::vector<Taint> taints;  // NoSchedule and NoExecute

  std::vector<std::string> problems;  // what could not be read: expected, found, where
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

}  // namespace tranche
