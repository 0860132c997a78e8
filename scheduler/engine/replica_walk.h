// A copy of what the engine knows, from which another engine can be made that decides as this one
// would: taken slice by slice, so that verbs come between.
//
// It holds what the cluster told, as far as decisions hang on it, and what cannot be told again:
// what is charged since when, where budgets stand, which reclaims run. Binds under way count as
// done, and tentative placements are left out.
//
// Values; they belong to who asks. Between two slices the books may change, so that the whole is no
// snapshot of one moment: a pod that came to its node meanwhile is in it once, as it was seen last.
// Cost of a slice: some hundred microseconds. The copy takes about as much memory as the objects.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/disruption_budget.h"
#include "policy/policy_set.h"
#include "scheduler/dra/model.h"
#include "scheduler/engine/state/options.h"
#include "scheduler/facts/metering.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_facts.h"
#include "scheduler/facts/reason.h"
#include "scheduler/facts/reclaim.h"
#include "scheduler/index/namespace_caps.h"
#include "scheduler/scoring/score.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

struct NodeCopy {
  NodeFacts facts;         // as the Node object says
  bool present = false;    // false: only pods are known of it, or its object could not be read
  std::string unreadable;  // why the newest version of the object could not be read; empty: it was
  std::string held;        // why something of ours keeps pods away; empty: nothing does
  MilliCpu plain_cpu;      // what its pods without GPUs request together
  std::optional<NodeZones> zones;
  std::vector<SliceDevice> slices;
  std::optional<AgentRegister> agent;
};

struct PodCopy {
  PodFacts facts;
  std::string leaf;            // of one that is charged; empty: none
  std::string workload_class;  // likewise; of one that waits: by its priority class
  std::optional<Instant> eligible_at;
  Reason last_reason = Reason::kNone;  // of the last filter without any fitting node
  bool evicted = false;                // by us, and still there
  bool counted = false;                // among the arrivals of ClusterCopy::learned
};

struct ClusterCopy {
  Instant at;             // when it was complete
  uint64_t version = 0;   // of the books when the walk began
  bool complete = false;  // the first complete set of pods was in
  EngineOptions options;
  std::shared_ptr<const PolicySet> set;
  GpuPolicy defaults;           // governs where no policy of the set does
  std::vector<NodeCopy> nodes;  // ascending name
  std::map<PodUid, PodCopy> pods;
  MeterHistory history;  // open intervals, budgets' stands and decay alone
  std::vector<std::pair<std::string, int>> gang_sizes;  // namespace/gang, as objects tell
  std::vector<NamespaceCap> caps;
  std::vector<DisruptionBudget> disruption_budgets;
  std::vector<Reclaim> reclaims;
  std::vector<dra::Object> dra_objects;
  std::optional<ScorerMemory> learned;  // of the workload; nullopt: from its pods alone
};

struct ReplicaWalk {
  static constexpr int kNodesAtOnce = 16;
  static constexpr int kPodsAtOnce = 64;
  static constexpr int kObjectsAtOnce = 32;

  enum class Stage : uint8_t {
    kBegin,
    kObjects,
    kNodes,
    kPods,
    kClaimingPods,
    kClaims,
    kEnd,
    kDone
  };
  Stage stage = Stage::kBegin;
  std::optional<dra::ObjectRef> object;  // the last that was copied, of its kind
  std::optional<NodeName> node;          // likewise
  std::pair<PodName, PodUid> pod;        // likewise
  std::optional<PodUid> claim;           // likewise, by its key in the quota's books
  ClusterCopy copy;
  bool done() const { return stage == Stage::kDone; }
  // The copy of a walk that is done. Needs no engine. Cost: O(n log n) of what is charged.
  ClusterCopy Take();
};

}  // namespace tranche
