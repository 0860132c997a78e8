// The benchmark `tranche-bench mig`: placing MIG profiles that come and go on equal GPUs, Tranche
// beside the published policies, on the same arrivals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tranche::bench {

struct MigOptions {
  int gpus = 100;
  std::vector<std::string> mixes = {"uniform", "small", "big"};
  std::vector<double> loads = {0.85, 1.0, 1.2};
  std::vector<std::string> policies = {"first-fit", "best-fit", "blocked",
                                       "fgd-mig",   "tranche",  "tranche+5"};
  std::string seeds = "1000..1019";
  bool known = false;  // tranche is told the mix; else it learns it
  std::string out;
};

absl::Status RunMig(const MigOptions& options);

}  // namespace tranche::bench
