// Asks the product's planner (quota/preemption/reclaim_search.h) whose work a waiting job may have
// taken back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/tenants/world.h"

namespace tranche::bench {

struct Takeback {
  std::vector<int> victims;  // jobs, ascending; empty: the job fits as it is
  std::optional<int> node;   // where the job then goes; nullopt: over several nodes
  // The product would wait until then for a victim to write a checkpoint
  // (quota/preemption/moment.h)
  std::optional<int64_t> better;
};

// nullopt: nobody's work may be taken for it, or the planner found no plan. Every running job of
// another tenant is in the problem, without the product's guards against thrash: the protocol has
// none.
// `latest`: the job waits so long at most for a better moment; `now`: not at all.
std::optional<Takeback> PlanTakeback(const World& world, int job, int64_t now, int64_t latest);

}  // namespace tranche::bench
