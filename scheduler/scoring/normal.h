// The chance that a normal variable is below a value, in integers: what turns "demand is so many
// standard deviations above what is left" into a price.
#pragma once

#include <cstdint>

namespace tranche {

__extension__ using Int128 = __int128;

// Chances are in 256ths.
inline constexpr int64_t kCertain = 256;

// Floor of the square root; of a negative value 0.
int64_t IntSqrt(Int128 value);
// Quotient rounded down. Requires: divisor > 0.
Int128 FloorDiv(Int128 value, Int128 divisor);
// 256 Phi(excess / sqrt(variance)), the argument taken down to a multiple of 1/16 within -4..4.
// Requires: variance > 0.
int64_t Chance(Int128 excess, Int128 variance);

}  // namespace tranche
