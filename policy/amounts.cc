#include "policy/amounts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "topology/base/quantity.h"

namespace tranche {
namespace {

constexpr size_t kWholeDigits = 12;
// Of a duration, as in the schema; the sum stays far inside 64 bits.
constexpr size_t kDurationDigits = 5;
constexpr int kDurationParts = 4;
constexpr size_t kMaxModel = 63;  // a label's value
constexpr int64_t kMebibyte = 1 << 20;
// 256Pi: times the quanta of a GPU this is still within 64 bits.
constexpr int64_t kMostMebibytes = int64_t{256} << 30;

// A decimal with at most `decimals` digits after the point, in units of the last of them.
std::optional<int64_t> ParseDecimal(std::string_view text, size_t decimals) {
  const std::optional<int64_t> whole = TakeDigits(text, kWholeDigits);
  if (!whole) return std::nullopt;
  int64_t value = *whole;
  size_t written = 0;
  if (!text.empty()) {
    if (text.front() != '.') return std::nullopt;
    text.remove_prefix(1);
    written = text.size();
    const std::optional<int64_t> fraction = TakeDigits(text, decimals);
    if (!fraction || !text.empty()) return std::nullopt;
    for (size_t digit = 0; digit < written; ++digit) value *= 10;
    value += *fraction;
  }
  for (; written < decimals; ++written) value *= 10;
  return value;
}

std::optional<int64_t> DecimalOf(const Field& field, int64_t most_whole, size_t decimals) {
  int64_t one = 1;
  for (size_t digit = 0; digit < decimals; ++digit) one *= 10;
  std::optional<int64_t> value;
  if (const auto text = field.Text()) {
    value = ParseDecimal(*text, decimals);
  } else if (const auto whole = field.Integer()) {
    value = std::clamp<int64_t>(*whole, -1, most_whole + 1) * one;
  } else {
    field.Fail("a decimal as text or a whole number");
    return std::nullopt;
  }
  if (!value) {
    field.Fail(fmt::format("a decimal with at most {} decimals", decimals));
  } else if (*value < 0 || *value / one > most_whole) {
    field.Fail(fmt::format("0..{}.{}", most_whole, one - 1));
    value.reset();
  }
  return value;
}

// Takes h, m, s or ms off the front.
std::optional<Millis> TakeUnit(std::string_view& text) {
  struct Unit {
    std::string_view text;
    Millis length;
  };
  constexpr std::array kUnits = {Unit{"ms", Millis(1)}, Unit{"h", std::chrono::hours(1)},
                                 Unit{"m", std::chrono::minutes(1)},
                                 Unit{"s", std::chrono::seconds(1)}};
  for (const Unit& unit : kUnits) {
    if (text.substr(0, unit.text.size()) != unit.text) continue;
    text.remove_prefix(unit.text.size());
    return unit.length;
  }
  return std::nullopt;
}

std::optional<Millis> ParseDuration(std::string_view text) {
  Millis sum{0};
  int parts = 0;
  do {
    const std::optional<int64_t> number = TakeDigits(text, kDurationDigits);
    const std::optional<Millis> unit = TakeUnit(text);
    if (!number || !unit || ++parts > kDurationParts) return std::nullopt;
    sum += *number * *unit;
  } while (!text.empty());
  return sum;
}

}  // namespace

std::optional<int64_t> ThousandthsOf(const Field& field, int64_t most_whole) {
  return DecimalOf(field, most_whole, 3);
}

std::optional<int64_t> MillionthsOf(const Field& field, int64_t most_whole) {
  return DecimalOf(field, most_whole, 6);
}

std::string FormatThousandths(int64_t thousandths) {
  std::string text = fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::optional<Millis> DurationOf(const Field& field) {
  const auto text = field.Text();
  const std::optional<Millis> duration = text ? ParseDuration(*text) : std::nullopt;
  if (!duration) field.Fail("a duration in h, m, s and ms such as \"1h30m\"");
  return duration;
}

std::optional<Mebibytes> MemoryOf(const Field& field) {
  std::optional<int64_t> bytes = field.Integer();
  if (const auto text = field.Text()) {
    if (const absl::StatusOr<int64_t> parsed = ParseWholeQuantity(*text); parsed.ok()) {
      bytes = *parsed;
    }
  }
  if (bytes && *bytes >= kMebibyte && *bytes / kMebibyte <= kMostMebibytes) {
    return Mebibytes::Of(*bytes / kMebibyte);
  }
  field.Fail("a quantity of bytes, 1Mi..256Pi, such as \"160Gi\"");
  return std::nullopt;
}

std::optional<std::string> ModelNamed(std::string_view text) {
  if (!IsWord(text, kMaxModel, Letters::kAny, "-.")) return std::nullopt;
  std::string model(text);
  std::transform(model.begin(), model.end(), model.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return model;
}

std::optional<std::string> ModelOf(const Field& field) {
  const auto text = field.Text();
  std::optional<std::string> model = text ? ModelNamed(*text) : std::nullopt;
  if (!model) field.Fail("a GPU model name or \"any\"");
  return model;
}

}  // namespace tranche
