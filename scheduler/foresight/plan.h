// What an edit would do at once: who would start, who would be borrowed, who would be evicted, who
// would wait.
//
// The edit is made in a replica, and life goes on there for as long as victims take to leave; no
// work ends by itself meanwhile. Pure and deterministic. Cost: as of a restart, and of a filter
// call for each kind of waiting pod and each start.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "policy/policy_set.h"
#include "scheduler/engine/replica_walk.h"
#include "scheduler/facts/node_facts.h"
#include "topology/base/ids.h"

namespace tranche {

struct PlanEdits {
  std::shared_ptr<const PolicySet> set;  // all that would be in force; null: what is
  GpuPolicy defaults;                    // with `set`
  std::vector<NodeFacts> nodes;          // that come, or are otherwise
  std::vector<NodeName> gone;
};

// Each ascending. A pod that would be evicted is in none of the others.
struct PlanAnswer {
  std::vector<PodName> starts;    // wait now and would start
  std::vector<PodName> evicted;   // or lost with their node
  std::vector<PodName> borrowed;  // would hold more than their team's own, which they do not now
  std::vector<PodName> waits;     // wait now and would wait on
  bool complete = true;           // false: not all could be tried
};

// `may_go_on`: asked now and then; false: the answer is not complete. Null: it may.
PlanAnswer PlanEdit(const ClusterCopy& copy, const PlanEdits& edits,
                    const std::function<bool()>& may_go_on = nullptr);

}  // namespace tranche
