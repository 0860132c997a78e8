// The single writer that decides: it holds the cluster as values, answers the verbs, and keeps
// tentative placements, reservations and allocations.
//
// Deterministic: the same calls with the same times give the same answers. It reads no clock,
// opens nothing, starts nothing. Thread rule: externally synchronised; every call, const ones
// included, under one lock (host/engine_host.h holds it). No call does I/O or sleeps.
//
//   tentative    made by Filter for the best node, replaced by the pod's next Filter,
//                expires; orders answers, never refuses a bind
//   reservation  hard, made by Bind, ends only on proof (seen bound, seen gone, seen elsewhere)
//   allocation   what a pod with a node holds, from nodeName set until a terminal phase or gone
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/disruption_budget.h"
#include "policy/policy_set.h"
#include "quota/quota_book.h"
#include "scheduler/advice/case.h"
#include "scheduler/dra/model.h"
#include "scheduler/engine/audit_walk.h"
#include "scheduler/engine/cost_walk.h"
#include "scheduler/engine/preemption/plan_walk.h"
#include "scheduler/engine/replica_walk.h"
#include "scheduler/engine/report_walks.h"
#include "scheduler/engine/state/answers.h"
#include "scheduler/engine/state/options.h"
#include "scheduler/engine/state/outbox.h"
#include "scheduler/engine/state/views.h"
#include "scheduler/engine/teams/moved_namespaces.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/asked_before.h"
#include "scheduler/facts/gates.h"
#include "scheduler/facts/gpu_use.h"
#include "scheduler/facts/metering.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_facts.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"
#include "scheduler/facts/reclaim.h"
#include "scheduler/index/namespace_caps.h"
#include "scheduler/scoring/score.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"
#include "topology/machine/machine_table.h"

namespace tranche {

struct EngineParts;
struct WhatIfCase;

class Engine {
 public:
  explicit Engine(EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- events -----------------------------------------------------------------------------
  // State, not transitions: the newest object wins, missed steps in between do no harm.
  void UpsertNode(NodeFacts node, Instant now);
  // The node exists and its newest version cannot be read: it takes no new work until a version can
  // be, or it is gone. What was known of it and what is held there stay.
  void SetUnreadable(const NodeName& name, const std::string& why, Instant now);
  // Pods still on the node are kept and come back with it.
  void DeleteNode(const NodeName& name, Instant now);
  void UpsertPod(PodFacts pod, Instant now);
  void DeletePod(const PodUid& uid, Instant now);
  // What other objects say of a node; it need not be known yet.
  void SetNodeZones(const NodeName& name, std::optional<NodeZones> zones, Instant now);
  void SetNodeSlices(const NodeName& name, std::vector<SliceDevice> devices, Instant now);
  // Counts where the Node object shows no agent itself. Only Koordinator has such an object.
  void SetNodeAgent(const NodeName& name, std::optional<AgentRegister> agent, Instant now);
  // Device classes, resource slices, claims and their templates.
  void SetDraObject(dra::Object object, Instant now);
  void RemoveDraObject(const dra::ObjectRef& object, Instant now);
  // How many pods of a gang start together, as an object of its controller says; 0: none does.
  void SetGangSize(const std::string& ns, const std::string& gang, int size, Instant now);
  // An autoscaler said at `told` that it raises a node for the pod, which need not be known.
  void NoteScaleUp(const PodUid& pod, Instant told, Instant now);
  // What the GPUs of pods did until now; of pods that are not named nothing new is known. What was
  // told is forgotten after kUseGoodFor. Cost: O(pods log pods).
  void NoteUse(std::span<const MeasuredPod> pods, Instant now);
  // What administrators declare. Of several GPUPolicies the first whose selector matches a pod's
  // namespace governs it; `defaults` governs where none does.
  // `moves`: how the set differs from the one before, if the caller has looked; not believed where
  // another one is in force.
  void SetPolicies(std::shared_ptr<const PolicySet> set, const GpuPolicy& defaults, Instant now,
                   const NamespaceMoves& moves = {});
  // A ResourceQuota as it is now. Ignored unless options.namespace_caps.
  void SetNamespaceCap(NamespaceCap cap, Instant now);
  void RemoveNamespaceCap(const NamespacedName& cap, Instant now);
  // What the ledger remembers, before the first pod.
  void Restore(MeterHistory history);
  // What pods asked for before, and when: where room is kept for what usually comes, and advice,
  // begin with it. Before the first pod. Cost: about 2 us a pod.
  void Recall(std::span<const AskedBefore> pods, Instant now);
  // What another engine learned of the workload, in place of what was learned here; `counted`: pods
  // that wait and are in it. Cost: as of Scorer::Take.
  void TakeLearned(const ScorerMemory& learned, std::span<const PodUid> counted);
  // What checkpoints tell of budgets stands for what came before, of which nothing else tells.
  void RestoreUse(const std::vector<RestoredUse>& uses, Instant now);
  // Where budgets stand, by uid.
  std::map<std::string, BudgetStand> BudgetStands(Instant now);
  // The first complete set of pods is in: what the ledger had open and nobody holds has ended.
  void FinishRestore(Instant now);
  // The machine's clock was set forward; nothing was used between.
  void StepClock(Instant from, Instant to);
  // At `now` the API server's clock says something between the two. Once there was a call, times
  // of its stamps are taken by ours. Cost: none.
  void NoteClusterTime(Instant earliest, Instant latest, Instant now);
  // Quota cannot be kept because the ledger cannot: refuse what it would have to count.
  void CloseLedger(bool closed);
  // Ends tentative placements that are due. Returns when to call again; nullopt: nothing waits for
  // time.
  std::optional<Instant> Tick(Instant now);

  // What the calls so far want done. The caller takes it out after each call and carries it out:
  // std::exchange(engine.effects(), {}).
  Effects& effects();

  // ---- reclaims (quota-model section 4)
  // A PodDisruptionBudget as it is now; nullopt status of one that is gone is
  // RemoveDisruptionBudget.
  void SetDisruptionBudget(DisruptionBudget budget, Instant now);
  void RemoveDisruptionBudget(const NamespacedName& budget);
  // What GPUReclaim objects told at start. Once, after the first pods and before FinishRestore:
  // unfinished ones go on there.
  void RestoreReclaims(std::vector<Reclaim> reclaims);
  // Plans for the next waiting gang, drain or shrink whose turn it is, or looks after a plan under
  // way, one question at a time: call it until the walk is done. A question costs up to tens of
  // milliseconds: others may call anything between two of them. Due work is announced by Tick's
  // answer.
  void PlanSlice(PlanWalk& walk, Instant now);
  // All of it at once; nullopt: nothing is to be planned now.
  std::optional<PlanOutcome> PlanNext(Instant now);
  // Goes on asking what each team can count on (QuotaView::reach), by one question to the planner;
  // false: nothing is to be asked now. Changes no decision.
  bool ReachSlice(Instant now);
  // How an eviction of the effects ended. The next one of that reclaim is handed out when this was
  // told and the plan still holds.
  void SettleEviction(const std::string& reclaim, const PodUid& uid, EvictionOutcome outcome,
                      std::optional<Millis> retry_after, Instant now);
  // Running ones and those that ended within the last day, by planning time, then name.
  std::vector<Reclaim> Reclaims() const;

  // ---- verbs ------------------------------------------------------------------------------
  // `answer` is reused between calls so that nothing is allocated per candidate. One that is given
  // again is answered once: neither chosen nor refused a second time where nodes are looked at.
  void Filter(const PodRequest& request, std::span<const std::string_view> candidates, Instant now,
              FilterAnswer& answer);
  // Strict ranks for the candidates: result[i] is 10 for the best, 9, 8, ... 0. All 0 for pods
  // that ask no GPU, and 0 for a candidate that is given again.
  void Prioritize(const PodRequest& request, std::span<const std::string_view> candidates,
                  Instant now, std::vector<int>& ranks);
  // The ranks by the order of the pod's last filter, which stands until its next one. False: that
  // knew not all of these as fitting; ask Prioritize.
  bool RankAsFiltered(const PodUid& pod, std::span<const std::string_view> candidates, Instant now,
                      std::vector<int>& ranks);
  // The preempt verb: of the candidates, those where evicting helps and the rules allow it, with
  // the victims that are needed (highest priority first) and the PodDisruptionBudgets these
  // violate. Victims that hold no GPUs are kept as they came; pods we do not know are never named.
  // An entry is never empty.
  std::vector<PreemptNode> Preempt(const PodRequest& request,
                                   std::span<const PreemptNode> candidates, Instant now);
  // Re-checks node and devices against allocations and reservations, and reserves.
  // Requires for a result other than kPodGone: Knows(uid).
  BindPlan Bind(const PodName& pod, const PodUid& uid, const NodeName& node, Instant now);
  // Why what is reserved for the pod on the node could no longer be given to it: the node may have
  // changed since. kNone: it could, or nothing is reserved there.
  Reason RecheckReserved(const PodUid& uid, const NodeName& node, Instant now);
  // A placeholder that the effects ordered was not made, and will not be.
  void SettlePlaceholder(const PodName& placeholder, const NodeName& node, Instant now);
  // Does the engine know this pod (by watch or by filter)?
  bool Knows(const PodUid& uid) const;
  void SettleBind(const PodUid& uid, const NodeName& node, BindOutcome outcome, Instant now);

  // ---- questions --------------------------------------------------------------------------
  // At most `limit` nodes (pods) after `after` in name (namespace/name, uid) order.
  std::vector<NodeView> Nodes(const NodeName& after, std::size_t limit, Instant now) const;
  std::vector<PodView> Pods(const PodName& after, const PodUid& after_uid, std::size_t limit);
  // Gangs after `after` (namespace/gang; empty: from the first) in that order: at most `limit`, and
  // so many fewer as they are large. Empty: there are no more.
  std::vector<GangView> GangsAfter(const std::string& after, std::size_t limit) const;
  std::optional<Explanation> Explain(const PodName& pod, Instant now);
  // Where the pod stands among those that wait, and by which terms. nullopt: no pod of the name is
  // known that asks for GPUs itself. Cost: O(pods that quota refused or room may be made for).
  std::optional<RankView> Rank(const PodName& pod, Instant now);
  // Places the pods one after another and takes everything back.
  std::vector<WhatIfResult> WhatIf(std::span<const PodRequest> pods, Instant now);
  // The same in several calls: tries pods of the question that have no result yet, at least one,
  // until `may_go_on`, asked after each, says no. Cost: as of a filter call for each pod and, where
  // room is to be made, a plan; besides, the pods placed before are put back and taken again.
  void WhatIf(WhatIfCase& question, const std::function<bool()>& may_go_on, Instant now);
  // Sums over everything, each also slice by slice: the slices of one walk let others in between.
  // Cost of a slice: as said with the walk; of the whole: O(nodes + pods).
  EngineTotals Totals() const;
  void TotalsSlice(TotalsWalk& walk) const;
  void FleetSlice(FleetWalk& walk) const;
  void CostSlice(CostWalk& walk, Instant now);
  std::vector<CapRow> NamespaceCapRows() const;
  std::vector<QuotaView> Quotas(Instant now);
  void QuotaSlice(QuotaWalk& walk, Instant now);
  std::vector<BudgetReport> Budgets(Instant now);
  // What an hour of each GPUClass costs a budget, in thousandths, by name.
  std::map<std::string, int64_t> ChargeFactors() const;
  // The scheduling gates a pod that is about to be created should have. Changes no decision.
  // Cost: as of a filter call.
  GateSet GatesFor(const PodRequest& request, Instant now);
  // The same of a pod that uses claims alone.
  ClaimForecast ForecastClaims(const PodRequest& request, const dra::PodClaims& claims,
                               Instant now);
  // Pods the cluster shows that wait, with the reason of their last filter; ascending uid.
  std::vector<std::pair<PodUid, Reason>> Waiting();
  void WaitingSlice(WaitingWalk& walk);
  std::optional<PodView> Pod(const PodUid& uid);
  // GPU pods that hold devices, by class; "" for none.
  std::map<std::string, int64_t> PodsByClass() const;
  // Ascending leaf, class, reason.
  std::vector<PendingRow> Pending(Instant now);
  std::vector<DecayRow> Decay() const;
  // How long GPUs were held since FinishRestore, by team, class and model, and how many namespaces
  // hold now. Cost: O(rows).
  std::vector<HeldTimeRow> HeldTime(Instant now);
  std::vector<NamespaceHeldRow> HeldByNamespace() const;
  // Of all pods together, for comparing with the ledger.
  Charge HeldQuanta() const;
  // The same summed from all of them, for tests: O(holdings).
  Charge SumHeldQuanta() const;
  // Reservations older than `age`, for alarms and for the resolver.
  std::vector<std::pair<PodUid, NodeName>> StuckReservations(Instant now, Millis age) const;
  // The cluster as values, for advice. Cost: O(nodes + pods), a few milliseconds in large fleets.
  AdviceCase Case(Instant now);
  void CaseSlice(CaseWalk& walk, Instant now);
  // The next slice of a copy of what is known, for an engine of its own.
  void CopySlice(ReplicaWalk& walk, Instant now);
  // Grows with every change that decisions may depend on.
  uint64_t Version() const;
  // Keeps new GPU pods away from the node while something of ours changes it; empty: no longer.
  void SetHeld(const NodeName& node, std::string why, Instant now);
  // Asks the work there that may be moved (RunLimits) to leave, by a rule of which MovesWork is
  // true; nullopt: no longer. Said again, it is judged anew who may. False: the node is not known,
  // or a PodDisruptionBudget lets one of its pods not go now. Cost: O(holdings) where marks are
  // stale, and the budgets of the node's pods.
  bool SetEmptied(const NodeName& node, std::optional<ReclaimRule> rule, Instant now);
  // Goes on learning tables for a few milliseconds at most; false: nothing is left to do.
  bool Learn();
  // Every invariant of the books recomputed from scratch; empty: all hold. For tests. Cost:
  // O(everything).
  std::vector<std::string> Audit() const;
  // The next slice of that; adds what it found. Cost: O(nodes, pods or holdings of a slice), the
  // holdings of one team in one piece, and for the tallies O(holdings) once a walk.
  void AuditSlice(AuditWalk& walk, AuditFindings& found) const;
  // Sums again what the faults say is summed wrongly, and marks them as mended. All others are left
  // as they are: of two parts that disagree nobody knows which is wrong.
  void Mend(std::vector<AuditNote>& faults, Instant now);
  // What the books have of a pod, and of a node as the cluster described it last (null: nothing),
  // which is good until the next call.
  PodStand StandOf(const PodUid& uid) const;
  const NodeFacts* FactsOf(const NodeName& node) const;
  // What administrators declared, as it is in force.
  const PolicySet& policy_set() const;
  // Cached verdicts of this request's shape against fresh evaluation, node by node; for tests.
  std::vector<std::string> AuditVerdicts(const PodRequest& request) const;
  // A text that is equal for equal books (nodes, holdings, devices); tentative placements are left
  // out.
  std::string Digest() const;

 private:
  friend struct BookBreaker;  // of tests: makes a sum wrong

  void PutNode(NodeFacts node, Instant now);
  void TellNode(const NodeName& name, Instant now);

  std::unique_ptr<EngineParts> parts_;
};

}  // namespace tranche
