// What the engine keeps about taking devices back: plans under way, room they keep, and evictions
// of the last day. Every part reads it; preemption/ and requeue/nominations write it. Values;
// externally synchronised, as the engine is.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/disruption_budget.h"
#include "quota/preemption/eviction_history.h"
#include "quota/quota_book.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/gates.h"
#include "scheduler/facts/reclaim.h"

namespace tranche {

// Beside a Reclaim that is under way.
struct ReclaimRun {
  std::optional<PodUid> asked;  // an eviction without answer yet
  std::set<PodUid> doubted;     // evictions whose answers were lost or late: they may have happened
  std::optional<Instant> retry_at;
  int tries = 0;
  std::optional<Instant> refused_since;  // the rest of a gang is asked to go, and may not
  bool contested = false;                // waits for the answer to another reclaim's eviction
  bool begun_here = false;               // not read from a record
  uint64_t checked = 0;                  // books version at which the plan was known to hold
};

// Nodes on which a pod did not come for its devices, and until when they are left out for it.
struct AvoidedNode {
  Instant until;
  int times = 0;
};

struct PreemptionState {
  std::map<std::string, Reclaim> all;      // by name
  std::map<std::string, ReclaimRun> runs;  // of unfinished ones
  std::unordered_map<PodUid, std::string> of_member;
  std::unordered_map<PodUid, std::string> of_victim;
  // Pods kube-scheduler has made room for by itself: where, and until when it is kept at most.
  std::map<NodeName, std::set<PodUid>> nominated;
  std::map<PodUid, Instant> nominated_until;
  std::deque<std::pair<Instant, std::string>> ended;  // oldest first
  EvictionHistory history;
  std::map<std::pair<std::string, std::string>, DisruptionBudget> disruption_budgets;
  std::map<PodUid, Instant> refused_until;  // by a PodDisruptionBudget, at the last try
  std::map<PodUid, std::map<NodeName, AvoidedNode>> avoided;
  std::map<std::string, Instant> returning;  // owners that were evicted from, and when
  std::set<PodUid> returned;                 // waiting pods of such owners
  std::set<std::string> shrinking;           // leaves that are to give back what they have too much
  uint64_t serial = 0;                       // of records
};

}  // namespace tranche
