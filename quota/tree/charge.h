// What an allocation costs a quota: one exact vector for whole GPUs, fractions, memory and MIG.
//
// Unit: quanta, of which every GPU has kQuantaPerGpu per dimension: the least common multiple of
// 1000 and of 1..16, so that milli-GPUs, sevenths, eighths, twelfths and replicas up to 16 are
// whole numbers and nothing is lost in a sum. Pure values; any thread; constant cost.
#pragma once

#include <compare>
#include <cstdint>

#include "topology/base/limit.h"
#include "topology/base/units.h"
#include "topology/mig.h"
#include "topology/vgpu.h"

namespace tranche {

inline constexpr int64_t kQuantaPerGpu = 18'018'000;
inline constexpr int64_t kQuantaPerMilli = kQuantaPerGpu / 1000;

struct Charge {
  int64_t compute = 0;
  int64_t memory = 0;

  friend auto operator<=>(const Charge& left, const Charge& right) = default;
};

enum class Dimension : uint8_t { kCompute, kMemory };
inline constexpr Dimension kDimensions[] = {Dimension::kCompute, Dimension::kMemory};

// That dimension of anything that has both.
template <typename Both>
constexpr auto PartOf(const Both& both, Dimension dimension) {
  return dimension == Dimension::kCompute ? both.compute : both.memory;
}
template <typename Both>
constexpr auto& PartOf(Both& both, Dimension dimension) {
  return dimension == Dimension::kCompute ? both.compute : both.memory;
}

inline Charge AddSaturating(const Charge& left, const Charge& right) {
  return {AddSaturating(left.compute, right.compute), AddSaturating(left.memory, right.memory)};
}

// Of parts that each have a `charge`. Saturates.
template <typename Parts>
Charge TotalOf(const Parts& parts) {
  Charge total;
  for (const auto& part : parts) total = AddSaturating(total, part.charge);
  return total;
}

// A share of one device (0 to 1000 milli): compute as given, memory rounded up to a quantum. Memory
// that is just the share's own part of the card (a whole GPU, a fraction) is charged as that part
// exactly, so that two halves of a card with an odd MiB count are one GPU.
// `card` zero is a card of unknown size: its memory follows compute, and a share of memory alone is
// charged as the whole card's memory, since unknown is busy. More memory than the card has counts
// as all of it. Example: ChargeOfShare(MilliGpu::Of(0), 20480 MiB, 143771 MiB) -> {0, 2566642}.
Charge ChargeOfShare(MilliGpu share, Mebibytes taken, Mebibytes card);

// One MIG instance, by slices of compute and units of memory; its name has no say.
Charge ChargeOfMig(const MigBoard& board, const MigProfile& profile);

// One of n time-slicing replicas of a GPU, n >= 1; rounded down.
Charge ChargeOfReplica(int64_t n);

// One of n MPS replicas, n >= 1: the daemon grants each a whole percentage of the threads, 100 / n
// rounded down, and 1/n of the memory. Source: NVIDIA/k8s-device-plugin, MPS sharing.
Charge ChargeOfMpsReplica(int64_t n);

// Memory of a device and no word about compute, which then mirrors the memory.
Charge ChargeOfMemory(Mebibytes taken, Mebibytes card);

// What `of_all` of a device comes to where that is a part of a physical GPU; rounded down, so that
// the parts of one GPU come to no more than it.
Charge ChargeOfPart(const Charge& of_all, const GpuPart& part);

// The GPUs a set is worth, in quanta. Taken of a sum, never summed: 4g + 3g is one GPU only if the
// dimensions are added up first.
int64_t GpuEquivalents(const Charge& sum);

// Quanta as milli-GPUs for people, rounded up. `quanta` >= 0.
MilliGpu MilliGpuRoundedUp(int64_t quanta);

}  // namespace tranche
