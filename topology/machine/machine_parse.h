// The text of `nvidia-smi topo -m` -> Machine.
//
// Takes tabs or runs of blanks, NIC rows and columns in any order, NIC legends, NUMA lists and N/A,
// output without NUMA columns, old codes (SOC), leading comment lines ("#") and trailing legends. A
// code nobody knows makes its pair SYS and adds a problem that names row, column and code. Bounded:
// text beyond 256 KiB or 64 GPUs is an error. Source: gpu-topology section 1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "topology/machine/machine.h"

namespace tranche {

struct ParsedMachine {
  Machine machine;
  std::vector<std::string> problems;  // what was expected, found, and where (line, column)
};

// Errors: InvalidArgument with line and column where the matrix cannot be read at all (no header, a
// row missing, too few cells, GPUs in other order than the header's).
absl::StatusOr<ParsedMachine> ParseMachine(std::string_view text);

}  // namespace tranche
