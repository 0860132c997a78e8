// When an eviction costs least, waiting counted.
//
// Work that writes checkpoints loses least right after one, and its last two tell when the next is
// due. Whoever waits for that moment wastes time instead: a GPU-second of waiting counts a tenth of
// one of work that is lost, which is computed again, on GPUs that others want (ADR 0050).
#pragma once

#include <optional>
#include <span>

#include "quota/preemption/lost_work.h"
#include "quota/tree/charge.h"
#include "topology/base/units.h"

namespace tranche {

// A victim, and how what it would lose goes on.
struct WorkInTime {
  WorkAtRisk work;
  std::optional<Millis> assumed;  // see LostRuntime
  Millis gap{0};                  // between its last two checkpoints; zero: nobody knows
};

// The next checkpoint that is due after `now`; nullopt: it is not known, or long overdue.
std::optional<Instant> NextCheckpoint(const WorkInTime& victim, Instant now);

// The moment of one of a victim's next eight checkpoints, no later than `latest`, by which it is
// better to wait before all of the victims go for work that is charged `waiting`; nullopt: they go
// now. Of moments that cost the same the first. Cost: O(victims^2).
std::optional<Instant> BetterMoment(std::span<const WorkInTime> victims, const Charge& waiting,
                                    Instant now, Instant latest);

}  // namespace tranche
