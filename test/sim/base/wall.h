// The wall clock of the world, as the API server's is: right, where the clocks of the replicas may
// not be.
//
// Pure functions.
#pragma once

#include <chrono>

#include "test/sim/base/loop.h"

namespace tranche::sim {

using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

// A Monday, so that budgets by the week end at a known distance.
inline constexpr WallTime kWorldBegan =
    std::chrono::sys_days(std::chrono::year(2026) / std::chrono::March / 2);

constexpr WallTime WallOf(SimTime since_begin) { return kWorldBegan + since_begin; }

}  // namespace tranche::sim
