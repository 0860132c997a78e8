#include "quota/preemption/reclaim_candidates.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "quota/preemption/reclaim_cost.h"
#include "quota/preemption/reclaim_search.h"

namespace tranche {
namespace {

std::vector<int64_t> KindKey(const ReclaimRegion& region) {
  std::vector<int64_t> key{static_cast<int64_t>(region.marks.state), region.marks.in_model,
                           region.marks.in_any};
  for (const LineCharge& part : region.parts) {
    key.insert(key.end(), {part.line.number(), part.charge.compute, part.charge.memory});
  }
  return key;
}

// Whatever else takes part in the counting of pods has to be looked at one by one.
bool StandsAlone(const VictimUnit& unit) {
  return unit.spare_of || unit.whole_of ||
         std::ranges::any_of(unit.pods, [](const VictimPod& pod) { return !pod.budgets.empty(); });
}

bool AreAlike(const VictimUnit& left, const VictimUnit& right) {
  const auto likeness = [](const VictimUnit& unit) {
    return std::tuple(unit.leaf, unit.rank, unit.own_rank_protected, unit.marks.state,
                      unit.marks.in_model, unit.marks.in_any, unit.breaks, unit.pods.size(),
                      unit.held.has_value());
  };
  return likeness(left) == likeness(right) && left.parts == right.parts;
}

// Equal for units that are alike.
uint64_t LikenessHash(const VictimUnit& unit) {
  uint64_t hash = 0;
  const auto mix = [&hash](int64_t value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 32;
  };
  mix(unit.leaf);
  mix(unit.rank);
  mix(static_cast<int64_t>(unit.pods.size()));
  for (const LineCharge& part : unit.parts) {
    mix(part.line);
    mix(part.charge.compute);
    mix(part.charge.memory);
  }
  return hash;
}

// How many units of this charge cover the needs; 0: it gives nothing that is needed.
std::size_t EnoughOf(const VictimUnit& unit, const std::vector<LineCharge>& needs) {
  int64_t enough = 0;
  const auto cover = [&](int64_t need, int64_t charge) {
    if (need > 0 && charge > 0) enough = std::max(enough, (need - 1) / charge + 1);
  };
  for (const LineCharge& need : needs) {
    Charge charge;
    for (const LineCharge& part : unit.parts) {
      if (need.line == kAnyLine || part.line == need.line) {
        charge = AddSaturating(charge, part.charge);
      }
    }
    cover(need.charge.compute, charge.compute);
    cover(need.charge.memory, charge.memory);
  }
  return static_cast<std::size_t>(enough);
}

}  // namespace

ReclaimCandidates::ReclaimCandidates(const ReclaimProblem& problem, ReclaimRules& rules)
    : problem_(problem), rules_(rules), holders_(problem.regions.size()) {
  FindKinds();
  for (std::size_t i = 0; i < problem.units.size(); ++i) {
    for (const VictimPod& pod : problem.units[i].pods) {
      if (!pod.region || *pod.region >= holders_.size()) continue;
      std::vector<int>& units = holders_[*pod.region];
      if (units.empty() || units.back() != static_cast<int>(i)) {
        units.push_back(static_cast<int>(i));
      }
    }
  }
}

void ReclaimCandidates::FindKinds() {
  std::map<std::vector<int64_t>, std::size_t> kinds;
  for (std::size_t region = 0; region < problem_.regions.size(); ++region) {
    const auto [at, added] = kinds.emplace(KindKey(problem_.regions[region]), kinds_.size());
    if (added) kinds_.emplace_back().region = region;
    kind_of_.push_back(at->second);
  }
}

void ReclaimCandidates::Start(const ReclaimRules::Step& step) {
  step_ = step;
  for (Kind& kind : kinds_) kind.ready = false;
}

ReclaimCandidates::Kind& ReclaimCandidates::Ready(std::size_t region) {
  Kind& kind = kinds_[kind_of_[region]];
  if (kind.ready) return kind;
  kind.ready = true;
  rules_.Candidates(step_, kind.region, scratch_);
  kind.candidate.assign(problem_.units.size(), 0);
  for (const int unit : scratch_) kind.candidate[static_cast<std::size_t>(unit)] = 1;
  kind.possible = !scratch_.empty() && rules_.Admits(kind.region, scratch_);
  kind.pools.clear();
  kind.outside = 0;
  kind.cut = false;
  if (kind.possible) FillPools(kind);
  return kind;
}

bool ReclaimCandidates::Possible(std::size_t region) { return Ready(region).possible; }

void ReclaimCandidates::FindAlike() {
  std::unordered_multimap<uint64_t, std::size_t> known;  // by hash, places in alike_
  known.reserve(problem_.units.size());
  for (std::size_t i = 0; i < problem_.units.size(); ++i) {
    const VictimUnit& unit = problem_.units[i];
    std::size_t place = alike_.size();
    if (!StandsAlone(unit)) {
      const uint64_t hash = LikenessHash(unit);
      const auto [begin, end] = known.equal_range(hash);
      const auto at = std::find_if(begin, end, [&](const auto& entry) {
        return AreAlike(unit, UnitAt(alike_[entry.second].units.front()));
      });
      if (at != end) {
        place = at->second;
      } else {
        known.emplace(hash, place);
      }
    }
    if (place == alike_.size()) alike_.emplace_back();
    alike_[place].units.push_back(static_cast<int>(i));
  }
}

const std::vector<int>& ReclaimCandidates::CheapestFirst(std::size_t alike) {
  auto& [units, sorted] = alike_[alike];
  if (!sorted) {
    std::ranges::sort(units, [&](int left, int right) {
      const VictimUnit& a = UnitAt(left);
      const VictimUnit& b = UnitAt(right);
      return std::tie(a.lost_gpu_ms, b.start, a.key) < std::tie(b.lost_gpu_ms, a.start, b.key);
    });
    sorted = true;
  }
  return units;
}

void ReclaimCandidates::FillPools(Kind& kind) {
  const std::vector<LineCharge> needs = rules_.Needs(step_, kind.region);
  if (needs.empty()) return;
  if (alike_.empty()) FindAlike();
  std::size_t all = 0;
  for (std::size_t alike = 0; alike < alike_.size(); ++alike) {
    const int first = alike_[alike].units.front();
    if (kind.candidate[static_cast<std::size_t>(first)] == 0) continue;
    const std::size_t enough = EnoughOf(UnitAt(first), needs);
    if (enough == 0 || !rules_.HelpsFromOutside(step_, kind.region, first)) continue;
    kind.pools.push_back({enough, alike});
    kind.outside += std::min(enough, alike_[alike].units.size());
    all += alike_[alike].units.size();
  }
  if (!step_.by_choice || all == kind.outside) return;
  // They are alike but for how those who stay are marked then.
  kind.cut = all > static_cast<std::size_t>(kExactUnits);
  if (kind.cut) return;
  for (Pool& pool : kind.pools) pool.enough = alike_[pool.alike].units.size();
  kind.outside = all;
}

void ReclaimCandidates::Holders(std::size_t region, bool fits, std::vector<int>& units) {
  const Kind& kind = Ready(region);
  units.clear();
  for (const int unit : holders_[region]) {
    if (kind.candidate[static_cast<std::size_t>(unit)] == 0) continue;
    if (!fits || CollateralOf(UnitAt(unit), region) > 0) units.push_back(unit);
  }
}

void ReclaimCandidates::AppendOutside(std::size_t region, const std::vector<int>& holders,
                                      std::vector<int>& units) {
  for (const Pool& pool : Ready(region).pools) {
    std::size_t taken = 0;
    for (const int unit : CheapestFirst(pool.alike)) {
      if (taken == pool.enough) break;
      if (std::ranges::binary_search(holders, unit)) continue;
      units.push_back(unit);
      ++taken;
    }
  }
}

}  // namespace tranche
