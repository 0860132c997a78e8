// The serving process: runs until SIGTERM or SIGINT.
#pragma once

#include <iosfwd>

#include "scheduler/server/config.h"

namespace tranche {

// Returns the exit code: 0 after a signal, within 10 s of it; 2 with one line on `err` when it
// cannot start. Ends the process with 1 when it has lost the lease of the election. Call from the
// main thread before any other thread exists: it takes over the process's signals and its log.
int Serve(const ServeConfig& config, std::ostream& err);

}  // namespace tranche
