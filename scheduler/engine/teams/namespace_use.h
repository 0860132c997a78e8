// What namespaces hold by their ResourceQuotas, in clusters that come from HAMi: asked at filter
// for the most a pod could take on a node, at bind for what it does take. What the pod itself holds
// is left out of every answer.
//
// Externally synchronised, as the state is. Cost: O(log pods); NoteCapUse O(holdings of the node).
#pragma once

#include <string>
#include <vector>

#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/request_context.h"
#include "scheduler/index/namespace_caps.h"

namespace tranche {

class NamespaceUse {
 public:
  explicit NamespaceUse(const ClusterState& state) : state_(state) {}

  // Wherever the pod would run.
  bool CapsAllowLeast(const PodRequest& request) const;
  bool CapsRefuse(const RequestContext& context, NodeId id) const;
  // The first cap that has no room on that node; kNoNode: wherever it would run.
  std::string DescribeCaps(const PodRequest& request, NodeId id) const;
  // After any change of what is held there.
  void NoteCapUse(NodeId id);
  // Sums that differ from what nodes hold, a sentence each.
  void AuditCaps(std::vector<std::string>& faults) const;

  NamespaceCaps caps;

 private:
  const ClusterState& state_;
};

}  // namespace tranche
