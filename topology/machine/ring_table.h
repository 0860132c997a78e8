// What rings can be closed through every set of GPUs of a machine.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/machine/machine.h"

namespace tranche {

// Two maxima, not always of the same ring. 0 of fewer than two GPUs.
struct RingValue {
  uint8_t weakest = 0;  // NVLinks of the weakest hop of the ring in which it is strongest
  uint16_t links = 0;   // NVLinks of the ring that has most
  friend bool operator==(const RingValue&, const RingValue&) = default;
};

inline constexpr int kMostTabledGpus = 16;

// By the bits of the set. Exact (Held-Karp over all sets at once). Requires: at most
// kMostTabledGpus GPUs. Cost: some ten milliseconds for 16 GPUs, ten microseconds for 8.
std::vector<RingValue> RingTable(const Machine& machine);

}  // namespace tranche
