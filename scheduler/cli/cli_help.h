// Help for people: groups, examples, and what a mistyped word was meant to be.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace tranche {

// How help is laid out: options by group, those that say how to reach a server only in that of
// `options`, examples below.
void SetHelpLayout(CLI::App& app);

// Examples below the help of a command: each a command line behind the program's name, and what it
// does.
struct Example {
  const char* line;
  const char* what;
};
void AddExamples(CLI::App& command, const std::string& program,
                 const std::vector<Example>& examples);

// "; did you mean explain?" for the first command or flag of the line that there is none of; ""
// where nothing is close.
std::string SuggestionFor(const CLI::App& app, const std::vector<std::string>& arguments);

// The words of a type name: {"table", "json"}, without what "..." stands for; none where it is no
// such list.
std::vector<std::string> WordsOf(const std::string& type_name);

}  // namespace tranche
