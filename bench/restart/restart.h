// tranche-bench restart: how long a server is not ready, and how much memory that takes, when its
// ledger holds many pods that ended within the horizon.
//
// The ledger is written as a server would have, three entries a pod over the last 31 days, for
// teams under a monthly budget and a rolling one each and another rolling one over all. Then the
// real server is started on it as a process of its own.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tranche::bench {

struct RestartOptions {
  int64_t ended = 1'000'000;
  std::string folder;  // where the files go; they are removed again. Empty: the temporary folder
  bool keep = false;   // leave them
  bool bounds = true;  // judge by them
  std::string server;  // the tranche program
  uint64_t seed = 42;
  std::string out;  // JSON file; empty: none
};

// Whether the bounds hold: ready within 5 s, and at most 1.5 times the memory it runs with.
absl::StatusOr<bool> RunRestart(const RestartOptions& options);

}  // namespace tranche::bench
