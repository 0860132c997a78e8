#include "scheduler/cli/output/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/wire/json/json.h"
#include "topology/base/units.h"

namespace tranche {

std::string Thousandths(int64_t milli) {
  std::string text = fmt::format("{}{}.{:03}", milli < 0 ? "-" : "", std::abs(milli) / 1000,
                                 std::abs(milli) % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string Gibibytes(int64_t mebibytes) {
  return fmt::format("{}.{}", mebibytes / 1024, std::abs(mebibytes % 1024) * 10 / 1024);
}

std::string ReasonOf(const Json& holder) {
  const Json& reason = holder.at("reason");
  return reason.is_null() ? "-" : Text(reason, "text");
}

std::string DetailOf(const Json& holder) {
  const Json& reason = holder.at("reason");
  return reason.is_null() ? "-" : Text(reason, "detail");
}

std::string DevicesOf(const Json& holder) {
  std::vector<std::string> parts;
  for (const Json& device : holder.at("devices")) {
    std::string part = device.at("index").is_null() ? "?" : device.at("index").dump();
    if (!device.at("migProfile").is_null()) {
      part += fmt::format(" {}@{}", Text(device, "migProfile"), Text(device, "migStart"));
    } else if (Whole(device, "milli") != 1000) {
      part += fmt::format(" {}m {}MiB", Whole(device, "milli"), Whole(device, "mib"));
    }
    parts.push_back(std::move(part));
  }
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string Age(const std::string& from, const std::string& to) {
  const std::optional<Instant> start = wire::ParseTime(from);
  const std::optional<Instant> end = wire::ParseTime(to);
  if (!start || !end) return "-";
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(*end - *start).count();
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 120 * 60) return fmt::format("{}m", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / (24 * 3600));
}

std::string AsksOf(const Json& pod) {
  const Json asks = pod.value("asks", Json());
  if (!asks.is_object()) return "-";
  std::vector<std::string> parts;
  for (const Json& device : asks.at("devices")) {
    const std::string count = Text(device, "count");
    const std::string part = !device.at("profile").is_null() ? Text(device, "profile")
                             : device.at("milli").is_null()  ? ""
                                                             : Thousandths(Whole(device, "milli"));
    parts.push_back(part.empty()   ? count
                    : count == "1" ? part
                                   : fmt::format("{} x {}", count, part));
  }
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string StartOf(const Json& forecast) {
  const std::string because = Text(forecast, "because");
  if (forecast.at("p50").is_null()) {
    const std::string earliest = Text(forecast, "earliest");
    return earliest == "-" ? because : fmt::format("not before {}: {}", earliest, because);
  }
  const std::string from = Text(forecast, "p10"), to = Text(forecast, "p90");
  std::string text = Text(forecast, "p50");
  if (from != to) text += fmt::format(", between {} and {}", from, to == "-" ? "never" : to);
  return text + "; " + because;
}

}  // namespace tranche
