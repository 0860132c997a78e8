// How a leader's host is to work, by the configuration and the ledger at hand.
//
// Thread rule: once, where the leadership begins.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "scheduler/controllers/forecaster.h"
#include "scheduler/facts/asked_before.h"
#include "scheduler/facts/gpu_use.h"
#include "scheduler/host/host.h"
#include "scheduler/ledger/sqlite_ledger.h"
#include "scheduler/server/config.h"

namespace tranche {

// What the ledger tells of before that is no part of what is charged.
struct Remembered {
  std::vector<AskedBefore> asked;  // of the last days, the last pods
  std::vector<PodWork> work;
};
// Read from the ledger's file; without it, or where it cannot be read, nothing. Cost: with what the
// engine makes of it 1 to 3 us a pod.
Remembered Remember(const ServeConfig& config, Instant now);

// Takes the history out of `book` (null: nothing is kept over a restart), from which `runs` learns.
HostOptions MakeHostOptions(const ServeConfig& config, int64_t epoch, ledger::SqliteLedger* book,
                            std::vector<AskedBefore> asked, RunNotes& runs,
                            std::function<bool()> may_write);

}  // namespace tranche
