// The single writer that decides: it holds the cluster as values, answers the verbs, and keeps
// claims, reservations and allocations.
//
// Deterministic: the same calls with the same times give the same answers. It reads no clock,
// opens nothing, starts nothing. Thread rule: externally synchronised; every call, const ones
// included, under one lock (app/host.h holds it). No call does I/O or sleeps.
//
//   claim        soft, made by Filter for the best node, replaced by the pod's next Filter,
//   expires;
//                orders answers, never refuses a bind
//   reservation  hard, made by Bind, ends only on proof (seen bound, seen gone, seen elsewhere)
//   allocation   what a pod with a node holds, from nodeName set until a terminal phase or gone
#pragma once

#include <cstdint>
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
#include "scheduler/engine/agent_queues.h"
#include "scheduler/engine/keepers.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/gates.h"
#include "scheduler/facts/metering.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_facts.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"
#include "scheduler/facts/reclaim.h"
#include "scheduler/index/namespace_caps.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"
#include "topology/machine/machine_table.h"

namespace tranche {

struct EngineOptions {
  int64_t epoch = 1;                // written into allocations; larger ones are not believed
  Millis claim_lifetime{10'000};    // zero: claims never expire by time
  Millis unstable_for{30'000};      // after a node's devices vanished and came back
  Millis gang_hold_after{300'000};  // nodes are kept for a gang that has waited so long
  // Devices kept for a preemptor whose victims are gone, or for a gang none of whose pods comes.
  Millis reservation_ttl{120'000};
  Millis agent_patience{300'000};  // then a pod its node's agent did not serve is passed over
  bool namespace_caps = false;     // keep ResourceQuotas as HAMi does
  bool keepers = false;            // pods of ours hold cards of stock nodes that others share
  KeeperTimes keeper_times;
};

// Answer to filter. Positions index the candidate list of the question.
struct FilterAnswer {
  bool untouched = false;                            // no GPU asked: all candidates pass
  std::vector<uint32_t> chosen;                      // best first, at most the filter width
  std::vector<std::pair<uint32_t, Reason>> refused;  // ascending position; fitting ones left out
                                                     // of `chosen` are not listed
  Reason reason = Reason::kNone;                     // nothing fits: the refusal closest to fitting
  Reason observed = Reason::kNone;                   // what a quota in mode Observe would have said
};

// What a bind must write, or why it may not.
struct BindPlan {
  enum class Kind : uint8_t {
    kWrite,         // POST the binding; the reservation stands until SettleBind
    kAlreadyBound,  // seen bound to this very node: success
    kRefused,       // reason and detail say why
    kInFlight,      // another call for this pod and node is writing now
  };
  Kind kind = Kind::kRefused;
  Reason reason = Reason::kNone;
  std::string detail;
  PodName pod;
  PodUid uid;
  NodeName node;
  bool asks_gpu = false;                // false: bind without any annotation
  Allocation allocation;                // kWrite with asks_gpu
  const PodRequest* request = nullptr;  // the engine's copy, valid until the next call
  // What the node's agent must be told, if it is called at all.
  AgentKind agent = AgentKind::kNone;
  int agent_minor = 0;  // HAMi's version
  Mebibytes memory_unit;
  std::vector<Mebibytes> card_memory;  // of the node's cards
  int64_t stamp = 0;                   // unix nanoseconds, strictly increasing
  bool lock = false;                   // the agent goes by a lock on the node
  // False: the agent has another pod to serve first, or the card is not known yet. TakeAgentWork
  // tells when to write.
  bool turn = true;
};

// How a bind ended, as far as is known.
enum class BindOutcome : uint8_t {
  kBound,     // proven: the pod has this node and our annotation
  kNotBound,  // proven: it will never be bound by this attempt
  kUnknown,   // the answer was lost; the reservation stays
};

// Views for people: copies, so that encoding needs no lock.
struct MigView {
  std::string profile;
  int start = 0;
  int size = 0;
  std::vector<std::string> pods;  // "ns/name"; several on a shared instance
};
struct GpuPodView {
  PodName pod;
  PodUid uid;
  MilliGpu milli;
  Mebibytes memory;
};
struct GpuView {
  std::optional<int> index;
  GpuUuid uuid;
  Mebibytes memory;
  MilliGpu free_milli;
  Mebibytes free_memory;
  bool healthy = true;
  std::optional<int> numa;
  bool is_mig = false;
  int replicas = 1;  // > 1: a card shared by the device plugin
  std::vector<MigView> mig;
  std::vector<GpuPodView> pods;
};
struct NodeView {
  NodeName name;
  std::string model;
  bool ready = false;
  Reason closed = Reason::kNone;  // why new GPU pods are kept away
  std::string closed_detail;
  Knowledge knowledge = Knowledge::kCounts;
  std::vector<GpuView> gpus;
  // How the GPUs are connected; null: nobody says, or nobody says which NVLinks there are.
  std::shared_ptr<const MachineTable> machine;
  bool links_verified = false;  // what requires NVLink may rely on it
  std::vector<std::string> problems;
};
enum class PodState : uint8_t { kPending, kClaimed, kReserved, kBound };
struct PodView {
  PodName name;
  PodUid uid;
  PodState state = PodState::kPending;
  NodeName node;
  std::string leaf;                       // empty: none owns it
  std::string workload_class;             // empty: none
  std::optional<QuotaState> quota_state;  // of one that holds devices
  std::string priority_class;
  std::optional<Allocation> allocation;  // bound, reserved or claimed devices
  std::vector<std::string> containers;   // names, init containers first; of one with devices
  Reason reason =
      Reason::kNone;   // pending: of the last filter's refusals the one closest to fitting
  std::string detail;  // with numbers and quoted values
  std::optional<Instant> eligible_at;  // when time alone changes the answer
  Reason observed = Reason::kNone;     // what a quota in mode Observe would have said
  bool devices_unknown = false;        // holds devices we cannot name (or an unreadable record)
  // Pending or claimed: what it asks for, and since when it waits (created, else first asked
  // about).
  std::shared_ptr<const PodRequest> request;
  std::optional<Instant> waits_since;
};
struct NodeVerdict {
  NodeName node;
  bool fits = false;
  Reason reason = Reason::kNone;
  std::string detail;  // expected, found
  int rank = -1;       // 0 is the best of the fitting ones
};
// A claim of a pod (resource.k8s.io).
struct ResourceClaimView {
  std::string name;
  bool allocated = false;
  NodeName node;                     // of one with devices
  std::vector<std::string> devices;  // "gpu-0 (NVIDIA H100 80GB HBM3, GPU-...)"
  std::vector<ModelCharge> charge;   // once for all who use it; expected at most before allocation
  std::vector<PodName> pods;         // who use it, as far as they are known
  std::vector<std::string> sharing;  // how its containers share, a sentence each
};
struct Explanation {
  PodView pod;
  std::vector<NodeVerdict> nodes;  // by name
  std::vector<ResourceClaimView> claims;
  std::string advice;              // what would change the answer
  std::optional<Reclaim> reclaim;  // that runs for it, or takes it away
  std::optional<PlanBlock> blocked;
};
struct WhatIfResult {
  PodName name;
  bool fits = false;
  NodeName node;
  std::optional<Allocation> allocation;
  // Whom it needs evicted to fit; empty: nobody.
  std::vector<ReclaimVictim> victims;
  ReclaimRule rule = ReclaimRule::kNone;
  PlanCost cost;
  bool optimal = false;
  Reason reason = Reason::kNone;
  std::string detail;
};

// One round of planning, for metrics.
struct PlanOutcome {
  enum class Result : uint8_t {
    kPlan,
    kFits,        // it fits already, or will when terminating work is gone
    kImpossible,  // nobody may be evicted for it, or it would not help
    kBlocked,     // only guards, budgets or other plans stand in the way
    kUnresolved,
  };
  Result result = Result::kImpossible;
  ReclaimRule rule = ReclaimRule::kNone;  // kPlan
  bool optimal = false;                   // kPlan
  int64_t evaluations = 0;
};

// What there is to say of claims before their pod exists.
struct DraWord {
  bool wants_gpus = false;
  bool quota_waits = false;
};

struct GateRemoval {
  PodName pod;
  PodUid uid;
  Gate gate = Gate::kQuota;
};

// A node of the preempt verb: whom kube-scheduler would evict there.
struct PreemptNode {
  std::string node;
  std::vector<PodUid> victims;
  int64_t pdb_violations = 0;
};

struct QuotaView {
  QuotaReport report;
  int64_t pending_workloads = 0;
  int64_t pending_quanta = 0;              // GPU-equivalents
  bool over_limit = false;                 // uses more than it could be given now
  std::string oversubscribed;              // which promise exceeds the hardware; empty: none
  std::vector<std::string> absent_models;  // that its lines name and no node has
};
// Pods that wait, by team.
struct PendingRow {
  std::string leaf;
  std::string workload_class;
  Reason reason = Reason::kNone;  // kNone: not asked for yet
  int64_t workloads = 0;
  int64_t quanta = 0;
};

// Sums for metrics, one row per GPU model.
struct ModelTotals {
  std::string model;
  int64_t gpus = 0;
  MilliGpu capacity;
  MilliGpu allocated;  // by memory or compute, whichever is larger, card by card
  MilliGpu stranded;   // free on cards no common request of the learned mix can use
  Mebibytes memory_capacity;
  Mebibytes memory_allocated;
};
struct EngineTotals {
  int64_t nodes = 0;
  int64_t nodes_closed = 0;
  int64_t pods_bound = 0;
  int64_t pods_pending = 0;
  int64_t claims = 0;
  int64_t reservations = 0;
  int64_t pods_devices_unknown = 0;
  int64_t agent_waiting = 0;      // binds that wait for their turn at an agent
  int64_t agent_serving = 0;      // written for an agent and not served yet
  int64_t agent_passed_over = 0;  // ever, without having been served
  std::optional<Instant> oldest_reservation;
  std::vector<ModelTotals> models;  // by name
};

class Engine {
 public:
  explicit Engine(EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- events -----------------------------------------------------------------------------
  // State, not transitions: the newest object wins, missed steps in between do no harm.
  void UpsertNode(NodeFacts node, Instant now);
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
  // What administrators declare. Of several GPUPolicies the first whose selector matches a pod's
  // namespace governs it; `defaults` governs where none does.
  void SetPolicies(std::shared_ptr<const PolicySet> set, const GpuPolicy& defaults, Instant now);
  // A ResourceQuota as it is now. Ignored unless options.namespace_caps.
  void SetNamespaceCap(NamespaceCap cap, Instant now);
  void RemoveNamespaceCap(const std::string& ns, const std::string& name, Instant now);
  // What the ledger remembers. Once, before the first pod.
  void Restore(MeterHistory history);
  // What checkpoints tell of budgets stands for what came before, of which nothing else tells.
  void RestoreUse(const std::vector<RestoredUse>& uses, Instant now);
  // Where budgets stand, by uid.
  std::map<std::string, BudgetStand> BudgetStands(Instant now);
  // The first complete set of pods is in: what the ledger had open and nobody holds has ended.
  void FinishRestore(Instant now);
  // The machine's clock was set forward; nothing was used between.
  void StepClock(Instant from, Instant to);
  // Quota cannot be kept because the ledger cannot: refuse what it would have to count.
  void CloseLedger(bool closed);
  // Ends claims that are due. Returns when to call again; nullopt: nothing waits for time.
  std::optional<Instant> Tick(Instant now);

  // Pods to have scheduled again, at once and each only once: filter refused them a moment before
  // room appeared that they fit in, so that the event which would bring them back may have passed
  // kube-scheduler already; or room appeared by time alone, which is no event to it.
  std::vector<std::pair<PodName, PodUid>> TakePokes();

  // Gates of ours to be taken away, in order: the gang is complete, or quota would let the pod in.
  // One that is still seen ten seconds later comes again.
  std::vector<GateRemoval> TakeGateRemovals();

  // ---- reclaims (quota-model section 4)
  // A PodDisruptionBudget as it is now; nullopt status of one that is gone is
  // RemoveDisruptionBudget.
  void SetDisruptionBudget(DisruptionBudget budget, Instant now);
  void RemoveDisruptionBudget(const std::string& ns, const std::string& name);
  // What GPUReclaim objects told at start. Once, after the first pods and before FinishRestore:
  // unfinished ones go on there.
  void RestoreReclaims(std::vector<Reclaim> reclaims);
  // Plans for the next waiting gang, drain or shrink whose turn it is, or looks after a plan under
  // way; nullopt: nothing is to be planned now. Costs up to tens of milliseconds: call it by itself
  // so that verbs come between. Due work is announced by Tick's answer.
  std::optional<PlanOutcome> PlanNext(Instant now);
  // What reclaims want done, in order. Evictions of one reclaim are handed out one by one: the next
  // when SettleEviction has told how the last one ended and the plan still holds.
  bool HasReclaimWork() const;
  ReclaimWork TakeReclaimWork();
  void SettleEviction(const std::string& reclaim, const PodUid& uid, EvictionOutcome outcome,
                      std::optional<Millis> retry_after, Instant now);
  // Running ones and those that ended within the last day, by planning time, then name.
  std::vector<Reclaim> Reclaims() const;

  // What is to be written into the ledger, in order.
  bool HasMetering() const;
  std::vector<MeterEvent> TakeMetering(std::vector<WindowClosing>& closings);

  // ---- verbs ------------------------------------------------------------------------------
  // `answer` is reused between calls so that nothing is allocated per candidate.
  void Filter(const PodRequest& request, std::span<const std::string_view> candidates, Instant now,
              FilterAnswer& answer);
  // Strict ranks for the candidates: result[i] is 10 for the best, 9, 8, ... 0. All 0 for pods
  // that ask no GPU.
  void Prioritize(const PodRequest& request, std::span<const std::string_view> candidates,
                  Instant now, std::vector<int>& ranks);
  // The preempt verb: of the candidates, those where evicting helps and the rules allow it, with
  // the victims that are needed (highest priority first) and the PodDisruptionBudgets these
  // violate. Victims that hold no GPUs are kept as they came; pods we do not know are never named.
  // An entry is never empty.
  std::vector<PreemptNode> Preempt(const PodRequest& request,
                                   std::span<const PreemptNode> candidates, Instant now);
  // Re-checks node and devices against allocations and reservations, and reserves.
  // Requires for a result other than kPodGone: Knows(uid).
  BindPlan Bind(const PodName& pod, const PodUid& uid, const NodeName& node, Instant now);
  // Binds that waited for their turn at an agent and may go on now, or need not; pods that agents
  // must be told to pass over.
  AgentWork TakeAgentWork();
  // A keeper that TakeAgentWork named was not made, and will not be.
  void SettleKeeper(const PodName& keeper, const NodeName& node, Instant now);
  // Does the engine know this pod (by watch or by filter)?
  bool Knows(const PodUid& uid) const;
  void SettleBind(const PodUid& uid, const NodeName& node, BindOutcome outcome, Instant now);

  // ---- questions --------------------------------------------------------------------------
  // At most `limit` nodes (pods) after `after` in name (namespace/name, uid) order.
  std::vector<NodeView> Nodes(const NodeName& after, std::size_t limit, Instant now) const;
  std::vector<PodView> Pods(const PodName& after, const PodUid& after_uid, std::size_t limit);
  std::optional<Explanation> Explain(const PodName& pod, Instant now);
  // Places the pods one after another and takes everything back.
  std::vector<WhatIfResult> WhatIf(std::span<const PodRequest> pods, Instant now);
  EngineTotals Totals() const;
  std::vector<CapRow> NamespaceCapRows() const;
  std::vector<QuotaView> Quotas(Instant now);
  std::vector<BudgetReport> Budgets(Instant now);
  // What an hour of each GPUClass costs a budget, in thousandths, by name.
  std::map<std::string, int64_t> ChargeFactors() const;
  // The scheduling gates a pod that is about to be created should have. Changes no decision.
  // Cost: as of a filter call.
  GateSet GatesFor(const PodRequest& request, Instant now);
  // The same of a pod that uses claims alone.
  DraWord DraWordFor(const PodRequest& request, const dra::PodClaims& claims, Instant now);
  // Pods the cluster shows that wait, with the reason of their last filter; ascending uid.
  std::vector<std::pair<PodUid, Reason>> Waiting() const;
  std::optional<PodView> Pod(const PodUid& uid);
  // GPU pods that hold devices, by class; "" for none.
  std::map<std::string, int64_t> PodsByClass() const;
  // Ascending leaf, class, reason.
  std::vector<PendingRow> Pending(Instant now);
  std::vector<DecayRow> Decay() const;
  // Of all pods together, for comparing with the ledger.
  Charge HeldQuanta() const;
  // Reservations older than `age`, for alarms and for the resolver.
  std::vector<std::pair<PodUid, NodeName>> StuckReservations(Instant now, Millis age) const;
  // The cluster as values, for advice. Cost: O(nodes + pods), a few milliseconds in large fleets.
  AdviceCase Case(Instant now);
  // Keeps new GPU pods away from the node while something of ours changes it; empty: no longer.
  void SetHeld(const NodeName& node, std::string why, Instant now);
  // Goes on learning tables for a few milliseconds at most; false: nothing is left to do.
  bool Learn();
  // Every invariant of the books recomputed from scratch; empty: all hold. For tests and the
  // periodic self-check. Cost: O(everything).
  std::vector<std::string> Audit() const;
  // Cached verdicts of this request's shape against fresh evaluation, node by node; for tests.
  std::vector<std::string> AuditVerdicts(const PodRequest& request) const;
  // A text that is equal for equal books (nodes, holdings, devices); claims are left out.
  std::string Digest() const;

 private:
  // Parts of the engine in files of their own.
  friend class DraDesk;
  friend class GateKeeper;
  friend class ReclaimCase;
  friend class GangSites;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche
