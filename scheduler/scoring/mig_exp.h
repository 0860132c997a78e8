// Powers and logarithms of two in fixed point, for tables that every machine must find alike.
//
// Integers only; errors stay below 2e-6 of the result (powers) and 4e-6 (logarithms).
#pragma once

#include <cstdint>

namespace tranche {

// 24 fractional bits.
inline constexpr int kFixedBits = 24;
inline constexpr int64_t kFixedOne = int64_t{1} << kFixedBits;
// Powers have 30.
inline constexpr int kPowerBits = 30;
inline constexpr int64_t kPowerOne = int64_t{1} << kPowerBits;

// 2^-x for x >= 0 (24 bits), with 30 bits; 0 from x = 30 on.
int64_t PowerOfHalf(int64_t x);
// log2(z) for z >= 1 (30 bits), with 24 bits.
int64_t Log2(int64_t z);

}  // namespace tranche
