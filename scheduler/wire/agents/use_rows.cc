#include "scheduler/wire/agents/use_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

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

std::optional<UseMeasure> MeasureOf(Object labels) {
  const std::optional<std::string_view> name = FindText(labels, "measure");
  if (!name) return UseMeasure::kBusiest;
  constexpr std::pair<std::string_view, UseMeasure> kNames[] = {
      {"own", UseMeasure::kOwn},       {"mean", UseMeasure::kMean},
      {"memory", UseMeasure::kMemory}, {"temperature", UseMeasure::kCelsius},
      {"power", UseMeasure::kWatts},
  };
  for (const auto& [word, measure] : kNames) {
    if (*name == word) return measure;
  }
  return std::nullopt;
}

// Rounded up: what does a little does something. Of fractions thousandths.
std::optional<int64_t> AmountOf(std::string_view text, UseMeasure measure) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (std::isnan(value) || value < 0) return std::nullopt;
  constexpr double kMost = 1 << 30;  // a PiB in MiB; no card has more, nor takes as many watts
  if (measure == UseMeasure::kMemory || measure == UseMeasure::kCelsius ||
      measure == UseMeasure::kWatts) {
    return static_cast<int64_t>(std::ceil(std::min(value, kMost)));
  }
  constexpr double kRounding = 1e-9;  // 0.07 is a little more than seven hundredths
  return static_cast<int64_t>(std::ceil(std::min(value, 1.0) * 1000 - kRounding));
}

// `[time, "value"]`.
std::optional<int64_t> ReadValue(Object row, UseMeasure measure) {
  const std::optional<Array> value = FindArray(row, "value");
  std::string_view text;
  if (!value || value->at(1).get(text) != simdjson::SUCCESS) return std::nullopt;
  return AmountOf(text, measure);
}

std::optional<UseRow> ReadRow(Element element) {
  Object row;
  if (element.get(row) != simdjson::SUCCESS) return std::nullopt;
  const std::optional<Object> labels = FindObject(row, "metric");
  const std::optional<UseMeasure> measure = labels ? MeasureOf(*labels) : std::nullopt;
  const std::optional<int64_t> amount = measure ? ReadValue(row, *measure) : std::nullopt;
  if (!amount) return std::nullopt;
  UseRow read;
  read.uuid = GpuUuid(LabelOf(*labels, "UUID"));
  read.instance = LabelOf(*labels, "GPU_I_ID");
  // Where Prometheus renamed them, `pod` is the exporter's own.
  const bool renamed = FindText(*labels, "exported_pod").has_value();
  read.pod.ns = LabelOf(*labels, renamed ? "exported_namespace" : "namespace");
  read.pod.name = LabelOf(*labels, renamed ? "exported_pod" : "pod");
  if (read.pod.ns.empty() || read.pod.name.empty()) read.pod = {};
  read.amount = *amount;
  read.measure = *measure;
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
