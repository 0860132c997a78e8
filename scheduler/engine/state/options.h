// How the engine is to work: set once, by the configuration of the process.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/engine/placeholders/placeholder_books.h"
#include "topology/base/units.h"

namespace tranche {

struct EngineOptions {
  // spec.schedulerName of pods that come to us, known before one was asked about; empty: none.
  std::string scheduler = "gpu-scheduler";
  // Written into allocations. Larger ones are not believed, but for those that are found at start
  // and are at most kMostEpochsAhead higher: from the highest of them the engine goes on.
  int64_t epoch = 1;
  Millis tentative_lifetime{10'000};  // zero: tentative placements never end by time
  Millis unstable_for{30'000};        // after a node's devices vanished and came back
  Millis gang_hold_after{300'000};    // nodes are kept for a gang that has waited so long
  // Devices kept for a preemptor whose victims are gone, or for a gang none of whose pods comes.
  Millis reservation_ttl{120'000};
  Millis agent_patience{300'000};  // then a pod its node's agent did not serve is passed over
  bool nominates = true;           // may tell kube-scheduler nodes before it asks (ADR 0051)
  bool namespace_caps = false;     // keep ResourceQuotas as HAMi does
  bool placeholders = false;       // pods of ours hold cards of stock nodes that others share
  PlaceholderTimes placeholder_times;
  uint64_t name_seed = 0;  // of the hash of node names; changes no result
};

}  // namespace tranche
