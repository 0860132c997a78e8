// The ways to place a gang that the benchmark compares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/gang/cluster.h"

namespace tranche::bench {

// The node of each member; nullopt: they do not all fit. The cluster's trial is left as it is.
using GangPolicy =
    std::function<std::optional<std::vector<std::size_t>>(GangCluster& cluster, int members)>;

// "first-fit", "random", "binpack": member by member, the first node by number (numbers follow the
// tree, so this one knows the layout in a way), any, the fullest. "tranche": PlanGang. nullopt: no
// such policy.
std::optional<GangPolicy> MakeGangPolicy(const std::string& name, uint64_t seed);

}  // namespace tranche::bench
