// Paths into JSON and texts made with them, in the words of kubectl's -o jsonpath.
//
//   path       .a.b   ['a b']   [0]   [-1]   [0:3]   [*]   ..name   [?(@.a=="x")]
//   template   {.items[*].name}   {range .items[*]}{.name}{"\n"}{end}
//
// What is not there yields nothing. Plain values; any thread. Cost: O(values looked at).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/cli/output/json.h"

namespace tranche {

class JsonPath {
 public:
  // "{.a}", ".a", "$.a", "@.a" and "a" are the same. Errors: InvalidArgument naming what was
  // expected, what was found and at which letter.
  static absl::StatusOr<JsonPath> Parse(std::string_view text);
  // The values it leads to, in their order; they live as long as `root`.
  std::vector<const Json*> Find(const Json& root) const;

 private:
  struct Step {
    enum class Kind { kMember, kAll, kIndex, kSlice, kBelow, kFilter };
    Kind kind = Kind::kMember;
    std::string name;
    std::optional<int64_t> from, to;
    std::vector<Step> of;    // of a filter: the path below the item
    std::string comparison;  // of a filter: "" (it is there), ==, !=, <, <=, >, >=
    Json value;
  };
  class Reader;
  static std::vector<const Json*> Walk(const std::vector<Step>& steps, const Json& root);
  static void Take(const Step& step, const Json& value, std::vector<const Json*>& found);
  static void TakeRange(const Step& step, const Json& list, std::vector<const Json*>& found);
  static void TakeBelow(const Step& step, const Json& value, std::vector<const Json*>& found);
  static bool Passes(const Step& filter, const Json& value);

  std::vector<Step> steps_;
};

class JsonTemplate {
 public:
  // Errors: as of JsonPath::Parse; ranges without end, ends without range.
  static absl::StatusOr<JsonTemplate> Parse(std::string_view text);
  std::string Write(const Json& root) const;

 private:
  struct Part {
    std::string text;              // as it is, where there is no path
    std::optional<JsonPath> path;  // its values, a blank between them; of a range: its items
    std::optional<std::vector<Part>> each;  // a range: written for each item
  };
  static void Append(const std::vector<Part>& parts, const Json& root, std::string& out);

  std::vector<Part> parts_;
};

// A value in a line of text: texts as they are, all else as JSON. Without control characters.
std::string PlainText(const Json& value);

}  // namespace tranche
