// What a ledger does before it is written to again: check what is new, and read what is needed.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/facts/metering.h"
#include "scheduler/ledger/history.h"
#include "scheduler/ledger/sqlite/sqlite.h"

namespace tranche::ledger {

struct StartState {
  MeterHistory history;
  Instant last_time;  // the newest time anywhere in the file
  int64_t last_entry = 0;
  int64_t epoch = 0;   // of the last entry
  bool clean = false;  // the last writer closed it in order
  // Ends that the file lacks of pods that were opened again; in the history they are done.
  std::vector<MeterEvent> lost_ends;
};

// Rules 1 to 3 and 5 of every entry since the sums were last noted, hashes of these and of every
// entry that is handed out, balances against the sums. History from `from` on. Sequential reads;
// about 2 microseconds an entry.
// Errors: DataLoss naming rule, entry, expected, found.
absl::StatusOr<StartState> CheckAndReadHistory(Database& database, Instant from, PastForm form);

}  // namespace tranche::ledger
