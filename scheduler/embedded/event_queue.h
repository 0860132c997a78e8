// Hands events to the engine one after another, in the order they were queued, with no lock of
// the cluster held.
//
// The thread that finds nobody delivering delivers until the queue is empty; other threads wait
// for it (Flush) or leave their events to it (Start). An event may therefore queue further ones,
// and whoever receives it may call the cluster again.
//
// Thread rule: any thread. Push under the lock that orders the changes, the rest outside of it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/ports/cluster_events.h"

namespace tranche::embedded {

class EventQueue {
 public:
  // An event for the engine, or an answer to whoever waits until it has seen those before.
  using Step = std::variant<ClusterEvent, std::function<void()>>;

  explicit EventQueue(ClusterEvents& events);

  void Push(Step step);
  // Returns when every step queued before the call has run. Called from within a step it returns
  // at once; what was queued runs when that step is over.
  void Flush();
  // As Flush, but leaves the work to a thread that is doing it already.
  void Start();

 private:
  void Run(Step step);
  // Gives the lock back while a step runs.
  void Deliver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ClusterEvents& events_;
  absl::Mutex mutex_;
  absl::CondVar delivered_changed_;
  std::deque<Step> steps_ ABSL_GUARDED_BY(mutex_);
  uint64_t queued_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t delivered_ ABSL_GUARDED_BY(mutex_) = 0;
  bool delivering_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread::id deliverer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche::embedded
