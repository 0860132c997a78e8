// The benchmark `tranche-bench gang`: how close together the members of gangs are placed, in a tree
// of zones, blocks and racks that other pods use too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/gang/cluster.h"

namespace tranche::bench {

struct GangOptions {
  GangTree tree;
  double background = 0.7;  // share of all GPUs that other pods hold
  double load = 0.7;        // of what they leave
  int gangs = 1'000;        // that arrive in a run
  std::vector<std::string> scenes = {"empty-8",  "packed-8", "packed-4",
                                     "random-4", "random-2", "random-1"};
  std::vector<std::string> policies = {"random", "binpack", "first-fit", "tranche"};
  std::string seeds = "42..51";
  std::string out;
};

absl::Status RunGang(const GangOptions& options);

}  // namespace tranche::bench
