// Would the kubelet's Topology Manager admit a container (or pod) with these needs? A pod it
// refuses fails for good, so the question is asked before.
//
// single-numa-node: one zone has all of it. restricted: the same zones are, for GPUs and for CPUs,
// enough, and as few as could ever hold so many; so GPUs that need one zone beside CPUs that need
// two are never admitted. Containers come one after another: init containers lend what they were
// given to those after them, which must then be aligned with all of it. Source: gpu-topology
// section 6; kubelet topologymanager (policy.go, policy_restricted.go, policy_single_numa_node.go),
// devicemanager and cpumanager hints.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "topology/base/units.h"

namespace tranche {

enum class NumaPolicy : uint8_t { kNone, kBestEffort, kRestricted, kSingleNode };
enum class NumaScope : uint8_t { kContainer, kPod };
// "none", "best-effort", "restricted", "single-numa-node"; nullopt: something else.
std::optional<NumaPolicy> ParseNumaPolicy(std::string_view name);
std::optional<NumaScope> ParseNumaScope(std::string_view name);  // "container", "pod"

// One NUMA node. Zero capacity everywhere, of GPUs or CPUs: the kubelet knows no NUMA node of them.
struct ZoneRoom {
  int64_t gpus_capacity = 0;
  int64_t gpus_free = 0;
  MilliCpu cpus_capacity;
  MilliCpu cpus_free;
};

// What must be aligned together: a container's needs, or a pod's (scope pod).
struct AlignedNeed {
  int64_t gpus = 0;
  MilliCpu cpus;  // exclusive CPUs of a Guaranteed pod's container; zero: none
};

// A container, in the order of the kubelet: init containers and sidecars, then the others.
struct AlignedTurn {
  AlignedNeed need;
  bool lends = false;  // an init container that ends: what it got, those after it get first
};

// One need alone, and containers in turn, however the device plugin chooses among the GPUs that
// it may. Needs of what no zone has any of are not aligned. Exact for up to 8 zones that have some
// (the kubelet's own limit); with more, restricted is taken as single node. Of CPUs each container
// is asked about as if it came first. Cost: O(2^zones), times the ways to choose: where there are
// more than 256, the answer is no.
bool KubeletAdmits(NumaPolicy policy, std::span<const ZoneRoom> zones, const AlignedNeed& need);
bool KubeletAdmits(NumaPolicy policy, std::span<const ZoneRoom> zones,
                   std::span<const AlignedTurn> turns);

}  // namespace tranche
