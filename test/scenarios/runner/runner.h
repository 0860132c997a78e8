// Runs a scenario: reads it, and tells it to an engine line by line until one is not as expected.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "test/scenarios/runner/script.h"

namespace tranche::scenario {

struct Outcome {
  std::string name;                   // of the scenario, as far as it could be read
  std::optional<ParseError> failure;  // nullopt: everything was as expected
};

// After the last line the books must agree with themselves, whether the scenario says so or not.
Outcome RunScenario(std::string_view text);

// "FAILED file:7: line\n  expected: ...\n  got:      ..."
std::string FailureText(const std::string& file, const ParseError& failure);

}  // namespace tranche::scenario
