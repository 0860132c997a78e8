// tranche-bench storm: how long one caller keeps all others waiting, in situations that were made
// to hurt: many pods at once, a model nobody has, a namespace every second, a huge gang, a drain,
// weeks of ended pods under rolling budgets, pods with hundreds of containers, clients that read
// nothing.
//
// Protocol: for each scene an engine behind its host, as the server has it, takes in a fleet and
// what the scene needs. Then one thread plays the scene and does what the server does by itself
// (ticks, planning, statuses), while another one asks filter about a pod over all GPU nodes again
// and again. What filter took is compared with the first scene, in which nothing happens; the
// longest hold of the engine is the host's own figure. On a machine with other work the times are
// those of a busy machine: compare rows of one run.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/profile/profile.h"

namespace tranche::bench {

struct StormOptions {
  ProfileOptions profile;
  double scale = 1;                 // of what scenes bring, not of the fleet
  std::vector<std::string> scenes;  // empty: all
  int calls = 1'000;                // of filter, in each scene
  bool bounds = true;               // judge
  bool callers = false;             // print who held the engine how long
  std::string out;                  // JSON file; empty: none
};

// A hold may take this long, and a filter call in a hundred so many times what one takes on a quiet
// server.
inline constexpr double kMostHoldMs = 20;
inline constexpr double kMostSlowdown = 5;
// Resident memory when the storm is over, of what it was before.
inline constexpr double kMostMemory = 1.1;

// False: a bound was broken. Errors: InvalidArgument.
absl::StatusOr<bool> RunStorm(const StormOptions& options);

}  // namespace tranche::bench
