// The engine's parts as people and metrics see them. Only the engine's own files include this.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "scheduler/engine/parts.h"

namespace tranche {

class EngineViews {
 public:
  explicit EngineViews(EngineParts& parts) : parts_(parts), cluster_(parts.cluster) {}

  PodView ViewPod(const PodUid& uid, const PodRecord& record);
  // Of several pods of one name the one that has not ended, or the last; nullptr: none.
  const PodRecord* FindNewest(const PodName& pod) const;
  NodeVerdict JudgeNode(const RequestContext& context, NodeId id, bool waits, Instant now);
  // After Select of those of the nodes that suit the pod's spec.
  std::string AdvicePending(const RequestContext& context, const PodRecord& record,
                            std::span<const NodeVerdict> nodes);
  // What is under way for the pod or against it, or what stands in the way of a plan.
  void ExplainReclaim(const PodUid& uid, Explanation& explanation);

 private:
  void DescribeWait(const RequestContext& context, const PodUid& uid, const PodRecord& record,
                    PodView& view);
  void ViewHeld(NodeId id, const PodUid& uid, const PodRecord& record, PodView& view) const;
  std::string DescribeSharing(const RequestContext& context, const NodeEntry& entry) const;
  std::string DescribeMoney(const RequestContext& context, NodeId id, const Worth& worth,
                            Instant now) const;

  EngineParts& parts_;
  ClusterState& cluster_;
};

}  // namespace tranche
