// One run: gangs come and go beside other pods that stay; what does not fit is lost.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/gang/policies.h"

namespace tranche::bench {

struct GangArrival {
  double at = 0;
  double leaves = 0;
  int members = 0;
};
// Poisson arrivals, lives of mean 1, sizes from 2 to 64 whose logarithm is uniform; `load`: members
// that would run at a time if none were lost, by free seats.
std::vector<GangArrival> DrawGangs(std::size_t count, double load, double seats, uint64_t seed);

// Sums over the gangs that were placed after the first tenth of the arrivals.
struct GangFigures {
  int64_t arrived = 0;
  int64_t placed = 0;
  // Domains spanned by the fewest possible: in the empty cluster, and at that moment.
  double racks_to_empty = 0;
  double blocks_to_empty = 0;
  double racks_to_now = 0;
  double blocks_to_now = 0;
  // Gangs that an empty cluster would hold in one rack, block or zone: placed in one such domain;
  // there was room for that at that moment.
  int64_t levelled = 0;
  int64_t met = 0;
  int64_t could = 0;
  // Of the whole run.
  int64_t plans = 0;
  double seconds = 0;
  double longest_seconds = 0;
};

GangFigures SimulateGangs(const GangTree& tree, const std::vector<GangArrival>& arrivals,
                          GangCluster cluster, const GangPolicy& policy);

}  // namespace tranche::bench
