// A reclaim as it is carried out and shown: the preemptor, the victims and the progress.
//
// A plain value. The engine keeps the truth while it runs; the GPUReclaim object the shell writes
// from it is what a restart continues with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quota/preemption/reclaim.h"
#include "quota/tree/marking.h"
#include "scheduler/facts/reason.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

enum class ReclaimPhase : uint8_t {
  kPlanned,
  kEvicting,  // the first eviction was asked for
  kReserved,  // every victim is gone; the devices wait for the preemptor
  kDone,      // the preemptor has them (of drains: every victim is gone)
  kAborted,   // see `reason`
};
std::string_view ReclaimPhaseName(ReclaimPhase phase);  // "Planned", ...

// A pod that waits for the devices. `placed`: it has got a node since.
struct ReclaimMember {
  PodName pod;
  PodUid uid;
  NodeName node;  // its devices are reserved there
  bool placed = false;
  friend bool operator==(const ReclaimMember&, const ReclaimMember&) = default;
};

struct ReclaimVictim {
  PodName pod;
  PodUid uid;
  NodeName node;
  std::string gang;   // empty: a gang of one
  std::string owner;  // see EvictionHistory
  std::string leaf;   // empty: none
  QuotaState state = QuotaState::kInQuota;
  int64_t lost_gpu_ms = 0;            // as planned; of the pod, not of its gang
  std::optional<Instant> checkpoint;  // the last it published
  std::optional<Millis> grace;        // of its class; nullopt: the pod's own
  std::optional<Instant> evicted_at;  // the API server took the eviction
  std::optional<Instant> gone_at;     // it holds nothing any more
  bool again = false;                 // its owner was evicted before, within a day
  friend bool operator==(const ReclaimVictim&, const ReclaimVictim&) = default;
};

struct Reclaim {
  std::string name;  // of the GPUReclaim object: unique, a DNS label
  ReclaimRule rule = ReclaimRule::kNone;
  // The members of the preemptor's gang; empty for kDrain (`source` is the GPUBudget), kShrink
  // (`source` is the GPUQuota), kGang (`source` is namespace/gang), kMaxRuntime (`source` is the
  // GPUClass), kMaintenance (`source` is the GPUPool), kUnhealthy, kInterruption, kConsolidate
  // and kMigLayout (`source` is the node) and kIdle (`source` is the GPUClass).
  std::vector<ReclaimMember> members;
  std::string source;
  std::string leaf;  // that it is for
  ReclaimPhase phase = ReclaimPhase::kPlanned;
  // Of kAborted, one CamelCase word: PreemptorGone, PlacedElsewhere, Changed (the plan no longer
  // holds), PDBBlocked, Forbidden, VictimStuck, Unclaimed (the preemptor did not come in time).
  std::string reason;
  std::vector<ReclaimVictim> victims;  // in the order of eviction
  PlanCost cost;                       // `order` is not kept
  bool optimal = false;
  int64_t evaluations = 0;  // of geometry, as a measure of the search
  uint64_t snapshot = 0;    // version of the books the plan was made on
  Instant planned_at;
  std::optional<Instant> reserved_at;
  std::optional<Instant> finished_at;
  uint64_t version = 0;  // grows with every change, across all reclaims

  bool finished() const { return phase >= ReclaimPhase::kDone; }
  std::size_t gone() const;  // victims that are
  friend bool operator==(const Reclaim&, const Reclaim&) = default;
};

// What `source` is under a rule without preemptor: "GPUBudget", "GPUQuota", "Gang", "GPUClass",
// "GPUPool".
std::string_view SourceKind(ReclaimRule rule);

// Why the planner did not take devices back for a pod, though a rule would let it.
struct PlanBlock {
  Reason reason = Reason::kNone;  // kPdbBlocked .. kNodeExpected
  std::string detail;             // whom, by which guard
  std::optional<Instant> until;
};

// An eviction to be asked of the API server now. The answer goes to Engine::SettleEviction.
struct EvictionOrder {
  std::string reclaim;
  PodName pod;
  PodUid uid;
  std::optional<Millis> grace;
};
enum class EvictionOutcome : uint8_t {
  kAccepted,
  kGone,       // no pod of that name and uid: nothing to do
  kBlocked,    // 429: a PodDisruptionBudget stands in the way now
  kForbidden,  // 403: not allowed to evict; an administrator must act
  kFailed,     // the answer was lost, or the server failed: may be tried again
};

// status.nominatedNodeName of a waiting pod; an empty node takes it back.
struct Nomination {
  PodName pod;
  PodUid uid;
  NodeName node;
  bool early = false;  // ahead of the pod's turn: nothing is kept for it
};

// A pod that has to leave soon: its class lets it run, or be idle, no longer (kMaxRuntime, kIdle,
// `source` is the class), maintenance of its node begins (kMaintenance, `source` is the pool), or
// its GPU is unhealthy, or its node is emptied or taken away (kUnhealthy, kConsolidate, kMigLayout,
// kInterruption, `source` is the node).
struct RunLimitWarning {
  PodName pod;
  PodUid uid;
  ReclaimRule rule = ReclaimRule::kMaxRuntime;
  std::string source;
  Instant leaves;
};

// Work that Tranche has bound.
struct StartedWork {
  std::string leaf;             // empty: none
  std::string workload_class;   // empty: none
  Millis waited;                // since it was created
  bool within_nominal = false;  // nothing was borrowed for it
};

// What the engine wants done for reclaims, in order; and records that changed, as they are now.
struct ReclaimWork {
  std::vector<Reclaim> changed;
  std::vector<Nomination> nominations;
  std::vector<EvictionOrder> evictions;
  std::vector<StartedWork> starts;
  std::vector<RunLimitWarning> warnings;
  bool empty() const {
    return changed.empty() && nominations.empty() && evictions.empty() && starts.empty() &&
           warnings.empty();
  }
};

}  // namespace tranche
