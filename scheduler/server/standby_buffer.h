// Stands between the cluster's watch and the engine's host: keeps what the cluster says while this
// process is a standby, tells the host all of it when the process begins to lead, and passes on
// what comes later.
//
// A standby holds each object once, as decoded, in its latest version, and no engine: what an
// engine remembers (claims, reservations, a mix of arrivals) is the leader's alone, and taking over
// is the same as a restart but for the lists that need not be read and decoded.
//
// Thread rule: any thread. Open once; events that come meanwhile wait until it is done.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/ports/cluster_events.h"

namespace tranche {

class StandbyBuffer : public ClusterEvents {
 public:
  // Tells all that is known, in the order of a start: what steers us and tells of nodes, nodes,
  // pods, Synced. Then forgets it. Requires: complete lists have been handed over.
  void Open(ClusterEvents& receiver);
  // The highest epoch of at most `most` in the allocation record of any pod; 0: none.
  int64_t HighestEpoch(int64_t most) const;

  void Receive(ClusterEvent event) override;

 private:
  using Steady = std::chrono::steady_clock;
  // What was heard of longer ago is told by the next sign of life.
  static constexpr std::chrono::seconds kFreshlyHeard{20};

  struct Known {
    std::map<std::tuple<std::string, std::string, std::string>, PolicyObject> policy_objects;
    std::map<NodeName, NodeZones> zones;
    std::map<NodeName, std::vector<SliceDevice>> slices;
    std::map<NodeName, AgentRegister> agents;
    std::map<dra::ObjectRef, dra::Object> dra;
    std::map<std::pair<std::string, std::string>, int> gangs;
    std::map<NodeName, NodeChanged> nodes;
    std::map<NodeName, std::string> unreadable;  // nodes, and why; also of those above
    std::map<PodUid, PodChanged> pods;
    std::map<PodUid, std::optional<Instant>> scale_ups;  // by when they were told
    std::map<std::string, Steady::time_point> heard;
  };

  struct Keep;

  mutable absl::Mutex mutex_;
  ClusterEvents* receiver_ ABSL_GUARDED_BY(mutex_) = nullptr;  // null: nothing is passed on yet
  Known known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche
