// The manual page tranche(1), written from the table of commands and flags (cli_commands.h).
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace tranche {

// In the language of man(7): commands and flags from `app`, whose name is how the program is
// called.
std::string ManualPage(const CLI::App& app);

}  // namespace tranche
