// How a leader's host is to work, by the configuration and the ledger at hand.
//
// Thread rule: once, where the leadership begins.
#pragma once

#include <cstdint>
#include <functional>

#include "scheduler/controllers/forecaster.h"
#include "scheduler/host/host.h"
#include "scheduler/ledger/sqlite_ledger.h"
#include "scheduler/server/config.h"

namespace tranche {

// Takes the history out of `book` (null: nothing is kept over a restart), from which `runs` learns.
HostOptions MakeHostOptions(const ServeConfig& config, int64_t epoch, ledger::SqliteLedger* book,
                            RunNotes& runs, std::function<bool()> may_write);

}  // namespace tranche
