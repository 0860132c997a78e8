#include "quota/preemption/lost_work.h"

#include <algorithm>
#include <limits>

#include "topology/base/check.h"
#include "topology/base/int128.h"

namespace tranche {
namespace {

constexpr int kMostDoublings = 3;

}  // namespace

void CheckpointAges::Add(const std::string& workload_class, Millis age) {
  TRANCHE_CHECK_GE(age, Millis(0));
  auto& [sorted, ages] = ages_[workload_class];
  sorted = false;
  ages.push_back(age);
}

std::optional<Millis> CheckpointAges::Percentile(const std::string& workload_class,
                                                 int percentile) const {
  const auto found = ages_.find(workload_class);
  if (found == ages_.end()) return std::nullopt;
  auto& [sorted, ages] = found->second;
  if (!sorted) std::sort(ages.begin(), ages.end());
  sorted = true;
  const auto share = static_cast<std::size_t>(std::clamp(percentile, 1, 100));
  return ages[(ages.size() * share + 99) / 100 - 1];
}

Millis LostRuntime(const WorkAtRisk& work, std::optional<Millis> assumed, Instant now) {
  if (!work.running || now <= *work.running) return Millis(0);
  const Millis runtime = now - *work.running;
  const Millis most = std::min(runtime, work.cap);
  if (work.checkpoint && *work.checkpoint >= *work.running) {
    return std::min(most, now - std::min(*work.checkpoint, now));
  }
  return std::min(most, assumed.value_or(runtime));
}

int64_t LostGpuMillis(const WorkAtRisk& work, std::optional<Millis> assumed, Instant now) {
  const Millis lost = work.relocatable ? Millis(0) : LostRuntime(work, assumed, now);
  const Int128 time = Int128{lost.count()} + work.restart_overhead.count();
  // Rounded up: a sliver of a card is not free. The sum is below 2^64, so the product fits.
  const Int128 gpu_millis =
      (GpuEquivalents(work.charge) * time + kQuantaPerGpu - 1) / kQuantaPerGpu;
  const Int128 scaled = gpu_millis << std::clamp(work.earlier_evictions, 0, kMostDoublings);
  return static_cast<int64_t>(std::min<Int128>(scaled, std::numeric_limits<int64_t>::max()));
}

}  // namespace tranche
