// Which nodes lie together: tier 0 is the node alone, tiers 1 to 4 are the levels of GangLevel, 5
// is the whole cluster. At every tier each node is in one group: its domain of that level, or,
// where none is known, the group it is in one tier below. So what is known of narrow domains counts
// where wide ones have no labels.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "scheduler/gangs/gang_plan.h"

namespace tranche {

inline constexpr int kGangTiers = kGangLevels + 1;  // without the whole cluster
inline constexpr int kClusterTier = kGangTiers;
constexpr int TierOf(GangLevel level) { return static_cast<int>(level) + 1; }

class GangTiers {
 public:
  // Cost: a sort for each tier.
  explicit GangTiers(const std::vector<GangNode>& nodes);

  // Numbered from 0, in the order of the caller's numbers.
  int group(int tier, std::size_t node) const { return group_[At(tier)][node]; }
  int groups(int tier) const { return groups_[At(tier)]; }

 private:
  static std::size_t At(int tier) { return static_cast<std::size_t>(tier); }

  std::array<std::vector<int>, kGangTiers + 1> group_;  // by tier, node
  std::array<int, kGangTiers + 1> groups_ = {};
};

}  // namespace tranche
