// The benchmark `tranche-bench ring`: which GPUs of one machine jobs of 2 to 5 GPUs get, and what
// their rings are worth. Protocol and reference: benchmarks D.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tranche::bench {

struct RingOptions {
  std::vector<std::string> matrices;
  std::vector<std::string> policies = {"baseline", "topoaware", "greedy", "preserve", "tranche"};
  std::string seeds = "42..51";
  int jobs = 300;
  std::string out;
};

absl::Status RunRing(const RingOptions& options);

}  // namespace tranche::bench
