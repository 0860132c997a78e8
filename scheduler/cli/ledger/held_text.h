// The holders of GPUs at a moment, as the server's API tells of them, for people.
//
// Pure but for writing to `out`; nlohmann's exceptions where the answer is of another form.
#pragma once

#include <iosfwd>

#include "scheduler/cli/output/json.h"

namespace tranche {

// A table, and what it comes to; the exit code.
int PrintHeld(const Json& held, std::ostream& out);

}  // namespace tranche
