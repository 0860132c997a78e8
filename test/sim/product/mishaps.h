// What happens to replicas that should not: kills, pauses, clocks that jump or drift, a disk that
// fails. One second of one replica at a time; each goes through the Script and can be left out.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "test/sim/base/faults.h"
#include "test/sim/base/loop.h"
#include "test/sim/base/script.h"
#include "test/sim/product/clocks.h"
#include "test/sim/product/replica.h"
#include "test/sim/product/volume.h"

namespace tranche::sim {

// A replica as what can be hurt.
struct Hurt {
  Replica* life = nullptr;  // null: it is dead
  MachineClocks* clocks = nullptr;
  Volume* volume = nullptr;  // null: there is none
  std::function<void()> kill;
  std::function<void(const std::string& what)> tell;
  std::function<void()> cut_at_death;  // the next process that ends takes the power with it
  std::function<void(uint64_t seed)> cut_power;
};

class Mishaps {
 public:
  Mishaps(Script& script, const FaultPlan& faults) : script_(script), faults_(faults) {}

  // Whatever strikes within the next second, as steps of `self`.
  void Strike(Loop& loop, Actor self, const Hurt& hurt);
  void Quiet() { quiet_ = true; }

 private:
  std::optional<Draws> Draw(Fault fault);
  void Kill(Loop& loop, Actor self, const Hurt& hurt, Draws& draws);
  void Pause(Loop& loop, const Hurt& hurt, Draws& draws);
  void SetClock(const Hurt& hurt, Draws& draws);
  void BreakDisk(Loop& loop, Actor self, const Hurt& hurt, Draws& draws);

  Script& script_;
  const FaultPlan faults_;
  bool quiet_ = false;
};

}  // namespace tranche::sim
