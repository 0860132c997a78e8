// Asks the product's planner (quota/preemption/reclaim_search.h) whose work a waiting job may have
// taken back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/tenants/world.h"

namespace tranche::bench {

struct Takeback {
  std::vector<int> victims;      // jobs, ascending; empty: the job fits as it is
  std::optional<int> node;       // where the job then goes; nullopt: over several nodes
  int64_t lost_gpu_seconds = 0;  // since the victims' last checkpoints
};

// nullopt: nobody's work may be taken for it, or the planner found no plan. Every running job of
// another tenant is in the problem, without the product's guards against thrash: the protocol has
// none.
std::optional<Takeback> PlanTakeback(const World& world, int job, int64_t now);

}  // namespace tranche::bench
