#include "topology/machine/numa_align.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

namespace tranche {
namespace {

constexpr std::size_t kMostKubeletZones = 8;

using Zones = unsigned;  // a bit a zone

// What one zone has of one resource.
struct Stock {
  int64_t capacity = 0;
  int64_t free = 0;
};

Stock SumOf(const std::vector<Stock>& stocks, Zones zones) {
  Stock sum;
  for (Zones rest = zones; rest != 0; rest &= rest - 1) {
    const Stock& stock = stocks[static_cast<std::size_t>(std::countr_zero(rest))];
    sum.capacity += stock.capacity;
    sum.free += stock.free;
  }
  return sum;
}

// The hints that count of one resource: zones with enough of it free that are as few as could ever
// hold so much. What is not asked for is content with any zones.
class Preferred {
 public:
  Preferred(std::vector<Stock> stocks, int64_t need)
      : stocks_(std::move(stocks)), need_(need), fewest_(static_cast<int>(stocks_.size())) {
    for (Zones zones = 1; zones < Zones{1} << stocks_.size(); ++zones) {
      if (SumOf(stocks_, zones).capacity >= need) {
        fewest_ = std::min(fewest_, std::popcount(zones));
      }
    }
  }
  bool Has(Zones zones) const {
    return need_ == 0 || (std::popcount(zones) == fewest_ && SumOf(stocks_, zones).free >= need_);
  }

 private:
  std::vector<Stock> stocks_;
  int64_t need_;
  int fewest_;
};

bool FitsOneZone(std::span<const ZoneRoom> zones, const AlignedNeed& need) {
  return std::any_of(zones.begin(), zones.end(), [&](const ZoneRoom& zone) {
    return zone.gpus_free >= need.gpus && zone.cpus_free >= need.cpus;
  });
}

// A merged hint is preferred only if all providers name the same zones.
bool FitsPreferredZones(std::span<const ZoneRoom> zones, const AlignedNeed& need) {
  std::vector<Stock> gpus;
  std::vector<Stock> cpus;
  for (const ZoneRoom& zone : zones) {
    gpus.push_back({zone.gpus_capacity, zone.gpus_free});
    cpus.push_back({zone.cpus_capacity.count(), zone.cpus_free.count()});
  }
  const Preferred for_gpus(std::move(gpus), need.gpus);
  const Preferred for_cpus(std::move(cpus), need.cpus.count());
  for (Zones common = 1; common < Zones{1} << zones.size(); ++common) {
    if (for_gpus.Has(common) && for_cpus.Has(common)) return true;
  }
  return false;
}

}  // namespace

std::optional<NumaPolicy> ParseNumaPolicy(std::string_view name) {
  if (name == "none") return NumaPolicy::kNone;
  if (name == "best-effort") return NumaPolicy::kBestEffort;
  if (name == "restricted") return NumaPolicy::kRestricted;
  if (name == "single-numa-node") return NumaPolicy::kSingleNode;
  return std::nullopt;
}

std::optional<NumaScope> ParseNumaScope(std::string_view name) {
  if (name == "container") return NumaScope::kContainer;
  if (name == "pod") return NumaScope::kPod;
  return std::nullopt;
}

bool KubeletAdmits(NumaPolicy policy, std::span<const ZoneRoom> zones, const AlignedNeed& need) {
  if (policy == NumaPolicy::kNone || policy == NumaPolicy::kBestEffort) return true;
  const bool cpus_known = std::any_of(zones.begin(), zones.end(), [](const ZoneRoom& zone) {
    return zone.cpus_capacity > MilliCpu();
  });
  const AlignedNeed asked = {need.gpus, cpus_known ? need.cpus : MilliCpu()};
  if (asked.gpus == 0 && asked.cpus == MilliCpu()) return true;
  if (policy == NumaPolicy::kSingleNode || zones.size() > kMostKubeletZones) {
    return FitsOneZone(zones, asked);
  }
  return FitsPreferredZones(zones, asked);
}

}  // namespace tranche
