// Resource claims are kube-scheduler's to allocate and ours to charge: once, from the allocation to
// its end, whoever uses them.
//
// The rule. Nobody of ours writes a claim. No device is in two allocations at a time (the world's
// own law, on which the rest stands). A claim was allocated from a write of its status (A) until
// the allocation was taken away or the claim was gone (E). What the ledger charges under
// "claim/UID" begins no earlier than the first A and ends no later than the last E, and begins
// and ends within a second of them, or of when somebody who led could know (who was lost before the
// news came could not); an allocation that came and went within the lag of the news may be missed.
// A claim that was never allocated is charged nothing, nor is a pod that asks for GPUs by claims
// alone. When all is quiet, a pod whose claims ask for whole GPUs that are free on an open node
// runs, where no quota can keep it waiting. Not judged: clocks that are wrong, ledgers whose disk
// failed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "test/sim/check/checker.h"
#include "test/sim/check/ledger.h"
#include "test/sim/check/terms.h"

namespace tranche::sim::check {

class ClaimChecker : public Checker {
 public:
  using Checker::Checker;
  void Hear(const Happening& happening) override;
  void AtEnd(const Ending& ending) override;

 private:
  void HearClaim(const Happening& happening);
  void Judge(const ClaimLife& claim, const Charged* charged, SimTime now);
  void CheckWaiting(const PodLife& pod, SimTime now);

  Terms terms_;
  std::optional<SimTime> quiet_;
  std::map<std::string, std::string> holders_;  // device -> uid of the claim
};

}  // namespace tranche::sim::check
