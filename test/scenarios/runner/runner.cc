#include "test/scenarios/runner/runner.h"

#include <vector>

#include "test/scenarios/runner/forms.h"

namespace tranche::scenario {
namespace {

Result RunStatement(const Statement& statement, Story& story) {
  if (statement.verb == "expect") {
    return RunForm(Expectations(), statement.words, statement, story);
  }
  std::vector<std::string> words = {statement.verb};
  words.insert(words.end(), statement.words.begin(), statement.words.end());
  std::vector<std::string> verbs;
  for (const std::span<const Form> forms : {Facts(), Steps()}) {
    for (const Form& form : forms) {
      verbs.push_back(Split(std::string(form.pattern), ' ').front());
      if (verbs.back() == statement.verb) return RunForm(forms, words, statement, story);
    }
  }
  return Problem{"expect, " + Join(verbs, ", "), statement.verb};
}

}  // namespace

Outcome RunScenario(std::string_view text) {
  Script script;
  Outcome outcome;
  outcome.failure = ParseScript(text, script);
  outcome.name = script.name;
  if (outcome.failure) return outcome;
  Story story;
  bool expects = false;
  for (const Statement& statement : script.statements) {
    expects = expects || statement.verb == "expect";
    if (const Result problem = RunStatement(statement, story)) {
      outcome.failure = ParseError{statement, *problem};
      return outcome;
    }
  }
  Statement last;
  if (!script.statements.empty()) last = script.statements.back();
  const std::vector<std::string> faults = story.world.Audit();
  if (!faults.empty()) {
    outcome.failure = ParseError{last, {"books that agree with themselves", Join(faults, "; ")}};
  } else if (!expects) {
    outcome.failure = ParseError{last, {"a line that begins with `expect`", "none"}};
  }
  return outcome;
}

std::string FailureText(const std::string& file, const ParseError& failure) {
  return "FAILED " + file + ":" + std::to_string(failure.at.line) + ": " + failure.at.text +
         "\n  expected: " + failure.problem.expected + "\n  got:      " + failure.problem.got;
}

}  // namespace tranche::scenario
