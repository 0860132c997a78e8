// Independent runs, some at a time, with a line of progress where somebody looks on.
#pragma once

#include <cstddef>
#include <functional>

#include "absl/status/status.h"

namespace tranche::bench::fill {

// Calls work(0) .. work(count - 1), each once, on `jobs` threads (0: one a core). The first error
// ends it, when the calls under way have ended.
absl::Status RunAll(std::size_t count, int jobs,
                    const std::function<absl::Status(std::size_t)>& work);

}  // namespace tranche::bench::fill
