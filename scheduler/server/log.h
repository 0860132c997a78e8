// The process's log: one line for each entry on standard error, with a UTC time.
#pragma once

#include <string>

namespace tranche {

// From now on for the whole process. `level`: trace, debug, info, warn, error or off.
void LogToStderr(const std::string& level);

}  // namespace tranche
