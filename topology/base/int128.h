// Integers of 128 bits: exact products of two 64-bit amounts, to be compared, summed or divided.
//
// They are the compiler's own and not absl::int128: the packaged Abseil (20220623) multiplies and
// divides only at run time, while the constants of budgets and of fading usage are computed by the
// compiler, and the checked arithmetic that reads an amount from text knows built-in integers only.
// Constant cost.
#pragma once

#include <cstdint>

namespace tranche {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

// Quotient rounded down. Requires: divisor > 0.
constexpr Int128 FloorDiv(Int128 value, Int128 divisor) {
  const Int128 quotient = value / divisor;
  return quotient - (quotient * divisor > value ? 1 : 0);
}

// left * right / divisor, exact before it is rounded down or up.
// Requires: divisor > 0, and a quotient within int64.
constexpr int64_t MulDivFloor(int64_t left, int64_t right, int64_t divisor) {
  return static_cast<int64_t>(FloorDiv(Int128{left} * right, divisor));
}
constexpr int64_t MulDivCeil(int64_t left, int64_t right, int64_t divisor) {
  return static_cast<int64_t>(-FloorDiv(-(Int128{left} * right), divisor));
}

}  // namespace tranche
