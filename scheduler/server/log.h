// The process's log: one line for each entry on standard error, with a UTC time.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tranche {

// From now on for the whole process. `level`: trace, debug, info, warn, error or off.
void LogToStderr(const std::string& level);

// Does the work. What it throws is logged under that name and goes no further: one request or one
// round of something must not end the process. Any thread.
void Guarded(std::string_view name, const std::function<void()>& work);

}  // namespace tranche
