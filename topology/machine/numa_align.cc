#include "topology/machine/numa_align.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>
#include <vector>

namespace tranche {
namespace {

constexpr std::size_t kMostKubeletZones = 8;
constexpr bool kOneZone = true;

using Zones = unsigned;  // a bit a zone

// Of one zone and one resource.
struct Stock {
  int64_t capacity = 0;
  int64_t free = 0;
  int64_t lent = 0;  // held by init containers of the pod; the next one takes these first
};

Stock SumOf(const std::vector<Stock>& stocks, Zones zones) {
  Stock sum;
  for (Zones rest = zones; rest != 0; rest &= rest - 1) {
    const Stock& stock = stocks[static_cast<std::size_t>(std::countr_zero(rest))];
    sum.capacity += stock.capacity;
    sum.free += stock.free;
    sum.lent += stock.lent;
  }
  return sum;
}

// The hints that count of one resource: zones with enough of it free, and all that is lent, that
// are as few as could ever hold so much. What is not asked for is content with any zones.
class Preferred {
 public:
  Preferred(std::vector<Stock> stocks, int64_t need)
      : stocks_(std::move(stocks)), need_(need), fewest_(static_cast<int>(stocks_.size())) {
    const Zones all = (Zones{1} << stocks_.size()) - 1;
    lent_ = SumOf(stocks_, all).lent;
    for (Zones zones = 1; zones <= all; ++zones) {
      if (SumOf(stocks_, zones).capacity >= need) {
        fewest_ = std::min(fewest_, std::popcount(zones));
      }
    }
  }
  bool Has(Zones zones) const {
    if (need_ == 0) return true;
    if (std::popcount(zones) != fewest_) return false;
    const Stock sum = SumOf(stocks_, zones);
    return sum.lent == lent_ && sum.free + sum.lent >= need_;
  }

 private:
  std::vector<Stock> stocks_;
  int64_t need_;
  int64_t lent_ = 0;
  int fewest_;
};

// A merged hint is preferred only if all providers name the same zones; of those the kubelet takes
// the one whose zones have the lowest numbers. 0: none, the pod is refused.
Zones FindZones(bool one_zone, const std::vector<Stock>& gpus, const std::vector<Stock>& cpus,
                const AlignedNeed& need) {
  const Preferred for_gpus(gpus, need.gpus);
  const Preferred for_cpus(cpus, need.cpus.count());
  for (Zones common = 1; common < Zones{1} << gpus.size(); ++common) {
    if (one_zone && std::popcount(common) > 1) continue;
    if (for_gpus.Has(common) && for_cpus.Has(common)) return common;
  }
  return 0;
}

// The zones of a node that matter to what may be asked there.
class Node {
 public:
  Node(NumaPolicy policy, std::span<const ZoneRoom> zones, bool asks_cpus) {
    const bool shows_cpus = std::any_of(zones.begin(), zones.end(), [](const ZoneRoom& zone) {
      return zone.cpus_capacity > MilliCpu();
    });
    knows_cpus_ = asks_cpus && shows_cpus;
    for (const ZoneRoom& zone : zones) {
      knows_gpus_ |= zone.gpus_capacity > 0;
      if (zone.gpus_capacity == 0 && (!knows_cpus_ || zone.cpus_capacity == MilliCpu())) continue;
      gpus_.push_back({zone.gpus_capacity, zone.gpus_free, 0});
      cpus_.push_back({zone.cpus_capacity.count(), zone.cpus_free.count(), 0});
    }
    one_zone_ = policy == NumaPolicy::kSingleNode || gpus_.size() > kMostKubeletZones;
  }
  const std::vector<Stock>& gpus() const { return gpus_; }

  // The need without what the kubelet does not align.
  AlignedNeed Aligned(const AlignedNeed& need) const {
    return {knows_gpus_ ? need.gpus : 0, knows_cpus_ ? need.cpus : MilliCpu()};
  }
  // The zones that a container is given GPUs and CPUs of, ascending; empty: it is refused.
  // Requires: need is aligned and asks for something.
  std::vector<std::size_t> Find(const std::vector<Stock>& gpus, const AlignedNeed& need) const {
    std::vector<std::size_t> found;
    if (gpus.size() <= kMostKubeletZones) {
      for (Zones rest = FindZones(one_zone_, gpus, cpus_, need); rest != 0; rest &= rest - 1) {
        found.push_back(static_cast<std::size_t>(std::countr_zero(rest)));
      }
      return found;
    }
    for (std::size_t i = 0; i < gpus.size() && found.empty(); ++i) {
      const bool lent_elsewhere = need.gpus > 0 && LentBeside(gpus, i) > 0;
      if (!lent_elsewhere && FindZones(kOneZone, {gpus[i]}, {cpus_[i]}, need) != 0) found = {i};
    }
    return found;
  }

 private:
  static int64_t LentBeside(const std::vector<Stock>& gpus, std::size_t zone) {
    int64_t lent = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i) lent += i == zone ? 0 : gpus[i].lent;
    return lent;
  }

  std::vector<Stock> gpus_, cpus_;
  bool knows_gpus_ = false;
  bool knows_cpus_ = false;
  bool one_zone_ = false;
};

// Containers one after another. Which GPUs of several zones the device plugin gives is its own
// choice, and which of the lent ones come first is chance: all ways are gone.
class Admission {
 public:
  Admission(const Node& node, std::span<const AlignedTurn> turns) : node_(node), turns_(turns) {}

  // False too where the ways are more than can be looked at.
  bool AdmitsFrom(std::size_t turn, const std::vector<Stock>& gpus) {
    while (turn < turns_.size() && AsksNothing(node_.Aligned(turns_[turn].need))) ++turn;
    if (turn == turns_.size() || !MarkSeen(turn, gpus)) return true;
    if (seen_.size() > kMostWays) return false;
    const AlignedNeed need = node_.Aligned(turns_[turn].need);
    const std::vector<std::size_t> zones = node_.Find(gpus, need);
    if (zones.empty()) return false;
    if (turn + 1 == turns_.size()) return true;
    int64_t lent = 0;
    for (const Stock& stock : gpus) lent += stock.lent;
    std::vector<Stock> after = gpus;
    const int64_t again = std::min(lent, need.gpus);
    return Take(turn, zones, 0, {again, need.gpus - again}, after);
  }

 private:
  struct Rest {
    int64_t lent = 0, free = 0;  // still to be taken
  };

  static bool AsksNothing(const AlignedNeed& need) {
    return need.gpus == 0 && need.cpus == MilliCpu();
  }
  // False: it was there before, and all that follows from it was admitted, or is being looked at.
  bool MarkSeen(std::size_t turn, const std::vector<Stock>& gpus) {
    std::vector<int64_t> key = {static_cast<int64_t>(turn)};
    for (const Stock& stock : gpus) key.insert(key.end(), {stock.free, stock.lent});
    return seen_.insert(std::move(key)).second;
  }

  // Takes the rest of zones[at] and those after it in every way.
  bool Take(std::size_t turn, const std::vector<std::size_t>& zones, std::size_t at, Rest rest,
            std::vector<Stock>& gpus) {
    if (at == zones.size()) {
      return rest.lent > 0 || rest.free > 0 || AdmitsFrom(turn + 1, gpus);
    }
    Stock& stock = gpus[zones[at]];
    const Stock before = stock;
    bool admits = true;
    for (int64_t lent = 0; lent <= std::min(rest.lent, before.lent) && admits; ++lent) {
      for (int64_t free = 0; free <= std::min(rest.free, before.free) && admits; ++free) {
        stock.free = before.free - free;
        stock.lent = turns_[turn].lends ? before.lent + free : before.lent - lent;
        admits = Take(turn, zones, at + 1, {rest.lent - lent, rest.free - free}, gpus);
      }
    }
    stock = before;
    return admits;
  }

  static constexpr std::size_t kMostWays = 256;
  const Node& node_;
  std::span<const AlignedTurn> turns_;
  std::set<std::vector<int64_t>> seen_;
};

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

bool KubeletAdmits(NumaPolicy policy, std::span<const ZoneRoom> zones,
                   std::span<const AlignedTurn> turns) {
  if (policy == NumaPolicy::kNone || policy == NumaPolicy::kBestEffort) return true;
  const bool asks_cpus = std::any_of(turns.begin(), turns.end(), [](const AlignedTurn& turn) {
    return turn.need.cpus > MilliCpu();
  });
  const Node node(policy, zones, asks_cpus);
  return Admission(node, turns).AdmitsFrom(0, node.gpus());
}

bool KubeletAdmits(NumaPolicy policy, std::span<const ZoneRoom> zones, const AlignedNeed& need) {
  const AlignedTurn turn = {need, false};
  return KubeletAdmits(policy, zones, {&turn, 1});
}

}  // namespace tranche
