#include "bench/compare/compare.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace tranche::bench {
namespace {

using nlohmann::json;

struct Figure {
  std::string run;   // "policy=tranche machine=dgx-v"
  std::string name;  // a path with dots: "allocationAtArrival.100"
  double value = 0;
  double margin = 0;
  std::string worse;  // "higher", "lower" or "", when both are
};

absl::Status Wrong(const std::string& where, std::string_view expected) {
  return absl::InvalidArgumentError(fmt::format("{}: expected {}", where, expected));
}

// Absolute, from "0.5" or "10%" of the value.
std::optional<double> MarginOf(std::string_view text, double value) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return percent ? std::abs(value) * number / 100 : number;
}

// JSON texts are compared as they would be written without quotes.
std::string TextOf(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The first run whose fields equal those of the baseline; null when there is none.
const json* RunOf(const json& document, const YAML::Node& fields) {
  for (const json& run : document.value("runs", json::array())) {
    bool matches = true;
    for (const auto& field : fields) {
      const auto found = run.find(field.first.as<std::string>());
      matches = matches && found != run.end() && TextOf(*found) == field.second.as<std::string>();
    }
    if (matches) return &run;
  }
  return nullptr;
}

std::optional<double> NumberAt(const json& run, std::string_view path) {
  const json* at = &run;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const auto next = at->find(std::string(path.substr(0, dot)));
    if (next == at->end()) return std::nullopt;
    at = &*next;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return at->is_number() ? std::optional(at->get<double>()) : std::nullopt;
}

absl::StatusOr<Figure> ReadFigure(const YAML::Node& node, const std::string& where) {
  Figure figure;
  for (const auto& field : node["run"]) {
    figure.run += fmt::format("{}{}={}", figure.run.empty() ? "" : " ",
                              field.first.as<std::string>(), field.second.as<std::string>());
  }
  figure.name = node["figure"].as<std::string>();
  figure.value = node["value"].as<double>();
  const auto margin = MarginOf(node["margin"].as<std::string>(), figure.value);
  if (!margin) return Wrong(where, "a margin like 0.5 or 10%");
  figure.margin = *margin;
  figure.worse = node["worse"].as<std::string>("");
  if (figure.worse.empty() || figure.worse == "higher" || figure.worse == "lower") return figure;
  return Wrong(where, "worse: higher or lower");
}

bool Agrees(const Figure& figure, double found) {
  const double more = found - figure.value;
  if (figure.worse == "higher") return more <= figure.margin;
  if (figure.worse == "lower") return -more <= figure.margin;
  return std::abs(more) <= figure.margin;
}

absl::StatusOr<bool> CompareAll(const YAML::Node& baseline, const json& document,
                                const CompareOptions& options) {
  const auto benchmark = baseline["benchmark"].as<std::string>();
  if (document.value("benchmark", "") != benchmark) {
    return Wrong(options.result, fmt::format("a result of {}", benchmark));
  }
  std::printf("%s: measured %s at commit %s on %s\n\n", benchmark.c_str(),
              baseline["date"].as<std::string>().c_str(),
              baseline["commit"].as<std::string>().c_str(),
              baseline["machine"].as<std::string>().c_str());
  std::printf("%-44s %-28s %12s %12s %10s  %s\n", "run", "figure", "baseline", "found", "margin",
              "");
  bool all = true;
  for (const YAML::Node& node : baseline["figures"]) {
    const std::string where = fmt::format("{}:{}", options.baseline, node.Mark().line + 1);
    const absl::StatusOr<Figure> figure = ReadFigure(node, where);
    if (!figure.ok()) return figure.status();
    const json* run = RunOf(document, node["run"]);
    const auto found = run == nullptr ? std::nullopt : NumberAt(*run, figure->name);
    const bool agrees = found && Agrees(*figure, *found);
    all = all && agrees;
    std::printf("%-44s %-28s %12.4f %12s %10.4f  %s\n", figure->run.c_str(), figure->name.c_str(),
                figure->value, found ? fmt::format("{:.4f}", *found).c_str() : "-", figure->margin,
                agrees  ? "ok"
                : found ? "outside"
                        : "missing");
  }
  return all;
}

}  // namespace

absl::StatusOr<bool> Compare(const CompareOptions& options) {
  std::ifstream file(options.result);
  if (!file) return absl::NotFoundError("expected a result in " + options.result + ", found none");
  const json document = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return Wrong(options.result, "one JSON object");
  try {
    return CompareAll(YAML::LoadFile(options.baseline), document, options);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", options.baseline, error.what()));
  }
}

}  // namespace tranche::bench
