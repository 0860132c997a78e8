#include "scheduler/scoring/mig_exp.h"

#include <array>
#include <bit>
#include <cstddef>

namespace tranche {
namespace {

constexpr int kTableBits = 8;
constexpr std::size_t kTableSize = std::size_t{1} << kTableBits;
using Table = std::array<int64_t, kTableSize + 1>;

constexpr int64_t RootOf(int64_t square) {
  int64_t root = 0;
  for (int64_t bit = int64_t{1} << 31; bit > 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= square) root += bit;
  }
  return root;
}

// 2^-(i/256) with 30 bits: products of the roots 2^-1/2, 2^-1/4, ... that the bits of i name.
constexpr Table MakePowers() {
  std::array<int64_t, kTableBits> roots = {};
  int64_t last = kPowerOne / 2;
  for (int64_t& root : roots) last = root = RootOf(last << kPowerBits);
  Table table = {};
  for (std::size_t i = 0; i < kTableSize; ++i) {
    table[i] = kPowerOne;
    for (std::size_t bit = 0; bit < kTableBits; ++bit) {
      if ((i >> (kTableBits - 1 - bit) & 1) != 0) table[i] = table[i] * roots[bit] >> kPowerBits;
    }
  }
  table[kTableSize] = kPowerOne / 2;
  return table;
}

// log2(1 + i/256) with 24 bits, one bit for each squaring.
constexpr Table MakeLogarithms() {
  Table table = {};
  for (std::size_t i = 0; i < kTableSize; ++i) {
    int64_t x = kPowerOne + static_cast<int64_t>(i << (kPowerBits - kTableBits));
    for (int bit = 0; bit < kFixedBits; ++bit) {
      x = x * x >> kPowerBits;
      table[i] = table[i] * 2 + (x >= 2 * kPowerOne);
      if (x >= 2 * kPowerOne) x /= 2;
    }
  }
  table[kTableSize] = kFixedOne;
  return table;
}

constexpr Table kPowers = MakePowers();
constexpr Table kLogarithms = MakeLogarithms();

// Between two entries; `fraction` has `bits` bits, of which the upper ones are the index.
int64_t Interpolate(const Table& table, int64_t fraction, int bits) {
  const int low = bits - kTableBits;
  const auto index = static_cast<std::size_t>(fraction >> low);
  const int64_t rest = fraction & ((int64_t{1} << low) - 1);
  return table[index] + ((table[index + 1] - table[index]) * rest >> low);
}

}  // namespace

int64_t PowerOfHalf(int64_t x) {
  const int64_t halvings = x >> kFixedBits;
  if (halvings >= kPowerBits) return 0;
  return Interpolate(kPowers, x & (kFixedOne - 1), kFixedBits) >> halvings;
}

int64_t Log2(int64_t z) {
  const int whole = static_cast<int>(std::bit_width(static_cast<uint64_t>(z))) - 1 - kPowerBits;
  const int64_t mantissa = z >> whole;  // 1 <= mantissa < 2, with 30 bits
  return whole * kFixedOne + Interpolate(kLogarithms, mantissa - kPowerOne, kPowerBits);
}

}  // namespace tranche
