// Pods for which an autoscaler raises nodes: nobody is evicted for them meanwhile (ADR 0057).
//
// What autoscalers say is a hint that anybody with rights to events can forge for pods of the same
// namespace: it makes those pods wait, for so long as policy and class let it, and nothing else.
// Externally synchronised, as the state is. Cost: O(log pods kept).
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "scheduler/engine/preemption/preemptor_queue.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/facts/reclaim.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

class AwaitedNodes {
 public:
  // What was said longer ago is over, be it that the node came.
  static constexpr Millis kRemembered{60 * 60 * 1000};
  // An autoscaler looks at pods that wait every ten seconds (cluster-autoscaler's scan-interval,
  // Karpenter's batchMaxDuration), and is given a little longer to say something of a new one.
  static constexpr Millis kFirstLook{15'000};
  static constexpr std::size_t kMost = 50'000;  // pods; of more than that nothing is kept

  explicit AwaitedNodes(ClusterState& cluster) : cluster_(cluster) {}

  // An autoscaler said at `told` that it raises a node for the pod. Only its first word counts: a
  // node that does not come is asked for again and again. The pod need not be known.
  void Note(const PodUid& uid, Instant told, Instant now);
  void Forget(const PodUid& uid);
  // Until when nobody is to be evicted for them, and why; nullopt: it may be done now, or room is
  // not what they lack.
  std::optional<PlanBlock> HoldOf(const Preemptor& preemptor, Instant now) const;
  // How long a pod like it waits at most for a node; zero: no autoscaler was heard of, or policy
  // or class forbid it.
  Millis LongestFor(const Preemptor& preemptor, Instant now) const;
  std::size_t size() const { return told_.size(); }

 private:
  ClusterState& cluster_;
  std::unordered_map<PodUid, Instant> told_;
  std::set<std::pair<Instant, PodUid>> by_time_;
  std::optional<Instant> heard_;  // the last word of any autoscaler
};

}  // namespace tranche
