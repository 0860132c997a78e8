// What a placement newly costs, in milli-GPU of its node that are paid for because of it.
//
// A pure function. Cost: a division where pod and node say when they end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/scoring/score.h"
#include "topology/base/int128.h"
#include "topology/base/units.h"

namespace tranche {

// An hour of the pod's, on average. Where all say how long they run, a node in use costs what the
// pod stays beyond the last of them; else see Worth::paid.
inline int64_t NewlyPaid(const Worth& worth, const NodePay& pay, const PodRequest& request,
                         Instant now) {
  const std::optional<Millis>& runtime = request.expected_runtime;
  if (!runtime || *runtime <= Millis::zero() || pay.until <= now || worth.paid == 0) {
    return worth.paid;
  }
  const Millis beyond = std::max(now + *runtime - pay.until, Millis::zero());
  return MulDivFloor(pay.milli, beyond.count(), runtime->count());
}

}  // namespace tranche
