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
constexpr size_t kMostDays = 7;
constexpr int64_t kMebibyte = 1 << 20;
// 256Pi: times the quanta of a GPU this is still within 64 bits.
constexpr int64_t kMostMebibytes = int64_t{256} << 30;

constexpr std::array kWeekdays = {
    Choice<int>{"Mon", 0}, Choice<int>{"Tue", 1}, Choice<int>{"Wed", 2}, Choice<int>{"Thu", 3},
    Choice<int>{"Fri", 4}, Choice<int>{"Sat", 5}, Choice<int>{"Sun", 6}};

// "08:30" -> 510; "24:00" is the end of the day.
std::optional<int> MinuteOf(std::string_view text) {
  constexpr std::string_view kShape = "00:00";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != kShape.size() || text[2] != ':') return std::nullopt;
  for (const size_t at : {0, 1, 3, 4}) {
    if (!is_digit(text[at])) return std::nullopt;
  }
  const int hour = (text[0] - '0') * 10 + (text[1] - '0');
  const int minute = (text[3] - '0') * 10 + (text[4] - '0');
  if (minute > 59 || hour > 24 || (hour == 24 && minute > 0)) return std::nullopt;
  return hour * 60 + minute;
}

std::optional<int> MinuteIn(const Field& field, int most, std::string_view rule) {
  const auto text = field.Text();
  const std::optional<int> minute = text ? MinuteOf(*text) : std::nullopt;
  if (minute && *minute <= most) return minute;
  field.Fail(rule);
  return std::nullopt;
}

uint8_t DaysOf(const Field& field) {
  unsigned days = 0;
  for (const Field& item : field.Items(1, kMostDays)) {
    int day = 0;
    if (!ReadChoice(item, kWeekdays, day)) continue;
    if ((days >> day & 1U) != 0) item.Fail("every item once");
    days |= 1U << day;
  }
  return static_cast<uint8_t>(days);
}

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

std::optional<TimeZone> ZoneOf(const Field& field) {
  const auto text = field.Text();
  std::optional<TimeZone> zone = text ? TimeZone::Load(*text) : std::nullopt;
  if (!zone) field.Fail("a time zone this machine knows, such as \"Europe/Paris\"");
  return zone;
}

WeekHours WeekHoursOf(const Field& field, TimeZone* zone) {
  constexpr int kMinutes = 24 * 60;
  WeekHours hours;
  std::optional<int> from;
  std::optional<int> to;
  const Field::Member days = {"days", [&](const Field& item) { hours.days = DaysOf(item); }};
  const Field::Member begin = {"from",
                               [&](const Field& item) {
                                 from = MinuteIn(item, kMinutes - 1,
                                                 "a time of the day, \"00:00\" to \"23:59\"");
                               },
                               "a time of the day"};
  const Field::Member end = {"to",
                             [&](const Field& item) {
                               to = MinuteIn(item, kMinutes,
                                             "a time of the day, \"00:00\" to \"24:00\"");
                             },
                             "a time of the day"};
  if (zone == nullptr) {
    field.ReadMembers({days, begin, end});
  } else {
    field.ReadMembers({days, begin, end, {"timeZone", [zone](const Field& item) {
                                            Assign(*zone, ZoneOf(item));
                                          }}});
  }
  if (from && to && *from == *to) field.Fail("to to be another time than from");
  Assign(hours.from, from);
  Assign(hours.to, to);
  return hours;
}

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
