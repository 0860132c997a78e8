// The best closed ring through a set of GPUs.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/machine/gpu_set.h"
#include "topology/machine/machine.h"

namespace tranche {

struct Ring {
  int weakest = 0;         // NVLinks of its weakest hop; 0: some hop has none
  int64_t links = 0;       // NVLinks summed over its hops (a pair's link counts twice)
  std::vector<int> order;  // starts at the lowest GPU
};

// The ring with the strongest weakest hop, among those the one with most links; of equal ones the
// first in lexicographic order. Sets of one GPU have a ring of none. Exact to 12 GPUs (Held-Karp);
// beyond that greedy, which is exact where all links are alike.
Ring BestRing(const Machine& machine, GpuSet set);

}  // namespace tranche
