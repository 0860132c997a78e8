// The past that a restarted server finds: what was declared, and a ledger of pods that ended.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tranche::bench {

struct PastOptions {
  int64_t ended = 0;
  uint64_t seed = 0;
};

// A ledger with that many pods that ended within the last 31 days of the machine's clock. Errors:
// of the ledger.
absl::Status WritePastLedger(const PastOptions& options, const std::string& path);

// One List with the namespaces, quotas and budgets those pods ran under. Errors: Unavailable.
absl::Status WritePastOwners(const std::string& path);

}  // namespace tranche::bench
