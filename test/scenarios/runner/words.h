// The words of a scenario's line, and what is said when they are not the ones expected.
//
// Plain values; any thread. A Problem is an answer, not an exception: readers return std::nullopt
// when all is well.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/base/units.h"

namespace tranche::scenario {

// What was expected beside what was found; both are shown to the reader of a failed scenario.
struct Problem {
  std::string expected;
  std::string got;
  friend bool operator==(const Problem&, const Problem&) = default;
};
using Result = std::optional<Problem>;

// A line of a scenario: a verb, its words, and its `key=value` options.
struct Statement {
  int line = 0;      // of the file, from 1
  std::string text;  // as it was written, without the space around it
  std::string verb;
  std::vector<std::string> words;  // after the verb, in order
  std::vector<std::pair<std::string, std::string>> options;
};

std::string Join(const std::vector<std::string>& words, std::string_view between = " ");
std::vector<std::string> Split(const std::string& text, char at);

// "3", "0.5", "2.125": thousandths; nullopt for anything else.
std::optional<int64_t> ParseThousandths(const std::string& text);
// Thousandths as people write them: "3", "0.5".
std::string FormatThousandths(int64_t thousandths);
// "90s", "30m", "1h30m", "2d", "500ms"; nullopt for anything else.
std::optional<Millis> ParseSpan(const std::string& text);
// The shortest of the forms above: "1h30m"; "0s" for none.
std::string FormatSpan(Millis span);

// Reads the options of one statement. The first value that cannot be read is kept, and so are the
// keys that were asked for: Done() says what is wrong with the whole, unknown keys included.
class Options {
 public:
  explicit Options(const Statement& statement);

  bool Has(const std::string& key) { return Find(key) != nullptr; }
  std::string Text(const std::string& key, const std::string& otherwise = "");
  std::vector<std::string> List(const std::string& key);  // "a,b,c"
  int64_t Integer(const std::string& key, int64_t otherwise);
  int64_t Thousandths(const std::string& key, int64_t otherwise);
  std::optional<Millis> Span(const std::string& key);
  bool Yes(const std::string& key, bool otherwise);
  // "h100:8,any:16" -> {{"h100", "8"}, {"any", "16"}}.
  std::vector<std::pair<std::string, std::string>> Pairs(const std::string& key);
  // One of a few words.
  template <typename Value>
  Value Choice(const std::string& key, const std::vector<std::pair<std::string, Value>>& choices,
               Value otherwise) {
    const std::string* text = Find(key);
    if (text == nullptr) return otherwise;
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      if (name == *text) return value;
      names.push_back(name);
    }
    Fail(key, Join(names, "|"), *text);
    return otherwise;
  }

  Result Done() const;

 private:
  const std::string* Find(const std::string& key);
  void Fail(const std::string& key, const std::string& expected, const std::string& found);

  std::map<std::string, std::string> values_;
  std::vector<std::string> asked_;
  Result problem_;
};

}  // namespace tranche::scenario
