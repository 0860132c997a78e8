// The benchmark's cluster: equal nodes, known by how many of their GPUs are free.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "bench/tenants/trace.h"

namespace tranche::bench {

struct Part {
  int node = 0;
  int gpus = 0;
};
using Placement = std::vector<Part>;

// Where `gpus` go among the nodes [first, last) with so many GPUs free each: up to a node's GPUs
// the tightest node that fits; above, whole free nodes and the tightest of the others for the rest.
std::optional<Placement> FindPlace(std::span<const int> free, int gpus, int first, int last);

class Cluster {
 public:
  explicit Cluster(int nodes) : free_(static_cast<std::size_t>(nodes), kGpusPerNode) {}

  std::span<const int> free() const { return free_; }
  int size() const { return static_cast<int>(free_.size()); }
  void Take(const Placement& placement) { Change(placement, -1); }
  void Give(const Placement& placement) { Change(placement, 1); }

 private:
  void Change(const Placement& placement, int sign) {
    for (const Part& part : placement)
      free_[static_cast<std::size_t>(part.node)] += sign * part.gpus;
  }

  std::vector<int> free_;
};

}  // namespace tranche::bench
