// How long a forecast of a large fleet takes.
#pragma once

#include <cstddef>

namespace tranche::bench::forecast {

struct FleetCost {
  int nodes = 0;
  std::size_t running = 0;
  std::size_t waiting = 0;
  std::size_t with_time = 0;
  int rehearsals = 0;
  double copy_seconds = 0;      // in slices, each of which holds the engine
  double longest_slice_ms = 0;  // of them
  double seconds = 0;           // of one core, the forecast itself
};

// Nodes of eight GPUs that work of a hundred teams fills; `waiting` pods more wait, of which nobody
// declares how long they run. Runtimes were learned.
FleetCost ForetellFleet(int nodes, int waiting);

}  // namespace tranche::bench::forecast
