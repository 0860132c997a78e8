// What a waiting pod that filter has not judged yet would be charged at most, for people.
//
// Looked at for every waiting pod at once, several times a second, so it is worked out once for
// requests of one shape over the kinds of node there are, and kept with the pod: a pod that nobody
// can serve costs no more than others. Externally synchronised, as the state is. Cost: a comparison
// a pod; for a new shape O(kinds of node); after nodes changed O(nodes), once.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduler/engine/state/cluster_state.h"

namespace tranche {

class ForeseenCharges {
 public:
  explicit ForeseenCharges(const ClusterState& cluster) : cluster_(cluster) {}

  // GPU-equivalents in quanta, by the first node that has the kind; 0: none has.
  int64_t Of(PodRecord& record);
  // The first node of each kind, ascending.
  const std::vector<NodeId>& OneOfEachKind() {
    LookAtNodes();
    return first_;
  }
  // Nodes are seen in another way now.
  void Forget() { inventories_ = 0; }
  // Inventories looked at since the start, as a measure of the work.
  int64_t looks() const { return looks_; }

 private:
  void LookAtNodes();
  int64_t WorkOut(const PodRequest& request);

  const ClusterState& cluster_;
  uint64_t inventories_ = 0;        // of the cluster, when it was looked at last
  uint64_t generation_ = 0;         // grows when other kinds are there, or in another order
  std::vector<ChargeKind> kinds_;   // by their first nodes, ascending
  std::vector<NodeId> first_;       // likewise
  std::vector<int64_t> looked_at_;  // by kind: the walk in which it was seen
  int64_t walks_ = 0;
  int64_t looks_ = 0;
  std::unordered_map<std::string, int64_t> by_shape_;  // of this generation
  std::string shape_;                                  // scratch
  std::vector<ModelCharge> parts_;                     // likewise
};

}  // namespace tranche
