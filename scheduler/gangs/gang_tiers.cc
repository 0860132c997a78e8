#include "scheduler/gangs/gang_tiers.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace tranche {

GangTiers::GangTiers(const std::vector<GangNode>& nodes) {
  group_[0].resize(nodes.size());
  std::iota(group_[0].begin(), group_[0].end(), 0);
  groups_[0] = static_cast<int>(nodes.size());
  // Domains come before groups taken over from below.
  constexpr int64_t kFromBelow = int64_t{1} << 32;
  std::vector<int64_t> keys(nodes.size());
  for (std::size_t tier = 1; tier < kGangTiers; ++tier) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const int domain = nodes[i].domain[tier - 1];
      keys[i] = domain == kNoDomain ? kFromBelow + group_[tier - 1][i] : domain;
    }
    std::vector<int64_t> known = keys;
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    groups_[tier] = static_cast<int>(known.size());
    for (const int64_t key : keys) {
      group_[tier].push_back(
          static_cast<int>(std::lower_bound(known.begin(), known.end(), key) - known.begin()));
    }
  }
  group_[kClusterTier].assign(nodes.size(), 0);
  groups_[kClusterTier] = 1;
}

}  // namespace tranche
