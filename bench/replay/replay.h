// tranche-bench replay: how much of a ledger's file what happens takes, and how fast it is lived
// again.
//
// Protocol: pods of twenty teams under one quota come to a cluster of nodes with eight GPUs for
// some days, as much work as fills it to a part. They are written as a server would have, each told
// three times (came, started, ended); then the file is read and lived through as `tranche replay`
// does, without edits. The floor is the same work placed by nobody: read and summed up.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tranche::bench {

struct ReplayBenchOptions {
  int nodes = 500;
  int pods = 60'000;
  int days = 30;
  double fill = 0.8;   // of the GPUs' time
  std::string folder;  // where the file goes; it is removed again. Empty: the temporary folder
  bool keep = false;   // leave the file
  uint64_t seed = 42;
  std::string out;  // JSON file; empty: none
};

absl::Status RunReplay(const ReplayBenchOptions& options);

}  // namespace tranche::bench
