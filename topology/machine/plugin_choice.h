// Which GPUs the stock NVIDIA device plugin will hand out: a replay of the rule its
// GetPreferredAllocation uses (go-gpuallocator, best effort). A prediction: it holds while the
// plugin's free set is the one given and no topology hints narrow it.
//
// The rule: divide all free GPUs into sets of the size asked for (one may be smaller), take the
// division whose sets score most together, and of it the set that scores most. A set's score is the
// sum over its pairs of 100 for each direct NVLink and 10 (SYS) to 60 (one board) for the path.
// - Links to an NVSwitch are no GPU links to it. A matrix does not say which they are; but where
//   the NVLinks of one GPU to all others are more than any board has (kMaxNvlinks), they go to a
//   switch.
// - NVLink hides the path in a matrix; NUMA nodes and NICs then stand for it (set_values.h).
// - The kubelet hands over the free GPUs in no order, so any of several equal sets may be taken.
// Source: gpu-topology section 4, node-inventory section 4; go-gpuallocator besteffort_policy.go,
// k8s-device-plugin internal/rm/nvml_manager.go, kubelet devicemanager/manager.go (UnsortedList).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topology/machine/gpu_set.h"
#include "topology/machine/machine.h"

namespace tranche {

// Its own enumeration explodes; beyond so many divisions we do not follow.
inline constexpr int64_t kMostPartitions = 200'000;

// Every set it may hand out, the one of ascending order first. Empty: it cannot be told in bounded
// time, too few are free, or the plugin itself would fail (it can choose the smaller set).
// Cost: microseconds for 8 GPUs, tens of milliseconds at most.
std::vector<GpuSet> PluginChoices(const Machine& machine, GpuSet free, int count);
// The plugin's choice of `count` out of `free`, if it sees them in ascending order. nullopt: as
// above.
std::optional<GpuSet> PluginChoice(const Machine& machine, GpuSet free, int count);

}  // namespace tranche
