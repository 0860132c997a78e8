// What pods ask for over time, for advice. Externally synchronised, as the state is. Cost: the
// kinds a request counts as, a handful.
#pragma once

#include <span>

#include "scheduler/advice/demand.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/facts/asked_before.h"

namespace tranche {

class DemandNotes {
 public:
  explicit DemandNotes(ClusterState& cluster) : cluster_(cluster) {}

  // The pod wants devices, or has them.
  void Note(PodRecord& record, Instant now);
  void End(PodRecord& record, Instant now);
  // What pods asked for before the first one was told of.
  void Recall(std::span<const AskedBefore> pods, Instant now);

  DemandLog log;

 private:
  ClusterState& cluster_;
};

}  // namespace tranche
