// What people, metrics and status objects are shown of the cluster: copies, so that encoding needs
// no lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/prices.h"
#include "policy/selector.h"
#include "quota/book_fault.h"
#include "quota/quota_book.h"
#include "quota/tree/model_charge.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/gpu_use.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/facts/reason.h"
#include "scheduler/facts/reclaim.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"
#include "topology/machine/machine_table.h"

namespace tranche {

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
  std::string enforced_by;  // who holds pods to their parts: "mps", "mig", ...; empty: nobody
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
  NodeTraits traits;  // its pool, and what prices ask of it
};
enum class PodState : uint8_t { kPending, kClaimed, kReserved, kBound };
struct PodView {
  PodName name;
  PodUid uid;
  PodState state = PodState::kPending;
  NodeName node;
  std::string gang;                       // within its namespace; empty: none
  std::string leaf;                       // empty: none owns it
  std::string workload_class;             // empty: none
  std::optional<QuotaState> quota_state;  // of one that holds devices
  std::string priority_class;
  std::optional<Allocation> allocation;  // bound, reserved or claimed devices
  std::vector<std::string> containers;   // names, init containers first; of one with devices
  // Pending: of the last filter's refusals the one closest to fitting.
  Reason reason = Reason::kNone;
  std::string detail;  // with numbers and quoted values
  // What its containers set of MPS themselves, a sentence each.
  std::vector<std::string> own_limits;
  std::string scheduler_says;          // pending: kube-scheduler's own message, shortened
  std::optional<Instant> eligible_at;  // when time alone changes the answer
  Reason observed = Reason::kNone;     // what a quota in mode Observe would have said
  bool devices_unknown = false;        // holds devices we cannot name (or an unreadable record)
  // Pending or claimed: what it asks for, and since when it waits (created, else first asked
  // about).
  std::shared_ptr<const PodRequest> request;
  std::optional<Instant> waits_since;
  std::shared_ptr<const Labels> labels;  // null: none, or the cluster has not shown it yet
  std::optional<GpuUse> use;             // of one that holds devices, while somebody tells
};
// A gang whose pods ask for GPUs.
struct GangView {
  // As gang_seats.h says; kLeaving: more of its pods are being evicted than it can spare.
  enum class State : uint8_t { kGathering, kWaiting, kSeated, kRunning, kLeaving };

  PodName name;  // the gang's, in its namespace
  State state = State::kGathering;
  std::string leaf;  // of its first pod; empty: none owns it
  int size = 0;      // pods that start together; 0: nobody says
  int bound = 0;
  int binding = 0;
  int waiting = 0;              // could be placed
  int gated = 0;                // could be, but for gates of ours
  int plain = 0;                // ask for no GPU
  std::vector<NodeName> nodes;  // where its pods are, and where places are kept for them; ascending
  std::optional<Instant> waits_since;  // the pod that waits longest; nullopt: none waits
  std::string detail;                  // why it waits
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
// What a waiting pod is ordered by, the weightiest term first.
struct TurnView {
  PodName pod;
  PodUid uid;
  std::string leaf;                 // empty: none owns it
  std::string workload_class;       // empty: none
  int rank = 0;                     // of the class
  std::optional<ShareTerms> share;  // of the leaf, where there is one
  bool returned = false;            // a pod of its owner was evicted and this one takes its place
  Instant since;                    // it waits
};
enum class TurnTerm : uint8_t { kClass, kShare, kReturned, kSince, kUid };
// Pods that wait for the same, and where one of them stands.
struct TurnLine {
  enum class For : uint8_t {
    kQuota,  // what others of the tree give back: all terms
    kRoom,   // that room is made for them: without the share
  };
  For what = For::kQuota;
  int64_t position = 0;  // 1 is the first
  int64_t waiting = 0;
  // Right before and after it, and which term says so.
  std::optional<TurnView> before;
  TurnTerm before_by = TurnTerm::kUid;
  std::optional<TurnView> after;
  TurnTerm after_by = TurnTerm::kUid;
};
struct RankView {
  TurnView own;
  bool waits = false;
  std::vector<TurnLine> lines;  // that it stands in; none: nobody but kube-scheduler orders it
};
struct WhatIfResult {
  PodName name;
  bool fits = false;
  NodeName node;
  std::optional<Allocation> allocation;
  // The pods it needs evicted to fit; empty: none.
  std::vector<ReclaimVictim> victims;
  ReclaimRule rule = ReclaimRule::kNone;
  PlanCost cost;
  bool optimal = false;
  Reason reason = Reason::kNone;
  std::string detail;
};

// Running work of a quota that is gone, in a namespace that none owns.
struct AbandonedWork {
  std::string quota;  // that admitted it
  int64_t pods = 0;
  int64_t quanta = 0;                   // GPU-equivalents
  std::vector<std::string> namespaces;  // ascending
};
// What a team can count on of one line, as things stood when it was asked.
struct LineReach {
  std::string model;  // or any
  // A pod of up to so many GPUs of its own work would start, zero: none would,
  int64_t gpus = 0;
  // so soon after it came; zero: at once.
  Millis within{0};
  // Why a larger one would not, as one CamelCase word and for people. Without the word: it would
  // not be the team's own, or no node could hold it.
  std::string code;
  std::string why;
};
struct QuotaView {
  QuotaReport report;
  int64_t pending_workloads = 0;
  // GPU-equivalents of those that GPUs which come free would serve: not of what no node here could
  // ever hold.
  int64_t pending_quanta = 0;
  bool over_limit = false;                 // uses more than it could be given now
  std::string oversubscribed;              // which promise exceeds the hardware; empty: none
  std::vector<std::string> absent_models;  // that its lines name and no node has
  std::vector<AbandonedWork> abandoned;    // of the whole cluster, at every root; ascending
  std::vector<LineReach> reach;            // of lines with a nominal; empty: not known
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
// Of them those whose nodes are in a GPUPool.
struct PoolTotals {
  std::string model;
  std::string pool;
  int64_t gpus = 0;
  MilliGpu allocated;
};
// Nodes that kube-scheduler was told before it asked, and what became of them; ever.
struct EarlyTotals {
  int64_t told = 0;
  int64_t taken = 0;      // it asked about that node alone, and the pod may go there
  int64_t late = 0;       // it asked about others too, as it had not heard
  int64_t refused = 0;    // the node was not good enough for it, or no longer for us
  int64_t withdrawn = 0;  // it did not ask in time, or the pod waits for something else
  int64_t outstanding = 0;
};
struct EngineTotals {
  int64_t nodes = 0;
  int64_t nodes_closed = 0;
  int64_t pods_bound = 0;
  int64_t pods_pending = 0;
  int64_t tentative_placements = 0;
  int64_t reservations = 0;
  int64_t pods_devices_unknown = 0;
  int64_t agent_waiting = 0;      // binds that wait for their turn at an agent
  int64_t agent_serving = 0;      // written for an agent and not served yet
  int64_t agent_passed_over = 0;  // ever, without having been served
  std::optional<Instant> oldest_reservation;
  std::array<int64_t, kBookFaultKinds> book_faults{};  // ever, by kind
  EarlyTotals early;
  std::vector<ModelTotals> models;  // by name
  std::vector<PoolTotals> pools;    // by model and pool
};

}  // namespace tranche
