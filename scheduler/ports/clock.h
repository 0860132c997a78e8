// Where the shell takes the time from; the core only ever sees values.
#pragma once

#include "topology/base/units.h"

namespace tranche {

class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back within a process. Any thread.
  virtual Instant Now() const = 0;
};

}  // namespace tranche
