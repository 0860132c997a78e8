// What is recorded of pods for later (scheduler/ledger/past) is what became of them: nobody has a
// row who was never made, none says another node than the pod's, and none an end of one that lives.
//
// What was not recorded in time is no fault: a leader that ends by force loses its last seconds.
#pragma once

#include "test/sim/check/checker.h"

namespace tranche::sim::check {

class PastChecker : public Checker {
 public:
  using Checker::Checker;
  void AtEnd(const Ending& ending) override;

 private:
  void CheckFile(const std::string& path, SimTime at);
};

}  // namespace tranche::sim::check
