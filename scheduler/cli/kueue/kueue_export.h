// tranche export kueue: what GPUQuotas and GPUPools in files are as objects of Kueue, printed.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace tranche {

// Returns the exit code: 0 printed, 1 an object is invalid, 2 a file cannot be read. Then an error
// is all that is printed.
int ExportKueue(const std::vector<std::string>& files, std::ostream& out, std::ostream& err);

}  // namespace tranche
