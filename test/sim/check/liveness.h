// After ten quiet minutes all is well again.
//
// The rules. One replica leads and answers. Of many pods some were placed, if somebody led for a
// minute before it was quiet. Whoever fits somewhere
// and may have it runs: a pod that waits, is alone (no gang), has no gate, and for which trying
// finds a node with room that is kept for nobody, must not be there if its team has room for it
// beside what its pods and claims use, and no budget. Pods of schedulers that do not ask us are
// theirs to place. No pod is Terminating longer than its grace and two minutes since it was quiet.
// Nothing is `reserved`; the product knows the pods that there are, where they are, and no others.
// Where nobody has a node or waits, and no claim has devices, no quota is used.
// No waiting pod had its status written by us more than sixty times in that time.
#pragma once

#include <map>
#include <set>
#include <string>

#include "test/sim/check/checker.h"
#include "test/sim/check/owners.h"
#include "test/sim/check/terms.h"

namespace tranche::sim::check {

class LivenessChecker : public Checker {
 public:
  using Checker::Checker;
  void Hear(const Happening& happening) override;
  void AtEnd(const Ending& ending) override;

 private:
  void CheckWaiting(const PodLife& pod, SimTime at);
  // Of a scheduler that is none of the simulated kube-schedulers.
  bool IsAnothers(const PodLife& pod) const;
  bool TeamHasRoom(const PodLife& pod, const std::string& node) const;
  void CheckBooks(const Json& pods, SimTime at);
  void CheckUnused(const Json& quotas, SimTime at);

  Owners owners_{truth_, options_.lag};
  Terms terms_;
  std::optional<SimTime> quiet_;
  std::map<std::string, int> pokes_;  // by pod's key, since it was quiet
  std::set<std::string> schedulers_;  // spec.schedulerName of those that ask us
};

}  // namespace tranche::sim::check
