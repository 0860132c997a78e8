#include "scheduler/scoring/normal.h"

#include <algorithm>
#include <array>

namespace tranche {
namespace {

constexpr int kStepsPerDeviation = 16;
constexpr int kFarthest = 4 * kStepsPerDeviation;
// The nearest integer to 256 Phi(i / 16 - 4).
constexpr std::array<int16_t, 2 * kFarthest + 1> kPhi = {
    0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   1,
    1,   1,   1,   1,   1,   2,   2,   2,   3,   3,   4,   4,   5,   6,   7,   8,   9,   10,  12,
    13,  15,  17,  19,  22,  24,  27,  30,  33,  37,  41,  45,  49,  53,  58,  63,  68,  73,  79,
    85,  91,  97,  103, 109, 115, 122, 128, 134, 141, 147, 153, 159, 165, 171, 177, 183, 188, 193,
    198, 203, 207, 211, 215, 219, 223, 226, 229, 232, 234, 237, 239, 241, 243, 244, 246, 247, 248,
    249, 250, 251, 252, 252, 253, 253, 254, 254, 254, 255, 255, 255, 255, 255, 255, 256, 256, 256,
    256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256};
static_assert(kPhi.front() == 0 && kPhi[kFarthest] == kCertain / 2 && kPhi.back() == kCertain);

}  // namespace

int64_t IntSqrt(Int128 value) {
  int64_t root = 0;
  for (int bit = 62; bit >= 0; --bit) {
    const int64_t next = root | int64_t{1} << bit;
    if (Int128{next} * next <= value) root = next;
  }
  return root;
}

int64_t Chance(Int128 excess, Int128 variance) {
  // Far tails first: they need no root, and what is left cannot overflow.
  if (excess <= 0 && excess * excess >= variance * 16) return kPhi.front();
  if (excess >= 0 && excess * excess >= variance * 16) return kPhi.back();
  constexpr int kRootBits = 8;
  const Int128 root = IntSqrt(variance << (2 * kRootBits));
  const Int128 step = FloorDiv((excess * kStepsPerDeviation) << kRootBits, root);
  const auto at = std::clamp<int64_t>(static_cast<int64_t>(step) + kFarthest, 0, 2 * kFarthest);
  return kPhi[static_cast<std::size_t>(at)];
}

}  // namespace tranche
