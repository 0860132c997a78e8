// The parts of the engine in the order of who knows whom, and the steps that several verbs share.
// Only the engine's own files include this.
//
// Each part is constructed with what it needs of those above it in this list, and knows nothing of
// those below. What a part finds out that concerns a later one it keeps as a fact, which the steps
// here carry on, in one written order. Externally synchronised, as the engine is.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "scheduler/engine/claims/claim_charges.h"
#include "scheduler/engine/claims/claim_filter.h"
#include "scheduler/engine/claims/claim_pods.h"
#include "scheduler/engine/claims/claim_views.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/gangs/gang_backfill.h"
#include "scheduler/engine/gangs/gangs.h"
#include "scheduler/engine/gates/gates.h"
#include "scheduler/engine/preemption/awaited_nodes.h"
#include "scheduler/engine/preemption/eviction_guards.h"
#include "scheduler/engine/preemption/nominal_reach.h"
#include "scheduler/engine/preemption/preempt_answer.h"
#include "scheduler/engine/preemption/preemptor_queue.h"
#include "scheduler/engine/preemption/reclaim_planner.h"
#include "scheduler/engine/preemption/reclaim_runs.h"
#include "scheduler/engine/preemption/releases.h"
#include "scheduler/engine/preemption/run_limits.h"
#include "scheduler/engine/requeue/early_nominations.h"
#include "scheduler/engine/requeue/nominations.h"
#include "scheduler/engine/requeue/precedence.h"
#include "scheduler/engine/requeue/requeuer.h"
#include "scheduler/engine/selection/foreseen_charges.h"
#include "scheduler/engine/selection/held_nodes.h"
#include "scheduler/engine/selection/selection.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/earmarks.h"
#include "scheduler/engine/state/kept_room.h"
#include "scheduler/engine/state/preemption_state.h"
#include "scheduler/engine/teams/clock_lead.h"
#include "scheduler/engine/teams/demand_notes.h"
#include "scheduler/engine/teams/metering.h"
#include "scheduler/engine/teams/namespace_use.h"
#include "scheduler/engine/teams/team_queue.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

// A node of the same name, or another machine under it.
enum class WhichMachine : uint8_t { kSame, kOther };

struct EngineParts {
  explicit EngineParts(const EngineOptions& options) : cluster(options) {}

  // state
  ClusterState cluster;
  Earmarks earmarks{cluster};
  PreemptionState reclaims;
  KeptRoom kept{cluster, reclaims};
  // teams
  NamespaceUse namespaces{cluster};
  TeamRules rules{cluster, namespaces};
  TeamQueue team_queue{cluster, rules, namespaces, reclaims};
  Metering metering{cluster};
  ClockLead clock_lead;
  DemandNotes demand_notes{cluster};
  // selection
  HeldNodes held_nodes{cluster};
  Selection selection{cluster, rules, namespaces, held_nodes};
  ForeseenCharges foreseen{cluster};
  // requeue
  Requeuer requeue{cluster, namespaces, rules, team_queue, selection, foreseen, kept};
  Precedence precedence{cluster, reclaims, rules, team_queue, selection};
  EarlyNominations early_nominations{cluster, reclaims, rules, selection};
  Nominations nominations{cluster, earmarks, reclaims, rules, requeue, early_nominations};
  // gangs
  GangParts gang_parts{cluster, rules, selection, held_nodes};
  Gangs gangs{gang_parts, held_nodes, earmarks, reclaims, requeue, nominations};
  GangBackfill backfill{gang_parts, held_nodes, gangs};
  // claims
  ClaimBooks claim_books;
  ClaimWishes claim_wishes{cluster};
  ClaimCharges claim_charges{cluster, claim_books, rules, metering, requeue, claim_wishes};
  ClaimPods claim_pods{cluster, claim_books, rules, claim_wishes, claim_charges};
  ClaimFilter claim_filter{cluster, claim_books, rules, claim_wishes, claim_charges};
  ClaimViews claim_views{cluster, claim_books, metering, rules, claim_wishes, claim_charges};
  // preemption
  EvictionGuards guards{cluster.set, reclaims};
  PreemptorQueue preemptors{cluster, reclaims, rules, gangs};
  AwaitedNodes awaited_nodes{cluster};
  ClaimHolders claim_holders{cluster, claim_books};
  PlanParts plan_parts{cluster, claim_holders, reclaims, guards, selection};
  ReclaimRuns runs{plan_parts, reclaims,    earmarks, kept,      rules,
                   requeue,    nominations, gangs,    preemptors};
  ReclaimPlanner planner{plan_parts, earmarks, nominations, preemptors, awaited_nodes, runs};
  NominalReach nominal_reach{plan_parts, rules, planner, awaited_nodes};
  RunLimits run_limits{cluster, claim_books, claim_holders};
  Releases releases{plan_parts, reclaims, rules, gangs, preemptors, planner, runs, run_limits};
  PreemptAnswer preempt_answer{plan_parts, rules, awaited_nodes};
  // gates
  Gates gates{cluster, rules, team_queue, selection, kept, gangs, preemptors};

  bool has_policies = false;  // administrators' word was taken up once
  // Records only filter calls made, with the time of the first, oldest first.
  std::deque<std::pair<Instant, PodUid>> unseen;
  std::vector<NodeId> ids;     // scratch: the candidates of the question at hand
  std::vector<NodeId> others;  // likewise: the nodes that it is not about

  // ---- steps that several verbs share (parts.cc)
  void Advance(Instant now);  // everything that is due
  void ForgetOldest();        // pods only filter knows, beyond their time
  void ForgetTeams();         // what was cached of the policies in force
  // Takes the set up where it differs in namespaces alone and nobody is in those that come under
  // another quota or policy: nothing follows from it for anybody. False: more is to be done.
  bool TakeNamespaces(const std::shared_ptr<const PolicySet>& set, const GpuPolicy& defaults,
                      const NamespaceMoves& moves);
  // What gangs found out goes to preemption.
  void PassOnJudged();
  void TendGangs(Instant now);
  // The pod is as the cluster shows it: its gang counts it so, and kube-scheduler is told a node
  // for the next in line.
  void NoteShown(const PodUid& uid, PodRecord& record, Instant now);
  // What is so of the node, under the policies in force; Refresh follows. True: it has other rules
  // of its own now.
  bool TakeFacts(NodeId id, NodeFacts facts);
  // Other pools or prices are in force: what they say of each node. Run limits follow by Regroup.
  void NotePools(Instant now);
  // The node is gone, or was told anew: what is kept there for pods to come and cannot be found on
  // it any more is given up, and made room for anew. kOther: all that is kept there. The node may
  // be forgotten by it.
  void GiveUpRoom(NodeId id, WhichMachine machine, Instant now);
  // A pod of that scheduler was asked about, or carries our record.
  void NoteAsking(const std::string& scheduler);
  void Erase(const PodUid& uid);
  void ReleaseOn(const NodeName& node, const PodUid& uid, Instant now);
  void DropReservation(const PodUid& uid, PodRecord& record, Instant now);
};

}  // namespace tranche
