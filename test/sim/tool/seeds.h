// Many seeds, one after another: progress while they run, and what came of it as JSON.
//
// Thread rule: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "test/sim/tool/shrink.h"

namespace tranche::sim {

struct SeedsOptions {
  uint64_t first = 1;
  uint64_t last = 10;
  int64_t lives = 100;  // of each seed
  std::string faults = "all";
  std::set<std::string> skip;  // checkers whose findings do not count
  int repeat = 1;              // each seed so often, to equal digests
  bool shrink = false;
  std::optional<std::chrono::seconds> time;  // then seeds go on until it is over
};
struct FailedSeed {
  uint64_t seed = 0;
  std::string checker;
  std::string text;
};
struct SeedsResult {
  std::string problem;  // the options make no sense
  int64_t seeds = 0;
  int64_t lives = 0;
  double seconds = 0;  // of processor time
  std::vector<FailedSeed> failed;
  std::map<uint64_t, uint64_t> digests;
  std::map<uint64_t, std::set<std::string>> plants;  // that seeds came by
};

// Tells of progress and failures on stderr; shrunk failures on stdout as a file of seeds and a
// story.
SeedsResult RunSeeds(const SeedsOptions& options, const Runner& run);
// {"seeds","lives","livesPerSecond","failed":[{"seed","checker"}],"digests":{"S":"hex"}}, and in
// builds with plants "plants":{"S":["name"]}
Json ToJson(const SeedsResult& result);

}  // namespace tranche::sim
