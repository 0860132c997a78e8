// What people read of a reclaim: events on the pods it is for, on its victims, and on the
// budget or quota that asks for it.
//
// Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/facts/reclaim.h"
#include "scheduler/ports/object_writes.h"

namespace tranche {

// Victims whose eviction was taken since `before`; nullopt: the reclaim is new.
std::vector<const ReclaimVictim*> NewlyEvicted(const std::optional<Reclaim>& before,
                                               const Reclaim& after);
// The events of the step from `before`. Events about objects that are not pods carry no uid
// yet.
std::vector<EventWrite> EventsOf(const std::optional<Reclaim>& before, const Reclaim& after,
                                 Instant now);
EventWrite EventOf(const RunLimitWarning& warning, Instant now);

}  // namespace tranche
