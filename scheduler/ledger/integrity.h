// SQLite's own checks of a file: pages, indices, constraints, references.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/ledger/sqlite.h"

namespace tranche::ledger {

enum class CheckDepth {
  kQuick,  // quick_check: pages and rows, not indices against tables
  kFull,   // integrity_check and foreign_key_check
};

// What is wrong, a line each, at most 20. `stop` is asked every few milliseconds; true ends the
// check, and what was found until then is returned.
absl::StatusOr<std::vector<std::string>> CheckIntegrity(Database& database, CheckDepth depth,
                                                        const std::function<bool()>& stop);

}  // namespace tranche::ledger
