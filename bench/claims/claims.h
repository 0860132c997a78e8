// tranche-bench claims: how long filter takes for pods whose GPUs come from resource claims.
//
// Protocol: an Engine with nodes of eight GPUs, told of by resource slices alone, is filled to a
// share of its GPUs; then one pod after another comes with a claim of its own, is filtered over all
// nodes, and its claim is allocated on the node chosen, as kube-scheduler would. The oldest pod and
// its claim go when the share is reached. Engine::Filter alone is measured. Deterministic for a
// seed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "bench/profile/profile.h"

namespace tranche::bench {

struct ClaimsOptions {
  ProfileOptions profile;
  int pods = 500;  // measured
  uint64_t seed = 1;
  std::string out;  // JSON file; empty: none
};

absl::Status RunClaims(const ClaimsOptions& options);

}  // namespace tranche::bench
