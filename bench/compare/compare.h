// tranche-bench compare: the figures of a result beside those of a baseline (bench/baselines).
//
// A baseline names the benchmark and its command, the day, commit and machine it was measured on,
// and for each figure the run it belongs to, its value and the margin within which a new result
// agrees. A margin is a number in the figure's own unit, or a percentage of the value ("10%"). A
// figure that says which direction is `worse` disagrees in that direction alone.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tranche::bench {

struct CompareOptions {
  std::string baseline;  // YAML
  std::string result;    // JSON, as --out writes it
};

// Prints one line for each figure and returns whether all agree; one that the result lacks does
// not. Errors: NotFound and InvalidArgument for files that are not there or not as they must be.
absl::StatusOr<bool> Compare(const CompareOptions& options);

}  // namespace tranche::bench
