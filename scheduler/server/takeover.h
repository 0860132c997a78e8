// What one who takes part in an election goes by beside the lease itself, however its threads run.
//
// Pure but for the files they name.
#pragma once

#include <chrono>
#include <cstdint>

#include "scheduler/server/config.h"
#include "scheduler/server/standby_buffer.h"

namespace tranche {

// How long a new leader waits for a ledger that another process still has, and between two looks:
// one that was paused or cut off ends as soon as it notices. After that it leads without.
inline constexpr std::chrono::milliseconds kLedgerPatience{5'000};
inline constexpr std::chrono::milliseconds kLedgerRetry{100};

// A write of an old leader is over before another leader looks: what it may send last, it sends
// `renew` after its last renewal, and another begins after `lease`.
std::chrono::milliseconds WriteTime(const ElectionOptions& election,
                                    std::chrono::milliseconds otherwise);

// Nobody had this epoch or a later one, by what the ledger and records of pods say; `next` follows
// by the lease, which counts anew where it was deleted.
int64_t LeastEpoch(const ServeConfig& config, const StandbyBuffer& buffer, int64_t next);

}  // namespace tranche
