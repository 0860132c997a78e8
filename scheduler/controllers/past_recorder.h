// Tells the ledger what happens in the cluster, so that it can be lived through again: stands
// between the cluster and who receives its events, and passes every one of them on first.
//
// Kept are pods that ask for GPUs, nodes, policies and the sizes of gangs. What came and went while
// nobody watched is not.
//
// Thread rule: any thread. Cost: of an event some look-ups under a lock of its own; memory some 150
// bytes a pod that is there, and what is new since the last Tick.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "policy/spec.h"
#include "scheduler/facts/past.h"
#include "scheduler/ports/clock.h"
#include "scheduler/ports/cluster_events.h"
#include "scheduler/ports/ledger.h"

namespace tranche {

class PastRecorder : public ClusterEvents {
 public:
  // So much news goes to the ledger at once, without waiting for a Tick.
  static constexpr std::size_t kMostKept = 512;

  // `ledger` null: passes on alone. All outlive this. `defaults`: what governs where no GPUPolicy
  // does.
  PastRecorder(ClusterEvents& next, Ledger* ledger, const Clock& clock, const GpuPolicy& defaults);

  void Receive(ClusterEvent event) override;
  // Hands over what is new.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Known {
    bool started = false;
    bool disrupted = false;
  };
  struct Looker;
  void See(const PodChanged& told) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SeeGone(const PodUid& uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SeeObject(std::string kind, std::string name, std::string object)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SeeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ClusterEvents& next_;
  Ledger* const ledger_;
  const Clock& clock_;
  const std::string server_policy_;
  absl::Mutex mutex_;
  std::unordered_map<PodUid, Known> pods_ ABSL_GUARDED_BY(mutex_);  // looked up only
  // Objects that are there, and a number of what they say.
  std::map<std::pair<std::string, std::string>, std::size_t> objects_ ABSL_GUARDED_BY(mutex_);
  PastNews news_ ABSL_GUARDED_BY(mutex_);
  bool all_seen_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tranche
