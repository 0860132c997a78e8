// tranche-bench fill: how full a cluster gets, and what is lost while tasks come and go.
//
// Protocols: benchmarks A1 (fill) and churn.h. Baselines and the engine run on the same tasks, seed
// by seed, and every placement is checked against the benchmark's own books.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tranche::bench {

struct FillOptions {
  std::string nodes;              // CSV
  std::vector<std::string> pods;  // CSV, one a variant
  double tune = 1.3;              // what is asked for, in clusters
  std::vector<std::string> policies = {"random",  "dotprod", "clustering", "packing",
                                       "bestfit", "fgd",     "tranche"};
  std::string seeds = "42..51";            // "1..3,7"
  bool protocol = false;                   // adds policy tranche-protocol
  std::vector<int> samples;                // adds policies tranche-sample-PERCENT
  std::string prices;                      // CSV, adds policy tranche-money; empty: without
  std::optional<int> money = {};           // its placement.money; absent: Auto
  int fleet = 0;                           // nodes, the file's again and again; 0: the file's
  bool churn = false;                      // tasks leave again
  std::vector<double> loads = {0.9, 1.0};  // of churn
  int jobs = 0;                            // runs at a time; 0: one a core
  std::string server;                      // the tranche program, for tranche-protocol
  std::string out;                         // JSON file; empty: none
};

// Errors: InvalidArgument (a flag, a line of a file), NotFound, what policies and checks say.
absl::Status RunFill(const FillOptions& options);

}  // namespace tranche::bench
