// A scenario file as text: its name, why it is told, and its statements in order.
//
// Grammar: test/scenarios/README.md. Which verbs there are is the concern of the runner.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "test/scenarios/runner/words.h"

namespace tranche::scenario {

struct Script {
  std::string name;
  std::string why;
  std::vector<Statement> statements;
};

struct ParseError {
  Statement at;  // line and text; of a file that ends too early, its last line
  Problem problem;
};

// Example: "node a gpus=2" -> {verb "node", words {"a"}, options {{"gpus", "2"}}}. Text between
// quotation marks is one word.
std::optional<ParseError> ParseScript(std::string_view text, Script& script);

}  // namespace tranche::scenario
