// The units every decision is made in: signed 64-bit integers that cannot be mixed up.
//
// Values are built by unit-named factories and leave only through count(). Sums that would leave
// int64 stop the process: inputs are bounded where they enter (wire), far below that.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

#include "topology/base/check.h"

namespace tranche {

template <typename Tag>
class [[nodiscard]] Unit {
 public:
  constexpr Unit() = default;
  static constexpr Unit Of(int64_t count) { return Unit(count); }
  static constexpr Unit Zero() { return Unit(0); }

  constexpr int64_t count() const { return count_; }

  constexpr Unit& operator+=(Unit other) {
    TRANCHE_CHECK(!__builtin_add_overflow(count_, other.count_, &count_));
    return *this;
  }
  constexpr Unit& operator-=(Unit other) {
    TRANCHE_CHECK(!__builtin_sub_overflow(count_, other.count_, &count_));
    return *this;
  }
  friend constexpr Unit operator+(Unit left, Unit right) { return left += right; }
  friend constexpr Unit operator-(Unit left, Unit right) { return left -= right; }
  friend constexpr Unit operator*(Unit left, int64_t times) {
    int64_t product = 0;
    TRANCHE_CHECK(!__builtin_mul_overflow(left.count_, times, &product));
    return Unit(product);
  }
  friend constexpr auto operator<=>(Unit left, Unit right) = default;

 private:
  constexpr explicit Unit(int64_t count) : count_(count) {}
  int64_t count_ = 0;
};

// 1000 MilliGpu is the compute of one whole GPU.
using MilliGpu = Unit<struct MilliGpuTag>;
// 2^20 bytes of device memory.
using Mebibytes = Unit<struct MebibytesTag>;

// 1000 MilliCpu is one CPU of a node.
using MilliCpu = Unit<struct MilliCpuTag>;

inline constexpr MilliGpu kWholeGpu = MilliGpu::Of(1000);

// Points in time enter the core as values; the core never reads a clock.
using Millis = std::chrono::milliseconds;
using Instant = std::chrono::sys_time<Millis>;

}  // namespace tranche
