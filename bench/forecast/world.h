// A world of jobs that wait and run, whose starts are foretold as it goes and known in the end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/tenants/trace.h"
#include "scheduler/foresight/forecast.h"

namespace tranche::bench::forecast {

// Of one job at one moment.
struct Foretold {
  std::size_t job = 0;
  int64_t asked = 0;  // s; all times are since the start
  int64_t start = 0;
  int64_t baseline = 0;
  bool given = false;  // a median was
  bool covered = false;
  int64_t p50 = 0;
};

struct World {
  Trace trace;
  bool declared = false;
};

// Jobs of short and long kinds, about as much work as the nodes can do.
World Synthetic(uint64_t seed, int jobs, bool declared);
// Lives through the world; every so often the starts of those that wait are foretold.
std::vector<Foretold> Live(const World& world, int64_t every_seconds, int most_rehearsals);

}  // namespace tranche::bench::forecast
