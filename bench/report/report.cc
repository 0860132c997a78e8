#include "bench/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace tranche::bench {
namespace {

constexpr uint64_t kMostSeeds = 10'000;
constexpr int kIndent = 2;

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ParseSeeds(std::string_view text) {
  std::vector<uint64_t> seeds;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t dots = part.find("..");
    const auto first = Number(part.substr(0, dots));
    const auto last = dots == std::string_view::npos ? first : Number(part.substr(dots + 2));
    if (!first || !last || *last < *first || *last - *first >= kMostSeeds) {
      return absl::InvalidArgumentError(
          fmt::format("--seeds: expected numbers and ranges like 42..51, found \"{}\"", part));
    }
    for (uint64_t seed = *first; seed <= *last; ++seed) seeds.push_back(seed);
  }
  if (seeds.empty()) return absl::InvalidArgumentError("--seeds: expected seeds, found none");
  return seeds;
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

absl::Status WriteReport(const std::string& text, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::ofstream file(path);
  file << text << "\n";
  file.close();
  if (!file) return absl::UnavailableError("expected to write " + path + ", could not");
  return absl::OkStatus();
}

absl::Status WriteReport(const nlohmann::json& document, const std::string& path) {
  return WriteReport(document.dump(kIndent), path);
}

}  // namespace tranche::bench
