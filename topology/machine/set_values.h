// What sets of GPUs of one machine are worth, as numbers that compare: to take, and to keep.
//
// To take: the fields of SetQuality in the order of the key, packed into 64 bits. To keep: see
// KeepValue. Up to kMostTabledGpus GPUs all sets are tabled and exact; beyond that values are
// worked out when asked for, with rings and packings found greedily. Thread rule: const after
// construction.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "topology/machine/gpu_set.h"
#include "topology/machine/machine.h"
#include "topology/machine/machine_table.h"
#include "topology/machine/packing.h"

namespace tranche {

uint64_t Pack(const SetQuality& quality);  // larger is better
SetQuality UnpackQuality(uint64_t packed);

// What stays when a set is taken out of those that are free; larger is better. Compared:
//   1 octets and quads in the best packing of the whole machine without the set: what can be had
//     again when others leave, if no set lies across it
//   2 the best packing of what stays free  3 NVLinks between all that stay free
//   4 the best packing of the whole machine without the set
//   5 nearness between all that stay free: the sum over pairs of 0 for SYS to 5 for one board.
//     Where NVLink hides the path, nearness is that of what both GPUs are close to: their NUMA
//     node, or a fabric NIC. So on NVSwitch and PCIe machines NUMA nodes and NIC groups stay whole
//   6 nearness between all of the machine without the set
struct KeepValue {
  uint64_t first = 0;   // 1 to 3
  uint64_t second = 0;  // 4 to 6
  friend auto operator<=>(const KeepValue&, const KeepValue&) = default;
};

// The path between two GPUs, or a better one that follows from what both are close to.
PathClass Nearness(const Machine& machine, int left, int right);
// The best way from the GPU to a fabric NIC; nullopt: there is none.
std::optional<PathClass> NearestNic(const Machine& machine, int gpu);

class SetValues {
 public:
  // `machine` outlives it. Cost: some ten milliseconds for 16 GPUs, some ten microseconds for 8.
  explicit SetValues(const Machine& machine);

  uint64_t ToTake(GpuSet set) const {
    return take_.empty() ? Pack(WorkOutQuality(set)) : take_[set.bits()];
  }
  KeepValue ToKeep(GpuSet free, GpuSet set) const;
  Packing BestPacking(GpuSet set) const { return UnpackPacking(PackedPacking(set)); }

 private:
  // NVLinks and nearness summed over all pairs of a set.
  struct Bonds {
    uint16_t links = 0;
    uint16_t nearness = 0;
  };

  SetQuality QualityButRing(GpuSet set) const;
  SetQuality WorkOutQuality(GpuSet set) const;
  Bonds WorkOutBonds(GpuSet set) const;
  uint64_t PackedPacking(GpuSet set) const {
    return packings_.empty() ? Pack(GreedyPacking(machine_, set)) : packings_[set.bits()];
  }
  Bonds BondsOf(GpuSet set) const {
    return bonds_.empty() ? WorkOutBonds(set) : bonds_[set.bits()];
  }
  void MakeTables();

  const Machine& machine_;
  std::vector<PathClass> nearness_;    // by pair
  std::vector<int> node_;              // by GPU: its NUMA node, as the first GPU in it
  std::vector<int64_t> nic_distance_;  // by GPU
  // By the bits of the set; empty: too many GPUs.
  std::vector<uint64_t> take_;
  std::vector<uint64_t> packings_;
  std::vector<Bonds> bonds_;
};

}  // namespace tranche
