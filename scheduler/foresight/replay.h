// The past lived again: what would have become of the pods that came, with the nodes and policies
// there were, or with others.
//
// Pods come when they came, nodes and policies change when they did; where pods go, who waits and
// who is evicted is the engine's to decide anew. A pod runs as long as its work needed; where it
// would be evicted it comes back and begins again. Kube-scheduler's own time is not counted: a
// start is at the moment from which nothing stood in its way.
//
// Values in, values out. Deterministic: the same past is lived in the same way. Cost: as of a
// rehearsal (rehearsal.h) of all of it; memory some 2 KB a pod.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy_set.h"
#include "scheduler/engine/report_walks.h"
#include "scheduler/engine/state/options.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_facts.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// A piece of work: a pod, with those that its controller made in its place when it was evicted.
struct PastWork {
  PodFacts pod;  // as it came; of one that ran when the past begins, on its node
  Instant created;
  std::optional<Millis> needs;  // how long it runs; nullopt: on beyond the end of the past
  std::optional<Instant> left;  // it was taken away before it ran
};

// What changed at a moment.
struct PastTurn {
  Instant at;
  std::shared_ptr<const PolicySet> set;  // all that is in force from then on; null: as before
  GpuPolicy defaults;                    // with `set`
  std::vector<NodeFacts> nodes;          // that came, or were otherwise from then on
  std::vector<NodeName> gone;
  struct GangSize {
    std::string ns;
    std::string gang;
    int size = 0;
  };
  std::vector<GangSize> gangs;
};

struct Past {
  Instant from;
  Instant until;
  EngineOptions options;
  std::vector<PastTurn> turns;  // ascending time; those at `from` are how it begins
  std::vector<PastWork> work;   // ascending created, uid
};

// A time that a piece of work had its devices.
struct WorkRun {
  NodeName node;
  Instant from;
  std::optional<Instant> until;  // nullopt: beyond the end
  bool evicted = false;
  friend bool operator==(const WorkRun&, const WorkRun&) = default;
};
struct WorkLife {
  PodUid uid;
  PodName pod;
  Instant created;
  MilliGpu gpus;  // as they are charged; of one that never started as far as its request tells
  std::vector<WorkRun> runs;
  friend bool operator==(const WorkLife&, const WorkLife&) = default;
};

// How what the nodes offer changed at a moment.
struct PastFleet {
  Instant at;
  int64_t gpus = 0;              // of all nodes from then on
  std::vector<FleetNode> nodes;  // that offer something else than before; no GPUs: gone
  std::shared_ptr<const PolicySet> set;
};

struct LivedPast {
  std::vector<WorkLife> lives;   // parallel to Past::work
  std::vector<PastFleet> fleet;  // ascending time
  bool complete = true;          // false: it was given up before the end
};

// `goes_on` is told how far it has come, and asked whether it may go on. Null: it may.
LivedPast LiveAgain(const Past& past, const std::function<bool(Instant now)>& goes_on = nullptr);

// Over a span.
struct PastSums {
  int64_t pods = 0;     // pieces of work that came in it
  int64_t started = 0;  // of them
  Millis wait_mean{0};  // of those that started
  Millis wait_median{0};
  Millis wait_p90{0};
  int64_t evictions = 0;
  // GPU-hours in milli-GPU-milliseconds: lost with evictions, held, and offered by nodes.
  int64_t lost = 0;
  int64_t held = 0;
  int64_t offered = 0;
};
// `chosen`: of which lives, by their place; null: of all.
PastSums SumOf(const LivedPast& lived, Instant from, Instant until,
               const std::function<bool(std::size_t life)>& chosen = nullptr);

}  // namespace tranche
