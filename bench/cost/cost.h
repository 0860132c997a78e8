// tranche-bench cost: what an hour of work costs on a fleet that grows and shrinks. README.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/cost/simulation.h"

namespace tranche::bench {

struct CostOptions {
  std::string offers;                 // CSV
  std::string openb;                  // CSV; empty: without
  std::string jobs, tenants;          // CSV of Philly; empty: without
  int synthetic = 400;                // tasks, where no trace is given
  std::vector<std::string> clouds;    // empty: each that has offers, by itself
  std::vector<std::string> policies;  // empty: all
  std::string seeds = "42..44";
  std::optional<int> money = {};  // placement.money of the engine; absent: Auto
  cost::Rules rules;
  std::string out;  // JSON file; empty: none
};

// Errors: InvalidArgument (a flag, a line of a file), NotFound, what the books say of a policy.
absl::Status RunCost(const CostOptions& options);

}  // namespace tranche::bench
