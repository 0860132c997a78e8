// A made fleet for the decision benchmark: stock nodes of equal make, pods bound on them up to a
// fill, written as ordinary Kubernetes objects that `tranche serve --objects` loads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tranche::bench {

struct FleetOptions {
  int nodes = 5000;
  int gpus_per_node = 8;
  double fill = 0.5;      // of all GPUs, by pods already bound
  int pods_per_node = 4;  // how many pods make up the fill
  int teams = 5;          // namespaces the pods are spread over
  uint64_t seed = 42;
};

std::string NodeNameOf(int index);  // "gpu-node-00042"
std::string TeamName(int index);    // its namespace too: "team-7"

// One List of nodes and bound pods; how many pods. Errors: what the file system says.
absl::StatusOr<int64_t> WriteFleet(const FleetOptions& options, const std::string& path);

// A pending pod as kube-scheduler sends it, without the candidates: kinds are drawn by `draw` from
// half cards, quarter cards, and 1, 2, 4 and 8 whole GPUs; classes and runtimes go by index.
std::string PendingPod(int index, int teams, uint64_t draw);

}  // namespace tranche::bench
