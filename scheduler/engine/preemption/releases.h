// Giving back without anybody who waits: budgets that drain, quotas that were lowered, gangs that
// cannot be completed, and work that has run for as long as its class lets it.
//
// Externally synchronised, as the state is. Cost: a plan costs O(what the team holds).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/engine/preemption/reclaim_planner.h"
#include "scheduler/engine/preemption/run_limits.h"

namespace tranche {

class Releases {
 public:
  Releases(const PlanParts& parts, PreemptionState& reclaims, TeamRules& rules, const Gangs& gangs,
           PreemptorQueue& preemptors, ReclaimPlanner& planner, ReclaimRuns& runs,
           RunLimits& limits)
      : parts_(parts),
        cluster_(parts.cluster),
        guards_(parts.guards),
        reclaims_(reclaims),
        rules_(rules),
        gangs_(gangs),
        preemptors_(preemptors),
        planner_(planner),
        runs_(runs),
        limits_(limits) {}

  // The policies were others before. Only an edit shrinks: a team that merely borrows is asked back
  // by those who need it.
  void NoteShrunk(const PolicySet& before);
  // The next drain, shrink or end of a run whose turn it is; nullopt: none.
  std::optional<PlanOutcome> Plan(Instant now);
  std::optional<Instant> DueAt(Instant now) const;
  // All or none: the part of a gang that cannot be completed gives back what it has.
  void EvictPart(const std::string& gang, Instant now);

 private:
  PlanOutcome PlanDrain(std::size_t budget, Instant now);
  // A gang, or one pod, that the budget meters.
  struct Drained {
    std::vector<PodUid> pods;
    bool untouchable = false;
    bool guarded = false;
  };
  std::map<std::string, Drained> UnitsToDrain(std::size_t budget, Instant now) const;
  PlanOutcome PlanShrinkOf(const std::string& leaf, Instant now);
  PlanOutcome PlanEndOf(const PodUid& uid, Instant now);
  // The pod, which holds something, is to go.
  void AddVictim(const PodUid& uid, Reclaim& reclaim, Instant now);
  // All of them are to go: there was nothing to choose.
  PlanOutcome BeginAll(Reclaim reclaim, const std::string& stem, Instant now);
  bool Runs(ReclaimRule rule, const std::string& source) const;

  PlanParts parts_;
  ClusterState& cluster_;
  EvictionGuards& guards_;
  PreemptionState& reclaims_;
  TeamRules& rules_;
  const Gangs& gangs_;
  PreemptorQueue& preemptors_;
  ReclaimPlanner& planner_;
  ReclaimRuns& runs_;
  RunLimits& limits_;
};

}  // namespace tranche
