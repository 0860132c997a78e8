// An amount of a device's capacity or of a shared counter: bytes, processors, shares.
//
// Kept in thousandths, which holds every whole amount up to 9,223 trillion (8 PiB of memory), far
// beyond one device; what a slice or claim states beyond is refused where it is read. Sums saturate
// there, so that no object can stop the process. Plain value; any thread; constant cost.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tranche::dra {

class Quantity {
 public:
  constexpr Quantity() = default;
  static constexpr Quantity Milli(int64_t thousandths) { return Quantity(thousandths); }
  static constexpr Quantity Whole(int64_t count) { return Quantity(0).Add(count, 1000); }

  constexpr int64_t milli() const { return milli_; }
  // Rounded up, as Kubernetes' Quantity.Value.
  constexpr int64_t whole() const {
    return milli_ / 1000 + (milli_ > 0 && milli_ % 1000 != 0 ? 1 : 0);
  }
  constexpr bool is_whole() const { return milli_ % 1000 == 0; }

  friend constexpr Quantity operator+(Quantity left, Quantity right) {
    return left.Add(right.milli_, 1);
  }
  friend constexpr Quantity operator-(Quantity left, Quantity right) {
    return left.Add(right.milli_, -1);
  }
  friend constexpr auto operator<=>(Quantity left, Quantity right) = default;

 private:
  constexpr explicit Quantity(int64_t milli) : milli_(milli) {}
  // Both ends are symmetric, so that the negation of an amount is one.
  constexpr Quantity Add(int64_t count, int64_t times) const {
    int64_t product = 0;
    int64_t sum = 0;
    if (__builtin_mul_overflow(count, times, &product) ||
        __builtin_add_overflow(milli_, product, &sum)) {
      const bool up = (count < 0) == (times < 0);
      return Quantity(up ? INT64_MAX : -INT64_MAX);
    }
    return Quantity(std::max(sum, -INT64_MAX));
  }

  int64_t milli_ = 0;
};

// "40Gi", "100m", "7". nullopt: no quantity, or beyond what is held.
std::optional<Quantity> ParseQuantity(std::string_view text);

}  // namespace tranche::dra
