#include "topology/base/quantity.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"

namespace tranche {
namespace {

// A quantity taken apart: value = 0.d1 d2 d3... * 10^point * 2^shift, digits free of zeros at
// either end. No digits at all is zero.
struct Parts {
  bool negative = false;
  std::string digits;
  int64_t point = 0;
  int shift = 0;
};

struct Suffix {
  std::string_view text;
  int exponent;
  int shift;
};

constexpr std::array<Suffix, 16> kSuffixes = {{{"", 0, 0},
                                               {"n", -9, 0},
                                               {"u", -6, 0},
                                               {"m", -3, 0},
                                               {"k", 3, 0},
                                               {"M", 6, 0},
                                               {"G", 9, 0},
                                               {"T", 12, 0},
                                               {"P", 15, 0},
                                               {"E", 18, 0},
                                               {"Ki", 0, 10},
                                               {"Mi", 0, 20},
                                               {"Gi", 0, 30},
                                               {"Ti", 0, 40},
                                               {"Pi", 0, 50},
                                               {"Ei", 0, 60}}};

constexpr int64_t kMaxExponent = 1'000'000'000;
constexpr int64_t kMaxInt64Digits = 19;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t CountDigits(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && IsDigit(text[count])) ++count;
  return count;
}

bool TakeSign(std::string_view& text) {
  if (text.empty() || (text.front() != '+' && text.front() != '-')) return false;
  const bool negative = text.front() == '-';
  text.remove_prefix(1);
  return negative;
}

// Moves the point and sets the shift as the suffix or exponent says; false when it is neither.
bool ApplySuffix(std::string_view suffix, Parts& parts) {
  for (const Suffix& known : kSuffixes) {
    if (suffix == known.text) {
      parts.point += known.exponent;
      parts.shift = known.shift;
      return true;
    }
  }
  if (suffix.empty() || (suffix.front() != 'e' && suffix.front() != 'E')) return false;
  suffix.remove_prefix(1);
  const bool negative = TakeSign(suffix);
  if (suffix.empty() || CountDigits(suffix) != suffix.size()) return false;
  int64_t exponent = 0;
  for (const char digit : suffix) {
    exponent = std::min(exponent * 10 + (digit - '0'), kMaxExponent);
  }
  parts.point += negative ? -exponent : exponent;
  return true;
}

std::optional<Parts> TakeApart(std::string_view text) {
  Parts parts;
  parts.negative = TakeSign(text);
  const size_t whole = CountDigits(text);
  parts.digits = text.substr(0, whole);
  text.remove_prefix(whole);
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    const size_t fraction = CountDigits(text);
    parts.digits += text.substr(0, fraction);
    text.remove_prefix(fraction);
  }
  if (parts.digits.empty()) return std::nullopt;
  const size_t zeros = std::min(parts.digits.find_first_not_of('0'), parts.digits.size());
  parts.digits.erase(0, zeros);
  parts.digits.erase(parts.digits.find_last_not_of('0') + 1);
  parts.point = static_cast<int64_t>(whole) - static_cast<int64_t>(zeros);
  if (!ApplySuffix(text, parts)) return std::nullopt;
  return parts;
}

// Doubles the decimal fraction 0.digits * 10^point, in decimal, so that nothing is ever rounded.
void Double(Parts& parts) {
  int carry = 0;
  for (auto digit = parts.digits.rbegin(); digit != parts.digits.rend(); ++digit) {
    const int doubled = 2 * (*digit - '0') + carry;
    *digit = static_cast<char>('0' + doubled % 10);
    carry = doubled / 10;
  }
  if (carry > 0) {
    parts.digits.insert(parts.digits.begin(), '1');
    ++parts.point;
  }
  parts.digits.erase(parts.digits.find_last_not_of('0') + 1);
}

absl::Status Refuse(std::string_view rule, std::string_view text) {
  constexpr size_t kQuoted = 64;
  return absl::InvalidArgumentError(fmt::format("expected {}, found \"{}\"{}", rule,
                                                text.substr(0, kQuoted),
                                                text.size() > kQuoted ? " (cut)" : ""));
}

constexpr std::string_view kRange = "a quantity within 64 bits";

// The whole number that is left when digits after the point are cut off.
absl::StatusOr<int64_t> Truncate(Parts parts, std::string_view text) {
  if (parts.point > kMaxInt64Digits) return Refuse(kRange, text);
  parts.digits.resize(static_cast<size_t>(std::max<int64_t>(parts.point, 0)), '0');
  // Built below zero, where int64 has one value more than above.
  int64_t value = 0;
  for (const char digit : parts.digits) {
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_sub_overflow(value, digit - '0', &value)) {
      return Refuse(kRange, text);
    }
  }
  if (parts.negative) return value;
  if (value == std::numeric_limits<int64_t>::min()) return Refuse(kRange, text);
  return -value;
}

}  // namespace

absl::StatusOr<int64_t> ParseWholeQuantity(std::string_view text) {
  constexpr std::string_view kWhole = "a whole number";
  std::optional<Parts> parts = TakeApart(text);
  if (!parts) return Refuse("a quantity", text);
  if (parts->digits.empty()) return 0;
  // These two bounds come first: they keep the arithmetic below to some 80 digits however long the
  // text is. A fraction that ends in a non-zero digit needs one doubling per decimal place to go.
  if (parts->point > kMaxInt64Digits) return Refuse(kRange, text);
  if (static_cast<int64_t>(parts->digits.size()) - parts->point > parts->shift) {
    return Refuse(kWhole, text);
  }
  for (int i = 0; i < parts->shift; ++i) Double(*parts);
  if (static_cast<int64_t>(parts->digits.size()) > parts->point) return Refuse(kWhole, text);
  return Truncate(*std::move(parts), text);
}

absl::StatusOr<int64_t> ParseMilliQuantity(std::string_view text) {
  constexpr size_t kLongest = 64;
  if (text.size() > kLongest) return Refuse("a quantity of at most 64 bytes", text);
  std::optional<Parts> parts = TakeApart(text);
  if (!parts) return Refuse("a quantity", text);
  if (parts->digits.empty()) return 0;
  parts->point += 3;
  if (parts->point > kMaxInt64Digits) return Refuse(kRange, text);
  for (int i = 0; i < parts->shift; ++i) Double(*parts);
  const bool exact = static_cast<int64_t>(parts->digits.size()) <= parts->point;
  const bool negative = parts->negative;
  absl::StatusOr<int64_t> value = Truncate(*std::move(parts), text);
  if (!value.ok() || exact || negative) return value;
  if (*value == std::numeric_limits<int64_t>::max()) return Refuse(kRange, text);
  return *value + 1;
}

std::optional<int64_t> TakeDigits(std::string_view& text, std::size_t most) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > most) return std::nullopt;
  int64_t number = 0;
  for (const char digit : text.substr(0, digits)) number = number * 10 + (digit - '0');
  text.remove_prefix(digits);
  return number;
}

}  // namespace tranche
