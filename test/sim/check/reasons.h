// What explain says of a waiting pod is true: brute force over the objects agrees.
//
// The rule. At the end, when all is quiet, of every waiting pod and every node it is asked about:
// "fits" where trying says that the node is full or can never take it is wrong; so is NoRoom,
// TooManyPerNode or TooLarge where trying says that it fits, unless room there is kept for others
// by a reclaim or a gang. Nodes that trying does not understand are not judged.
//
// At all times, of each answer of the filter verb: that devices of a node cannot be told apart is
// wrong where the node's agent names its cards, and we bound all pods that hold some there, by
// records that nobody has changed since.
#pragma once

#include <string>

#include "test/sim/check/checker.h"

namespace tranche::sim::check {

class ReasonChecker : public Checker {
 public:
  using Checker::Checker;
  void Hear(const Happening& happening) override;
  void AtEnd(const Ending& ending) override;

 private:
  bool AllIsKnownOn(const std::string& node, SimTime now) const;
  void Judge(const PodLife& pod, const Json& explained, SimTime at);
};

// Room on the node is kept for some pod that waits, by a reclaim or a nomination.
bool IsKeptForSomebody(const Truth& truth, const std::string& node);

}  // namespace tranche::sim::check
