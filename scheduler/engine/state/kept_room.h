// Room that plans under way keep for waiting pods, as anybody may ask for it.
//
// Reads the cluster and the plans; changes nothing. Externally synchronised, as the state is. Cost:
// a look-up a call; SharesWith O(members of plans under way).
#pragma once

#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/earmarks.h"
#include "scheduler/engine/state/preemption_state.h"

namespace tranche {

// A terminating pod that outlives its grace by this much is no longer expected to leave.
inline constexpr Millis kLeaveSlack{60'000};
// Terminating, and expected to be gone in time.
bool IsLeaving(const PodRecord& record, Instant now);

class KeptRoom {
 public:
  KeptRoom(ClusterState& cluster, const PreemptionState& reclaims)
      : cluster_(cluster), reclaims_(reclaims) {}

  // What is kept for others that count on the same room as the pod's own.
  RoomShares SharesWith(const PodUid& uid) const;
  // Every victim is gone, and the pod's devices wait for it on that node.
  bool IsReserved(const PodUid& uid, const NodeName& node) const;
  // The node on which devices are kept for the pod while its victims leave; kNoNode: none.
  NodeId AwaitedNode(const PodUid& uid) const;

 private:
  ClusterState& cluster_;
  const PreemptionState& reclaims_;
};

}  // namespace tranche
