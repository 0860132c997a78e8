#include "scheduler/server/takeover.h"

#include <algorithm>

#include "scheduler/ledger/sqlite_ledger.h"

namespace tranche {

std::chrono::milliseconds WriteTime(const ElectionOptions& election,
                                    std::chrono::milliseconds otherwise) {
  return std::min(otherwise, (election.lease - election.renew) * 4 / 5);
}

int64_t LeastEpoch(const ServeConfig& config, const StandbyBuffer& buffer, int64_t next) {
  const int64_t kept = config.ledger.empty() ? 0 : ledger::SqliteLedger::LastEpoch(config.ledger);
  // A record could tell any number: many may write pods.
  const int64_t told = buffer.HighestEpoch(std::max(kept, next) + kMostEpochsAhead);
  return std::max(next, std::max(kept, told) + 1);
}

}  // namespace tranche
