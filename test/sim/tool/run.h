// One run of the whole product in its world, from a seed to what the checkers found.
//
// Thread rule: one thread, and one run at a time in a process (the disks of ledgers are one VFS).
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "test/sim/base/history.h"
#include "test/sim/base/script.h"
#include "test/sim/check/finding.h"

namespace tranche::sim {

struct RunOptions {
  uint64_t seed = 1;
  int64_t lives = 100;         // pods made
  std::string faults = "all";  // kinds that may come, see faults.h
  std::set<Script::Id> left_out;
  std::string log = "off";     // of the replicas, on stderr: "info", "debug", ...
  History::Listener listener;  // hears everything; may be empty
};

struct Outcome {
  std::string problem;  // the options make no sense; nothing was run
  uint64_t digest = 0;
  int64_t lives = 0;
  int64_t steps = 0;
  SimTime simulated{0};
  std::vector<Finding> findings;
  std::vector<Script::Id> done;  // what was done of free will, in order
  std::set<std::string> plants;  // places of planted faults it came by, in builds that have them
};

Outcome RunSeed(const RunOptions& options);

}  // namespace tranche::sim
