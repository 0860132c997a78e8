// One run: jobs that queue from time 0 for the GPUs of one machine and start strictly in order.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/ring/matrix.h"
#include "bench/ring/policies.h"

namespace tranche::bench {

struct RingJob {
  int gpus = 0;
  int service = 0;  // time units
  bool sensitive = false;
};
// Depends on the seed alone.
std::vector<RingJob> DrawRingJobs(int count, uint64_t seed);

// One value a job.
struct RingFigures {
  std::vector<double> bandwidth;   // of its ring, GB/s
  std::vector<double> ratio;       // of the ideal for its size
  std::vector<double> bottleneck;  // weakest link of the best ring through its GPUs, GB/s
};

struct RingRun {
  RingFigures sensitive;
  RingFigures insensitive;
  std::vector<double> choose_us;  // one value a choice
};

// Adds a run's values to `run`.
void SimulateRing(const RingMatrix& matrix, const std::vector<RingJob>& jobs, RingPolicy& policy,
                  RingRun& run);

}  // namespace tranche::bench
