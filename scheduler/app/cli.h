// The command line: `tranche COMMAND [options]`.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace tranche::app {

// `arguments` without the program's name. Returns the exit code: 0 done, 1 a domain no, 2 usage or
// configuration error. Errors are one line on `err`.
int RunCommandLine(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace tranche::app
