// Planning rounds: how to make room for the pods whose turn it is.
//
// Externally synchronised, as the state is. Cost: up to tens of milliseconds a question.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/engine/preemption/awaited_nodes.h"
#include "scheduler/engine/preemption/plan_walk.h"
#include "scheduler/engine/preemption/reclaim_case.h"
#include "scheduler/engine/preemption/reclaim_runs.h"
#include "scheduler/engine/state/answers.h"

namespace tranche {

class ReclaimPlanner {
 public:
  ReclaimPlanner(const PlanParts& parts, Earmarks& earmarks, Nominations& nominations,
                 PreemptorQueue& preemptors, const AwaitedNodes& awaited, ReclaimRuns& runs)
      : parts_(parts),
        cluster_(parts.cluster),
        reclaims_(parts.reclaims),
        earmarks_(earmarks),
        nominations_(nominations),
        preemptors_(preemptors),
        awaited_(awaited),
        runs_(runs) {}

  // A node takes the pod as things stand, and quota as well: nobody has to go.
  bool FitsNow(const Preemptor& preemptor, Instant now) const;
  // Between two looks at requests that are alike at most.
  Millis Round() const;
  // One question for whose turn it is. Requires: the walk has a uid and is not done.
  void Step(PlanWalk& walk, Instant now);
  // What keeps the plan of an answer from being carried out; nullopt: nothing, or there is none.
  std::optional<PlanBlock> BlockOf(const AskedPlan& asked, Instant now) const;
  std::vector<ReclaimVictim> VictimsOf(const ReclaimCase& reclaim_case, const ReclaimPlan& plan,
                                       Instant now) const;

 private:
  // No rule has anybody to take: of no team, and nobody runs whose class is lower than its own.
  bool IsHopeless(const Preemptor& preemptor) const;
  // Nothing comes of it, and the like of it is not looked at again for a while.
  void EndWith(PlanWalk& walk, const Preemptor& preemptor, PlanOutcome::Result result, Instant now);
  // Until when the plan had better wait, with who is to write a checkpoint then; nullopt: it
  // begins. `since`: the pod waits for such a moment.
  std::optional<PlanBlock> BetterMomentFor(const AskedPlan& asked, const Preemptor& preemptor,
                                           Instant since, Instant now) const;
  // The pods that would have to go if nothing but time and budgets protected them.
  PlanBlock GuardsOf(const AskedPlan& asked, Instant now) const;
  // The room is kept from here on, and the first victim asked to leave.
  PlanOutcome BeginPlan(const Preemptor& preemptor, const AskedPlan& asked, Instant now);

  PlanParts parts_;
  ClusterState& cluster_;
  const PreemptionState& reclaims_;
  Earmarks& earmarks_;
  Nominations& nominations_;
  PreemptorQueue& preemptors_;
  const AwaitedNodes& awaited_;
  ReclaimRuns& runs_;
};

}  // namespace tranche
