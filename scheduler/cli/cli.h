// The command line: `tranche COMMAND [options]`.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace tranche {

inline constexpr const char* kKubectlName = "kubectl tranche";

// How the program is called: "tranche", or kKubectlName where it is kubectl's plugin. `path`:
// argv[0].
std::string ProgramName(std::string_view path);

// `arguments` without the program's name. Returns the exit code: 0 done, 1 a domain no, 2 usage or
// configuration error. Errors are one line on `err`.
int RunCommandLine(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
                   const std::string& name = "tranche");

}  // namespace tranche
