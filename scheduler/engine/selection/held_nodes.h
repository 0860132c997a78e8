// Nodes kept for a gang that waits until work there has ended, as it declared. Others may use them
// if they have ended before. Externally synchronised, as the state is. Cost: a look-up.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "scheduler/engine/state/cluster_state.h"

namespace tranche {

struct GangHold {
  std::string gang;  // key; empty: nobody holds
  Instant start;     // when it is expected to start
  std::set<NodeName> nodes;
  Instant looked_at;  // when this was worked out
  // Its class and team: work of a higher class, and of others within their quota, is not kept out.
  int rank = 0;
  std::string leaf = {};            // empty: of no team
  std::optional<Instant> due = {};  // the earliest start that was promised; then the hold ends
};

class HeldNodes {
 public:
  explicit HeldNodes(const ClusterState& cluster) : cluster_(cluster) {}

  // The node is kept for a gang, and the pod would still be there when that starts. Whether its
  // class or its quota lets it pass is TeamRules::MayPassHold.
  bool IsHeldFrom(const PodRequest& request, NodeId id, Instant now) const;
  // When the pod will have ended, by its own word; nullopt: it does not say, or has outlived it.
  std::optional<Instant> EndOf(const PodUid& uid, Instant now) const;

  GangHold hold;

 private:
  const ClusterState& cluster_;
};

}  // namespace tranche
