// The ways to choose GPUs inside one machine that the benchmark compares.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "bench/ring/matrix.h"

namespace tranche::bench {

class RingPolicy {
 public:
  virtual ~RingPolicy() = default;
  // Which GPUs, in the order of the ring. Requires: so many are free.
  virtual RingOrder Choose(GpuSet free, int count, bool sensitive) = 0;
};

// "baseline", "topoaware", "greedy", "preserve", "tranche"; null: no such policy. `matrix` outlives
// it.
std::unique_ptr<RingPolicy> MakeRingPolicy(std::string_view name, const RingMatrix& matrix);
std::string RingPolicyNames();

}  // namespace tranche::bench
