// The cluster as plain values, for questions that are answered outside the engine's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "policy/spec.h"
#include "scheduler/advice/demand.h"
#include "scheduler/facts/node_constraints.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_facts.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/index/inventory.h"
#include "scheduler/index/load.h"
#include "scheduler/index/placement.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// A pod that holds devices (allocation or reservation).
struct AdvicePod {
  PodName name;
  PodUid uid;
  std::size_t node = 0;  // index into AdviceCase::nodes
  std::shared_ptr<const PodRequest> request;
  std::string leaf;            // empty: no team
  std::string workload_class;  // empty: none
  Picks picks;
  PodUse use;
  bool known = true;      // its devices are what we wrote, not a guess
  bool evictable = true;  // somebody makes it anew, and its class would let it go
  // A node may be emptied of it, by GPUPolicy consolidate or mig.window (MayBeMoved, and nothing
  // guards it now).
  bool moves_to_consolidate = false;
  bool moves_for_layout = false;
  bool leaves = false;           // it was asked to: whoever takes its place waits, or has one
  bool borrowed = false;         // more than its team is entitled to
  std::string replica_set = {};  // uid of the ReplicaSet that made it; empty: none, or a gang's pod
  DeletionCostMark deletion_cost = {};
  // GPU-milliseconds of work lost if it went now (since start or checkpoint, capped by its class).
  int64_t lost_gpu_ms = 0;
};

struct AdviceNode {
  NodeName name;
  Inventory inventory;
  Load load;
  MilliCpu cpu_capacity;  // zero: not said
  MilliCpu cpu_free;
  bool open = true;  // takes new pods
  // What the constraints of waiting pods are held against.
  LabelText labels;
  std::vector<Taint> taints;
  MigStrategy mig_strategy = MigStrategy::kNone;  // label nvidia.com/mig.strategy
  // Its MIG layout is changed by a node label and mig-manager (label nvidia.com/mig.config is
  // there, or nvidia.com/mig.capable is true); its current value; the state mig-manager tells.
  bool has_mig_manager = false;
  std::string mig_config;
  std::string mig_config_state;  // "success", "pending", "failed", empty
};

struct AdviceWaiter {
  PodName name;
  PodUid uid;
  std::shared_ptr<const PodRequest> request;
  std::string leaf;
  std::string workload_class;
  Instant since;
  bool quota_allows = true;            // false: quota, not devices, is what it waits for
  Reason last_reason = Reason::kNone;  // of its last try; kNone: it was not tried
  bool gated = false;
  std::string provisioning = {};  // as of PodFacts
  std::string maker = {};         // uid of its controller; empty: none
};

struct AdviceCase {
  Instant now;
  std::vector<AdviceNode> nodes;      // ascending name
  std::vector<AdvicePod> pods;        // ascending node, uid
  std::vector<AdviceWaiter> waiting;  // by time of waiting, then uid
  std::vector<DemandRow> demand;      // recorded, see demand.h
  Instant demand_since;               // DemandLog::since()
  std::vector<GpuClass> classes;
  GpuPolicy policy;  // the one of no namespace
  LayoutValueMap layout_values;
};

}  // namespace tranche
