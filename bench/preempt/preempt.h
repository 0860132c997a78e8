// tranche-bench preempt: how long the planner takes to decide whose work makes room.
//
// Protocol: an Engine with a full cluster (crowd.h) gets one waiting pod after another, asks as the
// server does (watch event, filter, Engine::PlanNext) and measures PlanNext alone. Before each, a
// running pod ends and an equal one starts, so that no answer can be remembered. The waiting pod is
// withdrawn before anything is evicted, so every question meets the same crowd.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "bench/profile/profile.h"

namespace tranche::bench {

struct PreemptOptions {
  ProfileOptions profile;
  uint64_t seed = 42;
  int seconds = 10;
  int turns = 0;    // waiting pods, however long they take; 0: as `seconds` says
  std::string out;  // JSON file; empty: none
};

absl::Status RunPreempt(const PreemptOptions& options);

}  // namespace tranche::bench
