// 128-bit sums as two 64-bit columns, and times as days.
#pragma once

#include <cstdint>

#include "quota/budget/budget.h"

namespace tranche::ledger {

inline int64_t HighHalf(Int128 value) { return static_cast<int64_t>(value >> 64); }
inline int64_t LowHalf(Int128 value) { return static_cast<int64_t>(static_cast<uint64_t>(value)); }
inline Int128 FromHalves(int64_t high, int64_t low) {
  return (Int128{high} << 64) | static_cast<Int128>(static_cast<uint64_t>(low));
}

inline int64_t MillisOf(Instant at) { return at.time_since_epoch().count(); }
inline Instant At(int64_t millis) { return Instant(Millis(millis)); }

inline constexpr int64_t kDayMillis = 86'400'000;
// The start of the UTC day `millis` lies in; also before 1970.
inline int64_t DayStart(int64_t millis) {
  const int64_t into_day = ((millis % kDayMillis) + kDayMillis) % kDayMillis;
  return millis - into_day;
}

}  // namespace tranche::ledger
