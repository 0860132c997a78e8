// The clocks of a simulated machine, and how the product comes to read them: while a step of a
// process runs, clock_gettime of this whole program answers by the clocks of its machine. So
// whatever reads a clock, and be it a library, reads simulated time.
//
// Thread rule: one thread. Outside of steps the clocks are those of the real machine.
#pragma once

#include <chrono>
#include <cstdint>

#include "test/sim/base/loop.h"

namespace tranche::sim {

class MachineClocks {
 public:
  // `running`: for how long the machine has been running when the world begins.
  MachineClocks(const Loop& loop, std::chrono::seconds running);

  // Nanoseconds of CLOCK_BOOTTIME and CLOCK_MONOTONIC, and since 1970.
  int64_t Boot() const;
  int64_t Wall() const;
  // From now on both run so many parts in a million faster.
  void Drift(int parts);
  void JumpWall(std::chrono::milliseconds by) {
    wall_ahead_ += std::chrono::nanoseconds(by).count();
  }
  // Runs at the true rate, and the wall clock is right.
  void Mend();
  // How long until Boot is that, at the present rate; zero: it is by now.
  SimTime Until(int64_t boot) const;

 private:
  const Loop& loop_;
  int parts_ = 0;
  SimTime since_{0};        // of this rate
  int64_t boot_at_since_;   // what Boot was then
  int64_t wall_ahead_ = 0;  // of a true clock that began with Boot
  const int64_t began_;     // Boot when the world began
};

// The clocks that are read as long as it lives.
class ClockScope {
 public:
  explicit ClockScope(const MachineClocks& clocks);
  ~ClockScope();
  ClockScope(const ClockScope&) = delete;
  ClockScope& operator=(const ClockScope&) = delete;

 private:
  const MachineClocks* const before_;
};

}  // namespace tranche::sim
