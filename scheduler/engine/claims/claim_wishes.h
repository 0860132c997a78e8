// What the claims of a pod ask for, and what a node would give and charge for them.
//
// Reads the cluster. Externally synchronised, as the state is. Cost: WordOn tries an allocation on
// the node's devices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/dra/allocate.h"
#include "scheduler/dra/catalog.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/facts/pod_claims.h"

namespace tranche {

// The claims of a pod.
struct ClaimWish {
  std::vector<const dra::Claim*> claims;             // those known, in order
  std::vector<std::unique_ptr<dra::Claim>> made_up;  // of extended resources and templates
  bool unknown = false;                              // some claim has not been seen
  bool holds_gpus = false;                           // one of them is allocated GPUs
};

// What they come to on one node.
struct ClaimOutlook {
  std::vector<ModelCharge> parts;  // of claims not allocated yet
  dra::Prediction prediction;
  int64_t cost = 0;  // lower is better
};

// The cost of a node nobody can say anything about.
inline constexpr int64_t kUnpredictedCost = int64_t{1} << 32;

// Is the claim allocated GPUs?
bool HoldsGpus(const dra::Claim& claim);

class ClaimWishes {
 public:
  explicit ClaimWishes(ClusterState& cluster) : cluster_(cluster) {}

  ClaimWish Of(const std::string& ns, const dra::PodClaims& claims);
  ClaimWish Of(const PodRequest& request);  // by its extended resources
  // What slices tell of the node's devices; null: nothing.
  const dra::NodeBooks* BooksOn(NodeId id);
  std::vector<ModelCharge> PartsOn(const ClaimWish& wish, NodeId id);
  ClaimOutlook On(const ClaimWish& wish, NodeId id) {
    dra::StepBudget alone;
    return On(wish, id, alone);
  }
  // One of many nodes that a call asks about.
  ClaimOutlook On(const ClaimWish& wish, NodeId id, dra::StepBudget& budget);
  // How often an allocation was tried so far.
  int64_t trials() const { return trials_; }
  // DRA may serve the node: no card of it is the device plugin's.
  bool HasOnlyDraGpus(NodeId id) const;

 private:
  ClusterState& cluster_;
  int64_t trials_ = 0;
};

}  // namespace tranche
