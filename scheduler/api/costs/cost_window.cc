#include "scheduler/api/costs/cost_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>

#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

using std::chrono::days;

// A century, so that nothing overflows.
constexpr int64_t kMostMillis = int64_t{100} * 366 * 86'400'000;

std::optional<int64_t> WholeNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

Instant MonthBefore(Instant at, int months) {
  const std::chrono::year_month_day day(std::chrono::floor<days>(at));
  return std::chrono::sys_days((day.year() / day.month() - std::chrono::months(months)) / 1);
}

// nullopt: no word of OpenCost's.
std::optional<CostWindow> OfWord(std::string_view word, Instant now) {
  const auto today = std::chrono::floor<days>(now);
  const std::chrono::weekday weekday(today);
  const auto sunday = today - days(weekday.c_encoding());
  if (word == "today") return CostWindow{today, now};
  if (word == "yesterday") return CostWindow{today - days(1), today};
  if (word == "week") return CostWindow{sunday, now};
  if (word == "lastweek") return CostWindow{sunday - days(7), sunday};
  if (word == "month") return CostWindow{MonthBefore(now, 0), now};
  if (word == "lastmonth") return CostWindow{MonthBefore(now, 1), MonthBefore(now, 0)};
  return std::nullopt;
}

std::optional<Instant> Moment(std::string_view text) {
  if (const std::optional<int64_t> seconds = WholeNumber(text)) {
    if (*seconds > kMostMillis / 1000) return std::nullopt;
    return Instant(std::chrono::seconds(*seconds));
  }
  return wire::ParseTime(text);
}

std::optional<Millis> Span(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  int64_t unit = 0;
  switch (text.back()) {
    case 'm':
      unit = 60'000;
      break;
    case 'h':
      unit = 3'600'000;
      break;
    case 'd':
      unit = 86'400'000;
      break;
    case 'w':
      unit = 7 * int64_t{86'400'000};
      break;
    default:
      return std::nullopt;
  }
  const std::optional<int64_t> number = WholeNumber(text.substr(0, text.size() - 1));
  if (!number || *number == 0 || *number > kMostMillis / unit) return std::nullopt;
  return Millis(*number * unit);
}

}  // namespace

absl::StatusOr<CostWindow> ParseCostWindow(std::string_view text, Instant now) {
  std::optional<CostWindow> window = OfWord(text, now);
  const std::size_t comma = text.find(',');
  if (const std::optional<Millis> span = Span(text)) window = CostWindow{now - *span, now};
  if (comma != std::string_view::npos) {
    const std::optional<Instant> from = Moment(text.substr(0, comma));
    const std::optional<Instant> to = Moment(text.substr(comma + 1));
    if (from && to) window = CostWindow{*from, *to};
  }
  if (!window) {
    return absl::InvalidArgumentError(fmt::format(
        "window: expected today, yesterday, week, lastweek, month, lastmonth, a span like 7d, or "
        "two moments with a comma between, found {}",
        wire::Quoted(std::string(text))));
  }
  window->to = std::min(window->to, now);
  if (window->from < window->to) return *window;
  return absl::InvalidArgumentError(
      fmt::format("window: expected a span that has begun by {}, found {}", wire::FormatTime(now),
                  wire::Quoted(std::string(text))));
}

absl::StatusOr<Millis> ParseCostSpan(std::string_view text, const char* parameter) {
  if (const std::optional<Millis> span = Span(text)) return *span;
  return absl::InvalidArgumentError(fmt::format("{}: expected a span like 30m, 12h or 7d, found {}",
                                                parameter, wire::Quoted(std::string(text))));
}

}  // namespace tranche
