// A question about pods that do not exist, carried over several calls of the engine: each call puts
// the pods of earlier ones back where they were, tries further ones, and takes everything back.
//
// A value; belongs to who asks. What the cluster does between two calls is seen by the pods that
// come after; a node that went takes the seats on it along.
#pragma once

#include <set>
#include <vector>

#include "quota/quota_book.h"
#include "scheduler/engine/state/views.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/index/node_state.h"

namespace tranche {

struct WhatIfCase {
  struct Seat {
    NodeName node;
    Holding holding;
    HeldWork work;
  };

  std::vector<PodRequest> pods;
  std::vector<WhatIfResult> results = {};  // of the first pods, in their order
  std::vector<Seat> seats = {};            // of those that were placed
  std::set<PodUid> gone = {};              // victims of plans made on the way

  bool done() const { return results.size() >= pods.size(); }
};

}  // namespace tranche
