// kube-scheduler's queue of pods that wait: an active part by priority and time, those that back
// off, and those that wait for something to change.
//
// Source: kube-scheduler-extender sections 3.3 and 3.7; real-control-plane section 5 (the flush of
// those that wait for five minutes).
//
// A plain state machine; time comes in as values. Pods are known by uid.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "test/sim/base/loop.h"

namespace tranche::sim {

struct QueueOptions {
  SimTime first_backoff = std::chrono::seconds(1);
  SimTime most_backoff = std::chrono::seconds(10);
  SimTime flush_after = std::chrono::minutes(5);
  bool pops_early = false;  // SchedulerPopFromBackoffQ: an empty active queue ends backoffs
};

class SchedulingQueue {
 public:
  // Why a pod could not be placed, which says what may bring it back.
  enum class Failure : uint8_t {
    kExtender,  // an extender refused nodes: any change may help
    kFit,       // kube-scheduler's own filters alone: nodes that change, pods that go
    kError,     // a call failed: tried again by time alone
  };
  enum class Event : uint8_t { kFreed, kNodeChanged, kOther };

  explicit SchedulingQueue(QueueOptions options) : options_(options) {}

  void Add(const std::string& uid, int64_t priority, SimTime now);
  // The pod itself changed.
  void Update(const std::string& uid, SimTime now);
  void Remove(const std::string& uid);
  // The first one; it is under way until Failed or Remove.
  std::optional<std::string> Pop(SimTime now);
  void Failed(const std::string& uid, Failure why, SimTime now);
  // Something happened in the cluster.
  void Happened(Event event, SimTime now);
  // Ends what is over: once a second.
  void Tick(SimTime now);
  bool ready() const;
  std::size_t size() const { return pods_.size(); }

 private:
  enum class Place : uint8_t { kActive, kBackoff, kUnschedulable, kUnderWay };
  struct Pod {
    int64_t priority = 0;
    Place place = Place::kActive;
    Failure why = Failure::kFit;
    SimTime since{0};  // in this place
    SimTime backoff_until{0};
    int attempts = 0;
    uint64_t popped = 0;  // events that had happened
  };
  using Rank = std::tuple<int64_t, SimTime, std::string>;  // minus priority, time, uid

  static bool Helps(Event event, Failure why);
  void Put(const std::string& uid, Pod& pod, Place place, SimTime now);
  // To the active part, or to back off first.
  void Return(const std::string& uid, Pod& pod, SimTime now);

  QueueOptions options_;
  std::map<std::string, Pod> pods_;
  std::set<Rank> active_;
  std::set<Rank> early_;  // those that back off and may be popped early
  uint64_t events_ = 0;
  uint64_t last_[3] = {};  // by Event
};

}  // namespace tranche::sim
