// Does a waiting pod fit on a node? By trying, over the objects as they are stored.
//
// It knows the plain cases: whole GPUs and MIG instances counted by a stock node's plugin, shares
// (Tranche's and HAMi's words) on the cards of a HAMi register or tranche-node's, CPU, node
// selectors, cordons and taints. Of anything else it says that it does not know.
//
// Pure over the truth. Cost: the pods of the node.
#pragma once

#include <string>

#include "test/sim/check/truth.h"

namespace tranche::sim::check {

enum class Fit : uint8_t {
  kYes,
  kFull,     // it would, were the node emptier
  kNever,    // not even when it is empty
  kClosed,   // the node takes no pods now
  kUnknown,  // the question is beyond this model
};
// Do pods that are leaving still hold what they have? Room that is kept may be theirs until then.
enum class Leaving : uint8_t { kHolds, kGone };
// `without`: as if this one were not there.
Fit FitOn(const Truth& truth, const PodLife& pod, const std::string& node,
          Leaving leaving = Leaving::kHolds, const PodLife* without = nullptr);

// Does the pod ask for GPUs in words that the product reads?
bool AsksGpu(const Json& pod);
// How many cards it asks for, or MIG instances.
int64_t GpusOf(const PodLife& pod);
// "ns/gang" by Tranche's own annotation; empty: none.
std::string GangOf(const PodLife& pod);
int64_t GangSizeOf(const PodLife& pod);

}  // namespace tranche::sim::check
