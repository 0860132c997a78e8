#include "scheduler/cli/output/output_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <utility>

#include "scheduler/cli/output/suggestion.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

constexpr std::string_view kRest = "...";
constexpr int kDeepestYaml = 100;

struct FormatWord {
  std::string_view word;
  OutputFormat::Kind kind;
};
constexpr FormatWord kFormatWords[] = {
    {"table", OutputFormat::Kind::kTable},
    {"wide", OutputFormat::Kind::kWide},
    {"json", OutputFormat::Kind::kJson},
    {"yaml", OutputFormat::Kind::kYaml},
    {"name", OutputFormat::Kind::kName},
    {"jsonpath=", OutputFormat::Kind::kJsonPath},
    {"custom-columns=", OutputFormat::Kind::kCustomColumns},
};

std::vector<std::string> WordsBetweenBars(std::string_view formats) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t bar = formats.find('|');
    std::string_view word = formats.substr(0, bar);
    if (word.ends_with(kRest)) word.remove_suffix(kRest.size());
    words.emplace_back(word);
    if (bar == std::string_view::npos) return words;
    formats.remove_prefix(bar + 1);
  }
}

// "TITLE:PATH,TITLE:PATH": commas in brackets belong to a path.
absl::StatusOr<std::vector<CustomColumn>> ParseColumns(std::string_view text) {
  std::vector<CustomColumn> columns;
  int open = 0;
  std::size_t start = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && (text[at] == '[' || text[at] == '(')) ++open;
    if (at < text.size() && (text[at] == ']' || text[at] == ')')) --open;
    if (at < text.size() && (text[at] != ',' || open > 0)) continue;
    const std::string_view column = text.substr(start, at - start);
    start = at + 1;
    const std::size_t colon = column.find(':');
    if (colon == 0 || colon == std::string_view::npos || colon + 1 == column.size()) {
      return absl::InvalidArgumentError(
          fmt::format("-o custom-columns: expected TITLE:PATH,... such as NAME:.name, found {}",
                      wire::Quoted(column)));
    }
    absl::StatusOr<JsonPath> path = JsonPath::Parse(column.substr(colon + 1));
    if (!path.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("-o custom-columns: {}", std::string(path.status().message())));
    }
    columns.push_back({std::string(column.substr(0, colon)), std::move(*path)});
  }
  return columns;
}

// Texts of these letters that are no number, date or word of YAML need no quotes.
bool IsPlainYaml(const std::string& text) {
  static constexpr std::string_view kWords[] = {"true", "false", "null", "yes", "no",
                                                "on",   "off",   "y",    "n"};
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.empty() || !letter(text.front())) return false;
  std::string lowered = text;
  for (char& c : lowered) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (std::find(std::begin(kWords), std::end(kWords), lowered) != std::end(kWords)) return false;
  return std::all_of(text.begin(), text.end(), [&letter](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/';
  });
}

void Emit(const Json& value, int depth, YAML::Emitter& out) {
  if (depth > kDeepestYaml) {
    out << YAML::DoubleQuoted << value.dump();
  } else if (value.is_object() && !value.empty()) {
    out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      out << YAML::Key;
      if (!IsPlainYaml(key)) out << YAML::DoubleQuoted;
      out << key << YAML::Value;
      Emit(member, depth + 1, out);
    }
    out << YAML::EndMap;
  } else if (value.is_array() && !value.empty()) {
    out << YAML::BeginSeq;
    for (const Json& item : value) Emit(item, depth + 1, out);
    out << YAML::EndSeq;
  } else if (value.is_structured()) {
    out << YAML::Flow << (value.is_array() ? YAML::BeginSeq : YAML::BeginMap)
        << (value.is_array() ? YAML::EndSeq : YAML::EndMap);
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (!IsPlainYaml(text)) out << YAML::DoubleQuoted;
    out << text;
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << value.dump();
  }
}

}  // namespace

absl::StatusOr<OutputFormat> ParseOutputFormat(std::string_view text, const char* formats) {
  const std::vector<std::string> words = WordsBetweenBars(formats);
  const std::size_t equals = text.find('=');
  const std::string_view word =
      equals == std::string_view::npos ? text : text.substr(0, equals + 1);
  const auto* const found =
      std::find_if(std::begin(kFormatWords), std::end(kFormatWords),
                   [word](const FormatWord& format) { return format.word == word; });
  if (found == std::end(kFormatWords) ||
      std::find(words.begin(), words.end(), word) == words.end()) {
    return absl::InvalidArgumentError(fmt::format("-o: expected one of {}, found {}{}",
                                                  fmt::join(words, " "), wire::Quoted(text),
                                                  DidYouMean(text.substr(0, equals), words)));
  }
  OutputFormat format;
  format.kind = found->kind;
  if (format.kind == OutputFormat::Kind::kCustomColumns) {
    TRANCHE_ASSIGN_OR_RETURN(format.columns, ParseColumns(text.substr(equals + 1)));
  } else if (format.kind == OutputFormat::Kind::kJsonPath) {
    absl::StatusOr<JsonTemplate> made = JsonTemplate::Parse(text.substr(equals + 1));
    if (!made.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("-o jsonpath: {}", std::string(made.status().message())));
    }
    format.text = std::move(*made);
  }
  return format;
}

std::string ToYaml(const Json& value) {
  YAML::Emitter out;
  out.SetNullFormat(YAML::LowerNull);
  Emit(value, 0, out);
  return std::string(out.c_str()) + '\n';
}

std::string WriteAnswer(const OutputFormat& format, const std::string& body, const Json& json) {
  switch (format.kind) {
    case OutputFormat::Kind::kJson:
      return body + '\n';
    case OutputFormat::Kind::kYaml:
      return ToYaml(json);
    case OutputFormat::Kind::kJsonPath:
      return format.text.Write(json);
    default:
      return "";
  }
}

}  // namespace tranche
