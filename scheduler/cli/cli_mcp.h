// `tranche mcp`: what the commands say of a server, for a language model; read only.
//
// The tools are the commands that ask a server, under their names, with their words and their
// rights: whoever starts the program is whom the server sees.
#pragma once

#include <iosfwd>

#include "scheduler/cli/cli_ask.h"

namespace tranche {

// Answers on `out` what is asked on `in`, until that ends (cli/mcp/session.h); somebody at a
// terminal is told on `err` that this is for programs. Returns 0.
int AnswerModel(const ClientOptions& options, std::istream& in, std::ostream& out,
                std::ostream& err);

}  // namespace tranche
