// A world of jobs that wait and run, whose starts are foretold as it goes and known in the end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/tenants/trace.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/foresight/forecast.h"

namespace tranche::bench::forecast {

// When a job starts by rules of thumb, at one moment.
struct Thumbs {
  int64_t median = 0;  // as the last hundred that started waited in the median
  int64_t mean = 0;    // as they did on average
  // Its position in its tenant's queue times how long jobs ran on average, and times that of all
  // the tenant's GPUs together for the mean job.
  int64_t position = 0;
  int64_t position_by_gpus = 0;
};

// Of one job at one moment.
struct Foretold {
  std::size_t job = 0;
  int64_t asked = 0;  // s; all times are since the start
  int64_t start = 0;
  Thumbs thumbs;
  bool given = false;  // a median was
  bool covered = false;
  bool covered_before = false;  // by what rehearsals said, before it was moved
  int64_t p50 = 0;
  int64_t width = 0;  // from p10 to p90
};

// A node of kGpusPerNode.
NodeFacts NodeOf(int number);
PodRequest WholeGpus(PodUid uid, PodName name, int gpus);

struct World {
  Trace trace;
  bool declared = false;
  int64_t quiet = 0;  // s in which nothing is foretold yet
};

// Jobs of short and long kinds, about as much work as the nodes can do. `at_once`: all are there
// from the start and nobody comes later; nothing is foretold on the first day, on which it looks as
// if as many more would come.
World Synthetic(uint64_t seed, int jobs, bool declared, bool at_once);
// Jobs as those of clusters of GPUs are told to be (Hu et al., SC 2021, Helios): most are short and
// take one GPU, a few take nearly all GPU time, runtimes spread over five orders of magnitude,
// people send many alike at once, by day three times as many as by night. Names tell nothing.
World Uneven(uint64_t seed, int jobs);
// Lives through the world; every so often the starts of those that wait are foretold.
std::vector<Foretold> Live(const World& world, int64_t every_seconds, int most_rehearsals);

}  // namespace tranche::bench::forecast
