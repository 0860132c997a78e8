// The chance that a normal variable is below a value, in integers: what turns "demand is so many
// standard deviations above what is left" into a price.
#pragma once

#include <cstdint>

#include "topology/base/int128.h"

namespace tranche {

// Chances are in 256ths.
inline constexpr int64_t kCertain = 256;

// Floor of the square root; of a negative value 0.
int64_t IntSqrt(Int128 value);
// 256 Phi(excess / sqrt(variance)), the argument taken down to a multiple of 1/16 within -4..4.
// Requires: variance > 0.
int64_t Chance(Int128 excess, Int128 variance);

}  // namespace tranche
