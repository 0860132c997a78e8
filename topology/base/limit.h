// Sums that saturate, and what is allowed: an amount, or no limit.
//
// "No limit" is not a number: it allows every amount, stays what it is whatever is taken from it,
// and is above every amount where limits are compared. Plain values; any thread; constant cost.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>

namespace tranche {

// Where sums end. Far from the ends of the integers, so that a few may be added without a thought.
inline constexpr int64_t kSaturated = INT64_MAX / 4;

// Saturating at +-kSaturated: an amount at or beyond stays there and never wraps.
constexpr int64_t AddSaturating(int64_t left, int64_t right) {
  if (left >= kSaturated || right >= kSaturated) return kSaturated;
  if (left <= -kSaturated || right <= -kSaturated) return -kSaturated;
  return std::clamp(left + right, -kSaturated, kSaturated);
}

class Limit {
 public:
  constexpr Limit() = default;  // no limit
  // kSaturated and beyond: no limit, since a sum that got there lost count.
  constexpr Limit(int64_t amount) : amount_(std::clamp(amount, -kSaturated, kSaturated)) {}

  // nullopt: no limit.
  constexpr std::optional<int64_t> amount() const {
    return amount_ < kSaturated ? std::optional(amount_) : std::nullopt;
  }
  // For sums, which saturate where there is no limit.
  constexpr int64_t saturated() const { return amount_; }
  constexpr bool Allows(int64_t amount) const { return Limit(amount) <= *this; }
  constexpr Limit Minus(int64_t amount) const { return AddSaturating(amount_, -amount); }
  friend constexpr auto operator<=>(Limit left, Limit right) = default;

 private:
  int64_t amount_ = kSaturated;
};

}  // namespace tranche
