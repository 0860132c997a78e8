// How GPUs can be divided into groups in which every pair has NVLink: what damage is measured by.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/machine/gpu_set.h"
#include "topology/machine/machine.h"

namespace tranche {

// Disjoint groups; a GPU in none of them is alone.
struct Packing {
  int octets = 0;
  int quads = 0;
  int triples = 0;
  int pairs = 0;
  int64_t links = 0;  // NVLinks inside the groups
};
// Packed into the low kPackingBits bits, most important first: larger is better, and packings of
// disjoint sets add up.
uint64_t Pack(const Packing& packing);
Packing UnpackPacking(uint64_t packed);
inline constexpr int kPackingBits = 36;
inline constexpr int kBelowQuads = 27;  // bits under octets and quads

// Packed, the best packing of every set, by its bits. Exact. Requires: at most kMostTabledGpus
// GPUs. Cost: some ten milliseconds for 16 GPUs.
std::vector<uint64_t> PackingTable(const Machine& machine);
// The largest groups first, each grown from the lowest GPU left: of any machine, not always best.
Packing GreedyPacking(const Machine& machine, GpuSet set);

}  // namespace tranche
