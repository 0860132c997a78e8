// All of the world that has to do with resource claims, where a seed has them: nodes whose GPUs a
// DRA driver hands out, its controller, and those who use it.
//
// Thread rule: one thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "test/sim/base/draws.h"
#include "test/sim/claims/claim_controller.h"
#include "test/sim/claims/claim_work.h"
#include "test/sim/claims/drivers.h"

namespace tranche::sim {

// Drawn by themselves, so that a seed without them is as it was: some nodes, or none.
std::vector<Machine> DrawDraMachines(Draws draws);

class ClaimWorld {
 public:
  ClaimWorld(Loop& loop, History& history, Script& script, const FaultPlan& faults, ApiServer& api,
             const std::vector<Machine>& machines, ClaimWorkOptions options,
             std::function<ClaimWork::Mood()> mood, Draws draws);

  Drivers& drivers() { return drivers_; }
  void Start();
  void Quiet();

 private:
  ApiServer& api_;
  Drivers drivers_;
  ClaimController controller_;
  ClaimWork work_;
};

}  // namespace tranche::sim
