// How an answer is written: the words of -o, as kubectl has them (ADR 0037).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/cli/output/json.h"
#include "scheduler/cli/output/json_path.h"

namespace tranche {

struct CustomColumn {
  std::string title;
  JsonPath path;  // below one object of the list
};

struct OutputFormat {
  enum class Kind { kTable, kWide, kJson, kYaml, kName, kJsonPath, kCustomColumns };
  Kind kind = Kind::kTable;
  JsonTemplate text;                  // of kJsonPath
  std::vector<CustomColumn> columns;  // of kCustomColumns
};

// What the commands take that print a list, and those that print one answer; as type names of
// CLI11, see cli_commands.h.
inline constexpr const char* kListFormats =
    "table|wide|json|yaml|name|jsonpath=...|custom-columns=...";
inline constexpr const char* kAnswerFormats = "table|json|yaml|jsonpath=...";
inline constexpr const char* kBillFormats = "table|csv|json|yaml|jsonpath=...";

// `formats`: one of the three above; csv is not for this. Errors: InvalidArgument naming what was
// expected and found.
absl::StatusOr<OutputFormat> ParseOutputFormat(std::string_view text, const char* formats);

// The same value in YAML, lines ending in a newline. Texts that YAML would read as something else
// are quoted.
std::string ToYaml(const Json& value);

// An answer in kJson (`body`, the server's own text, as it is), kYaml or kJsonPath; "" for the
// others. Ends in a newline, unless a template says otherwise.
std::string WriteAnswer(const OutputFormat& format, const std::string& body, const Json& json);

}  // namespace tranche
