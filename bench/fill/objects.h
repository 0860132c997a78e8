// The benchmark's machines and tasks as Kubernetes objects (JSON), which the scheduler's own
// decoder reads, and the devices it answers with as placements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/fill/books.h"
#include "bench/fill/trace.h"
#include "scheduler/facts/allocation.h"

namespace tranche::bench::fill {

inline constexpr std::string_view kNamespace = "fill";

// Names sort as their numbers do, so that order by name is the seed's order of the nodes.
std::string NodeNameOf(int id);
// Error: Internal.
absl::StatusOr<int> NodeNumberOf(std::string_view name);
std::string PodNameOf(int64_t serial);
std::string UidOf(int64_t serial);

// A stock node: the GPUs are counted by the device plugin and described by labels.
std::string NodeObject(int id, const NodeBook& node, const std::vector<std::string>& models);
// A pending pod: shares by tranche.dev/gpu-fraction, whole GPUs by nvidia.com/gpu.
std::string PodObject(int64_t serial, const TaskType& task, const std::vector<std::string>& models);
// Fractions go on stock nodes, and pods without GPUs are ranked too.
std::string PolicyObject();

// What the devices give the task. Error: Internal, where it asked for something else.
absl::StatusOr<Placement> PlacementOf(const TaskType& task, int node, const Allocation& allocation);

}  // namespace tranche::bench::fill
