// What may come next on a command line, for shells.
//
// The scripts know no command and no flag: they ask the program, which knows them by its own table
// (cli_commands.h), as `tranche __complete WORD...`, the last word being the one under the cursor.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace tranche {

inline constexpr const char* kCompleteCommand = "__complete";

// One line for each candidate, "WORD<tab>help", and ":4" or, where file names serve too, ":0": what
// kubectl asks of its plugins.
std::string Complete(const CLI::App& app, const std::vector<std::string>& words);

// Names CompletionScript takes.
std::vector<std::string> CompletionShells();
// `shell`: one of CompletionShells.
std::string CompletionScript(const std::string& shell);

}  // namespace tranche
