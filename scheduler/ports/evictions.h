// How Tranche makes room: evictions of victims, and the nomination of the pod they make room for.
//
// Thread rule: any thread may call; callbacks come on a thread of the implementation, possibly
// before the call returns, exactly once each.
#pragma once

#include <functional>
#include <optional>

#include "scheduler/ports/write_result.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// An eviction through the Eviction API, which keeps PodDisruptionBudgets.
struct EvictionWrite {
  PodName pod;
  PodUid uid;                   // a precondition
  std::optional<Millis> grace;  // nullopt: the pod's own
};

struct EvictionResult {
  WriteResult write;  // 429: refused by a PodDisruptionBudget (kRejected); 404: no such pod; 409:
                      // another uid, or a conflict
  std::optional<Millis> retry_after;
};

class Evictions {
 public:
  virtual ~Evictions() = default;
  virtual void Evict(EvictionWrite write, std::function<void(EvictionResult)> done) = 0;
  // Sets status.nominatedNodeName (empty: takes it back), so that kube-scheduler keeps lower
  // priorities from the room too. Best effort: our own reservation does not rest on it.
  virtual void Nominate(PodName pod, PodUid uid, NodeName node,
                        std::function<void(WriteResult)> done) = 0;
};

}  // namespace tranche
