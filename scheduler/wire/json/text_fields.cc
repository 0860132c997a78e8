#include "scheduler/wire/json/text_fields.h"

#include <algorithm>
#include <charconv>

namespace tranche::wire {
namespace {

constexpr int64_t kMillion = 1'000'000;

struct Decimal {
  int64_t whole = 0;
  int64_t millionths = 0;  // further digits are cut off
};

bool IsDigit(char byte) { return byte >= '0' && byte <= '9'; }

// "12", "12.5", ".5" or "12." off the front, as Go reads them.
std::optional<Decimal> TakeDecimal(std::string_view& text) {
  constexpr std::size_t kMaxWholeDigits = 18;
  Decimal out;
  std::size_t digits = 0;
  for (; !text.empty() && IsDigit(text[0]); text.remove_prefix(1)) {
    if (++digits > kMaxWholeDigits) return std::nullopt;
    out.whole = out.whole * 10 + (text[0] - '0');
  }
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    int64_t weight = kMillion / 10;
    for (; !text.empty() && IsDigit(text[0]); text.remove_prefix(1), weight /= 10) {
      out.millionths += weight * (text[0] - '0');
      ++digits;
    }
  }
  return digits == 0 ? std::nullopt : std::optional(out);
}

std::optional<Millis> TakeUnit(std::string_view& text) {
  struct Unit {
    std::string_view name;
    Millis length;
  };
  // "ms" stands before "m".
  for (const Unit& unit :
       {Unit{"ms", Millis(1)}, Unit{"h", std::chrono::hours(1)}, Unit{"m", std::chrono::minutes(1)},
        Unit{"s", std::chrono::seconds(1)}}) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return unit.length;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> ParsePlainInteger(std::string_view text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

std::optional<Millis> ParseDuration(std::string_view text, Millis limit) {
  if (text.empty()) return std::nullopt;
  Millis sum{0};
  while (!text.empty()) {
    const std::optional<Decimal> number = TakeDecimal(text);
    const std::optional<Millis> unit = number ? TakeUnit(text) : std::nullopt;
    if (!unit || number->whole > limit / *unit) return std::nullopt;
    sum += *unit * number->whole + *unit * number->millionths / kMillion;
    if (sum > limit) return std::nullopt;
  }
  return sum;
}

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> SplitList(std::string_view text) {
  std::vector<std::string_view> entries;
  while (const std::optional<std::string_view> entry = TakeUntil(text, ',')) {
    entries.push_back(Trimmed(*entry));
  }
  entries.push_back(Trimmed(text));
  return entries;
}

std::optional<std::string_view> TakeUntil(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end + 1);
  return taken;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char byte) {
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
  });
  return lower;
}

}  // namespace tranche::wire
