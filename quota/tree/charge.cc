#include "quota/tree/charge.h"

#include <algorithm>

#include "topology/base/check.h"
#include "topology/base/int128.h"

namespace tranche {
namespace {

constexpr bool DividesEvenly() {
  for (int parts = 1; parts <= 16; ++parts) {
    if (kQuantaPerGpu % parts != 0) return false;
  }
  return kQuantaPerGpu % 1000 == 0;
}
static_assert(DividesEvenly());

int64_t MemoryQuanta(int64_t milli, int64_t taken, int64_t card) {
  if (card <= 0) return milli > 0 ? milli * kQuantaPerMilli : kQuantaPerGpu;
  taken = std::clamp<int64_t>(taken, 0, card);
  if (taken == MulDivFloor(card, milli, kWholeGpu.count())) {
    return milli * kQuantaPerMilli;
  }
  return MulDivCeil(kQuantaPerGpu, taken, card);
}

}  // namespace

Charge ChargeOfShare(MilliGpu share, Mebibytes taken, Mebibytes card) {
  const int64_t milli = share.count();
  TRANCHE_CHECK_GE(milli, 0);
  TRANCHE_CHECK_LE(milli, kWholeGpu.count());
  return {milli * kQuantaPerMilli, MemoryQuanta(milli, taken.count(), card.count())};
}

Charge ChargeOfMig(const MigBoard& board, const MigProfile& profile) {
  return {kQuantaPerGpu * profile.compute_slices / board.compute_slices,
          kQuantaPerGpu * profile.size / board.units};
}

Charge ChargeOfReplica(int64_t n) {
  TRANCHE_CHECK_GE(n, 1);
  return {kQuantaPerGpu / n, kQuantaPerGpu / n};
}

Charge ChargeOfMpsReplica(int64_t n) {
  TRANCHE_CHECK_GE(n, 1);
  return {kQuantaPerGpu / 100 * (100 / n), kQuantaPerGpu / n};
}

Charge ChargeOfMemory(Mebibytes taken, Mebibytes card) {
  const int64_t memory = ChargeOfShare(MilliGpu::Zero(), taken, card).memory;
  return {memory, memory};
}

Charge ChargeOfPart(const Charge& of_all, const GpuPart& part) {
  if (part.is_whole()) return of_all;
  return {MulDivFloor(of_all.compute, part.compute, part.compute_of),
          MulDivFloor(of_all.memory, part.memory, part.memory_of)};
}

int64_t GpuEquivalents(const Charge& sum) { return std::max(sum.compute, sum.memory); }

MilliGpu MilliGpuRoundedUp(int64_t quanta) {
  TRANCHE_CHECK_GE(quanta, 0);
  return MilliGpu::Of(quanta / kQuantaPerMilli + (quanta % kQuantaPerMilli != 0 ? 1 : 0));
}

}  // namespace tranche
