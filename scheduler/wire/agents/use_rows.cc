#include "scheduler/wire/agents/use_rows.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::size_t kLongestLabel = 253;  // as names of pods

// Empty: the label is not there, or no name.
std::string LabelOf(Object labels, std::string_view key) {
  const std::string_view text = FindText(labels, key).value_or(std::string_view());
  return text.size() <= kLongestLabel ? std::string(text) : "";
}

// Rounded up: what does a little does something.
std::optional<int> PermilleOf(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (std::isnan(value) || value < 0) return std::nullopt;
  if (value >= 1) return 1000;
  constexpr double kRounding = 1e-9;  // 0.07 is a little more than seven hundredths
  return static_cast<int>(std::ceil(value * 1000 - kRounding));
}

// `[time, "value"]`.
std::optional<int> ReadValue(Object row) {
  const std::optional<Array> value = FindArray(row, "value");
  std::string_view text;
  if (!value || value->at(1).get(text) != simdjson::SUCCESS) return std::nullopt;
  return PermilleOf(text);
}

std::optional<UseRow> ReadRow(Element element) {
  Object row;
  if (element.get(row) != simdjson::SUCCESS) return std::nullopt;
  const std::optional<Object> labels = FindObject(row, "metric");
  const std::optional<int> permille = ReadValue(row);
  if (!labels || !permille) return std::nullopt;
  UseRow read;
  read.uuid = GpuUuid(LabelOf(*labels, "UUID"));
  read.instance = LabelOf(*labels, "GPU_I_ID");
  // Where Prometheus renamed them, `pod` is the exporter's own.
  const bool renamed = FindText(*labels, "exported_pod").has_value();
  read.pod.ns = LabelOf(*labels, renamed ? "exported_namespace" : "namespace");
  read.pod.name = LabelOf(*labels, renamed ? "exported_pod" : "pod");
  if (read.pod.ns.empty() || read.pod.name.empty()) read.pod = {};
  read.permille = *permille;
  if (read.uuid.empty() && read.pod.name.empty()) return std::nullopt;
  return read;
}

}  // namespace

absl::StatusOr<UseRows> DecodeUseRows(std::string_view json) {
  Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Element root, parser.Parse(json));
  Object answer;
  if (root.get(answer) != simdjson::SUCCESS || !FindText(answer, "status")) {
    return absl::InvalidArgumentError("expected an answer of Prometheus, found other JSON");
  }
  if (FindText(answer, "status") != "success") {
    return absl::InvalidArgumentError(
        fmt::format("expected rows, found the error {}: {}",
                    Quoted(FindText(answer, "errorType").value_or("without a type")),
                    Quoted(FindText(answer, "error").value_or("without a text"))));
  }
  const std::optional<Object> data = FindObject(answer, "data");
  const std::optional<Array> rows = data ? FindArray(*data, "result") : std::nullopt;
  const std::string_view type = data ? FindText(*data, "resultType").value_or("") : "";
  if (!rows || type != "vector") {
    return absl::InvalidArgumentError(
        fmt::format("expected a vector, found {}", type.empty() ? "none" : Quoted(type)));
  }
  UseRows out;
  std::size_t count = 0;
  for (const Element element : *rows) {
    if (++count > kMostUseRows) {
      return absl::InvalidArgumentError(
          fmt::format("expected at most {} rows, found more", kMostUseRows));
    }
    if (std::optional<UseRow> row = ReadRow(element)) {
      out.rows.push_back(*std::move(row));
    } else {
      ++out.unreadable;
    }
  }
  return out;
}

}  // namespace tranche::wire
