// What the engine keeps of one pod and of one node; for the engine's own files.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/disruption_budget.h"
#include "quota/preemption/reclaim.h"
#include "quota/quota_book.h"
#include "scheduler/advice/demand.h"
#include "scheduler/engine/state/node_prices.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/gates.h"
#include "scheduler/facts/gpu_use.h"
#include "scheduler/facts/interruption.h"
#include "scheduler/facts/pod_facts.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"
#include "scheduler/facts/reclaim.h"
#include "scheduler/index/charge_of.h"
#include "scheduler/index/node_names.h"
#include "scheduler/index/node_state.h"
#include "scheduler/index/state_table.h"
#include "scheduler/index/zone_lag.h"

namespace tranche {

// Nodes of one kind charge a request the same.
using ChargeKind = Index<struct ChargeKindTag>;

// How a pod may be taken away, as the cluster shows it.
struct PodTraits {
  std::string owner;       // see EvictionHistory
  std::string maker;       // uid of its controller; empty: it has none
  bool made_anew = false;  // by that, when it is gone
  std::string controller;  // as of PodFacts, as are the next four
  bool left_alone = false;
  bool of_replica_set = false;
  DeletionCostMark deletion_cost;
  std::string provisioning;
  std::shared_ptr<const Labels> labels;
  std::optional<Instant> checkpoint;
  Millis checkpoint_gap{0};          // between the last two that were seen; zero: one, or none, was
  std::optional<Instant> leaves_at;  // terminating: it should be gone by then
  Millis grace{30'000};              // from its deletion on, where nobody gives it another
  bool evictable = false;
  bool gated = false;
  GateSet gates;               // of ours
  bool foreign_gates = false;  // somebody else's
  // By more than our own word on quota: nobody is to be evicted for it.
  bool held_back() const { return foreign_gates || gates.gang; }
  bool unschedulable = false;
  std::string scheduler_says;         // kube-scheduler, why it is
  NodeName nominated;                 // status.nominatedNodeName, while it waits
  bool disrupted = false;             // somebody takes it away, us or others
  std::optional<Instant> evicted_at;  // by us
  QuotaState evicted_state = QuotaState::kInQuota;
  ReclaimRule evicted_by = ReclaimRule::kNone;
  // Came to its devices by a reclaim that no entitlement backed: not taken away again before.
  std::optional<Instant> settled_until;
};

// Devices and quota kept for a pod whose victims leave, or have left.
struct Earmark {
  NodeName node;
  Allocation allocation;
  HeldWork work;
};

// The key of the request's gang; empty: it is in none.
inline std::string GangKeyOf(const PodRequest& request) {
  return request.gang.empty() ? "" : request.name.ns + "/" + request.gang;
}
inline std::string GangKeyOf(const ReclaimVictim& victim) {
  return victim.gang.empty() ? "" : victim.pod.ns + "/" + victim.gang;
}

struct PodRecord {
  std::shared_ptr<const PodRequest> request;
  bool seen = false;        // by the cluster, not only by a filter call
  bool terminal = false;    // Succeeded or Failed; never comes back
  bool counted = false;     // as an arrival
  bool unreadable = false;  // its object: nothing is known but where it is
  NodeName node;            // bound there
  // Bind under way or without an answer; the holding on `reserved` is the reservation.
  NodeName reserved;
  const NodeName& Place() const { return node.empty() ? reserved : node; }
  bool writing = false;
  Instant reserved_since;
  // The tentative placement of the last filter.
  NodeId tentative = kNoNode;
  uint64_t tentative_serial = 0;
  std::vector<NodeId> ranked;  // answer of the last filter, best first
  std::optional<Instant> requeued_at;
  // Metering: how often it was opened before, and the charge a waiting pod was last judged by.
  int interval = 0;
  std::vector<ModelCharge> asked;
  // Before any filter call has: what it would be charged at most, as the kinds of node stood then.
  uint64_t foreseen_of = 0;
  int64_t foreseen = 0;
  std::optional<Instant> eligible_at;
  Reason observed = Reason::kNone;
  Instant waits_since;                  // created, else first filtered
  std::optional<Instant> held_since;    // as the cluster tells: bound, else taken up by the kubelet
  std::optional<Instant> ended_at;      // of a terminal pod
  std::optional<Instant> yields_since;  // others have given way to it since
  PodUid yields_to;                     // of the last kYieldingTo
  // By its own bind, until that is known to have worked.
  enum class Starting : uint8_t { kNo, kYes, kWithinNominal };
  Starting starting = Starting::kNo;
  PodTraits traits;
  std::optional<GpuUse> use;         // while somebody tells
  std::unique_ptr<Earmark> earmark;  // null: none
  std::string gang;                  // key of its gang's books; empty: none
  // The last filter without any fitting node.
  Reason last_reason = Reason::kNone;
  bool filtered = false;
  // What it counts as in the demand log; null: nothing, or no more.
  struct Demand {
    std::vector<DemandKind> kinds;
    bool placed = false;
  };
  std::unique_ptr<Demand> demand;
};

// Maintenance of the pool a node is in.
struct NodeWindow {
  std::string pool;
  Instant from;
  Instant to;
  bool drain = false;
  friend bool operator==(const NodeWindow&, const NodeWindow&) = default;
};

// A node that is about to be taken away: since when we have known.
struct NodeInterruption {
  const InterruptionNotice* notice = nullptr;  // one of the known ones
  Instant since;
};

// A node that work which may be moved is asked to leave: by which rule, and since when.
struct NodeEmptying {
  ReclaimRule rule = ReclaimRule::kConsolidate;
  Instant since;
};

struct NodeEntry {
  NodeState state;
  StateId hard = kNoState;
  StateId soft = kNoState;
  Reason closed = Reason::kUnknownNode;
  bool vanished = false;             // its devices went to zero while it stayed
  std::optional<Instant> stable_at;  // hazard 34
  std::deque<Instant> refusals;      // by the kubelet, within the window; hazard 13
  int refusal_rounds = 0;
  std::string unkept;  // pods follow a placeholder on a card that none holds; empty: nobody does
  std::optional<Instant> placeholders_due;  // when its placeholders are looked after again
  std::string held;  // why something of ours keeps pods away; empty: nothing does
  std::optional<NodeEmptying> emptying;
  // Stays when the node goes, for the pods that go with it.
  std::optional<NodeInterruption> interruption = {};
  // Why the newest version of its object could not be read; empty: it was. The facts are those of
  // an earlier version, or there are none.
  std::string unreadable;
  std::optional<Instant> refusing_until;
  std::string pool = {};                      // GPUPool; empty: in none
  std::optional<NodeWindow> window;           // that runs, or comes next
  std::optional<CapacityType> capacity = {};  // nullopt: nobody says
  // A class that does not bear a type is kept from nodes of it; of whom nobody says is on demand.
  CapacityType counts_as() const { return capacity.value_or(CapacityType::kOnDemand); }
  PriceGroup price_group = 0;
  // GPUs that its agent, which lives, calls unhealthy; since when we have known.
  std::map<GpuUuid, Instant> ill;
  ChargeKind kind;
  std::optional<Instant> lost_since;
  ZoneLag zone_lag;  // where zones are told

  // Whether the cluster is known to have it; only pods may be left of one that it has not.
  bool exists() const { return state.present() || !unreadable.empty(); }
};

}  // namespace tranche
