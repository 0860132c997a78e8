#include "quota/budget/budget_amounts.h"

#include <fmt/format.h>

#include <algorithm>

namespace tranche {

std::string FormatGpuHours(Int128 amount) {
  constexpr Int128 kThousandth = kGpuHour / 1000;
  const Int128 size = amount < 0 ? -amount : amount;
  const Int128 rest = size % kThousandth;
  const Int128 thousandths = size / kThousandth + (rest >= kThousandth - rest ? 1 : 0);
  return fmt::format("{}{}.{:03}", amount < 0 && thousandths > 0 ? "-" : "",
                     static_cast<int64_t>(thousandths / 1000),
                     static_cast<int64_t>(thousandths % 1000));
}

std::string FormatInt128(Int128 value) {
  std::string digits;
  // Digits of a negative number are taken as they are: the smallest one has no positive.
  const int sign = value < 0 ? -1 : 1;
  do {
    digits += static_cast<char>('0' + sign * static_cast<int>(value % 10));
    value /= 10;
  } while (value != 0);
  if (sign < 0) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::optional<Int128> ParseInt128(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  Int128 value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    const int step = negative ? '0' - digit : digit - '0';
    if (__builtin_mul_overflow(value, Int128{10}, &value) ||
        __builtin_add_overflow(value, Int128{step}, &value)) {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace tranche
