// Planning rounds: how to make room for the pods whose turn it is.
//
// Externally synchronised, as the state is. Cost: up to tens of milliseconds a plan.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/engine/preemption/reclaim_case.h"
#include "scheduler/engine/preemption/reclaim_runs.h"
#include "scheduler/engine/state/answers.h"

namespace tranche {

class ReclaimPlanner {
 public:
  ReclaimPlanner(const PlanParts& parts, Earmarks& earmarks, Nominations& nominations,
                 PreemptorQueue& preemptors, ReclaimRuns& runs)
      : parts_(parts),
        cluster_(parts.cluster),
        reclaims_(parts.reclaims),
        earmarks_(earmarks),
        nominations_(nominations),
        preemptors_(preemptors),
        runs_(runs) {}

  PlanOutcome PlanFor(const PodUid& uid, Instant now);
  // What protects the work that would have to go; nullopt: nothing would help.
  std::optional<PlanBlock> FindBlock(const Preemptor& preemptor, Instant now) const;
  std::vector<ReclaimVictim> VictimsOf(const ReclaimCase& reclaim_case, const ReclaimPlan& plan,
                                       Instant now) const;

 private:
  // A node takes the pod as things stand, and quota as well: nobody has to go.
  bool FitsNow(const Preemptor& preemptor, Instant now) const;
  // No rule has anybody to take: of no team, and nobody runs whose class is lower than its own.
  bool IsHopeless(const Preemptor& preemptor) const;
  PlanOutcome RestWith(const Preemptor& preemptor, PlanOutcome::Result result, Instant now);
  // What keeps the plan from being carried out; nullopt: it is not known.
  std::optional<PlanBlock> BlockOf(const Preemptor& preemptor, const ReclaimCase& reclaim_case,
                                   const ReclaimAnswer& answer, Instant now) const;
  // The like of it is not looked at again for a while.
  void Rest(PlanMemory& memory, Instant now) const;
  // The room is kept from here on, and the first victim asked to leave.
  void BeginPlan(const Preemptor& preemptor, ReclaimCase& reclaim_case, const ReclaimAnswer& answer,
                 Instant now);

  PlanParts parts_;
  ClusterState& cluster_;
  const PreemptionState& reclaims_;
  Earmarks& earmarks_;
  Nominations& nominations_;
  PreemptorQueue& preemptors_;
  ReclaimRuns& runs_;
};

}  // namespace tranche
