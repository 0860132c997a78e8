// One life of a fleet under one policy: work comes, machines are rented and given back, spot ones
// are taken away. Deterministic: the seed alone says when.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/cost/fleet.h"
#include "bench/cost/market.h"
#include "bench/cost/work.h"

namespace tranche::bench::cost {

struct Rules {
  int64_t boot = 180;           // s from renting a machine to the first work on it; paid
  int64_t idle = 600;           // s a machine is empty before it is given back; paid
  int64_t checkpoint = 1'800;   // s of work between two checkpoints of what bears spot
  double mean_spot_hours = 24;  // until a spot machine is taken away, exponential
};

struct Figures {
  double money = 0;              // of all machines
  double gpu_hours = 0;          // of work done; what was lost does not count
  double wait_seconds = 0;       // mean over tasks, restarts included
  double interrupted_hours = 0;  // GPU-hours that were lost
  int64_t interruptions = 0;     // of machines with work
  int64_t rented = 0;            // machines
  int64_t dropped = 0;           // tasks that no offer could hold
  double per_gpu_hour() const { return gpu_hours > 0 ? money / gpu_hours : 0; }
};

absl::StatusOr<Figures> Live(const std::vector<Task>& tasks, const std::vector<Offer>& offers,
                             const Rules& rules, uint64_t seed, Policy& policy);

// Less money than this does no work: every pod at the least price of its share, GPUs or CPUs, of an
// offer that it bears; no boot, no idle time, nothing lost. Per GPU-hour.
double LowerBound(const std::vector<Task>& tasks, const std::vector<Offer>& offers);

}  // namespace tranche::bench::cost
