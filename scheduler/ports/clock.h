// Where the shell takes the time from; the core only ever sees values.
#pragma once

#include <optional>
#include <vector>

#include "topology/base/units.h"

namespace tranche {

// The machine's clock was set forward: the moment it left and the one it came to, which follow each
// other without any time between. (Set back, our time runs on at its true rate, ahead of the wall.)
struct ClockStep {
  Instant from;
  Instant to;
};

// What the API server's clock says, as far as its answers tell: something between the two.
struct ClusterTime {
  Instant earliest;
  Instant latest;
};

class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back within a process; runs at the rate of the boot-time clock. Any thread.
  virtual Instant Now() const = 0;
  // Steps since the last call, oldest first; each is returned once. Take them before Now.
  virtual std::vector<ClockStep> TakeSteps() { return {}; }
  // At this moment; nullopt: nothing is known of it. Any thread.
  virtual std::optional<ClusterTime> Cluster() const { return std::nullopt; }
};

}  // namespace tranche
