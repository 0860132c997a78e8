// One run: a stream of arrivals on an empty fleet, lost where they fit nowhere, no queue.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bench/mig/policies.h"

namespace tranche::bench {

// Over the measured time.
struct MigFigures {
  double slots = 0;        // time average of the memory units in use, percent
  double gpus_in_use = 0;  // time average
  std::array<int64_t, kMigProfiles> arrived = {};
  std::array<int64_t, kMigProfiles> accepted = {};
  int64_t moves = 0;
  int64_t decisions = 0;  // of the whole run
  double seconds = 0;     // spent in them

  int64_t Arrived() const;
  int64_t Accepted() const;
};

MigFigures SimulateMig(const std::vector<MigArrival>& arrivals, int gpus, MigPolicy& policy);

}  // namespace tranche::bench
