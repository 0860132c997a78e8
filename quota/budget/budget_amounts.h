// Amounts of GPU time: exact 128-bit integers per dimension.
//
// Unit: quanta x milliseconds x weight (weight = model rate x class factor, in millionths). Pure
// values; any thread; constant cost.
//
// Nothing overflows: a million GPUs (1.8e13 quanta) at the largest rate and factor (1,000,000 each,
// a weight of 1e12) over thirteen months (3.5e10 ms) are 6.4e35, and an Int128 holds 1.7e38.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "quota/tree/charge.h"
#include "topology/base/int128.h"
#include "topology/base/units.h"

namespace tranche {

inline constexpr int64_t kUnitWeight = 1'000'000;  // rate 1.000 x factor 1.000, thousandths each
// One GPU for one hour at rate 1.
inline constexpr Int128 kGpuHour = Int128{kQuantaPerGpu} * 3'600'000 * kUnitWeight;

// Also used for the speed at which time is consumed: quanta x weight, that is, GpuTime per ms.
struct GpuTime {
  Int128 compute = 0;
  Int128 memory = 0;

  GpuTime& operator+=(const GpuTime& other) {
    compute += other.compute;
    memory += other.memory;
    return *this;
  }
  GpuTime& operator-=(const GpuTime& other) {
    compute -= other.compute;
    memory -= other.memory;
    return *this;
  }
  friend GpuTime operator+(GpuTime left, const GpuTime& right) { return left += right; }
  friend GpuTime operator-(GpuTime left, const GpuTime& right) { return left -= right; }
  friend GpuTime operator-(const GpuTime& amount) { return GpuTime{} - amount; }
  friend GpuTime operator*(const GpuTime& rate, Millis time) {
    return {rate.compute * time.count(), rate.memory * time.count()};
  }
  friend bool operator==(const GpuTime&, const GpuTime&) = default;
};

inline Int128 Larger(const GpuTime& time) {
  return time.compute > time.memory ? time.compute : time.memory;
}

// What a charge consumes per millisecond.
inline GpuTime RateOf(const Charge& charge, int64_t weight) {
  return {Int128{charge.compute} * weight, Int128{charge.memory} * weight};
}

// As people read it: GPU-hours with three decimals, rounded half away from zero.
std::string FormatGpuHours(Int128 amount);
// As machines do: every digit.
std::string FormatInt128(Int128 value);
// Decimal, an optional '-' first; nullopt for anything else and for what does not fit.
std::optional<Int128> ParseInt128(std::string_view text);

}  // namespace tranche
