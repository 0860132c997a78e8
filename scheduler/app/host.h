// The one place where the engine lives: it puts every call under one lock, gives it the time, takes
// in what the cluster tells, and knows whether Tranche may decide.
//
// Thread rule: any thread. The lock is never held across I/O, and for views of many nodes or pods
// only for kPage of them at a time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/engine/engine.h"
#include "scheduler/ports/clock.h"
#include "scheduler/ports/cluster_events.h"

namespace tranche::app {

enum class Readiness : uint8_t {
  kReady,
  kLoading,   // the first complete set of nodes and pods is not in yet
  kStale,     // nothing was heard of nodes or pods for longer than the cache limit
  kStopping,  // on the way out
};
// A fixed sentence without numbers: it reaches kube-scheduler, which re-queues pods whose message
// changes.
std::string_view Describe(Readiness readiness);

struct HostOptions {
  EngineOptions engine;
  GpuPolicy defaults;
  // Oldest cache a decision may rest on; zero: any age (the embedded cluster cannot lag).
  std::chrono::milliseconds cache_limit{0};
};

class Host : public ClusterEvents {
 public:
  static constexpr std::size_t kPage = 256;

  Host(HostOptions options, const Clock& clock);

  // work(Engine&, Instant now) under the lock. Nothing the engine hands out by pointer may leave.
  template <typename Work>
  auto With(Work&& work) {
    const std::lock_guard lock(mutex_);
    return std::forward<Work>(work)(engine_, clock_.Now());
  }

  // Called, outside the lock, for every pod that kube-scheduler should try again. Set before events
  // come from more than one thread.
  using Poker = std::function<void(const PodName& pod, const PodUid& uid, Instant when)>;
  void OnPoke(Poker poker) { poker_ = std::move(poker); }

  Readiness readiness() const;
  void BeginStopping() { stopping_ = true; }
  // True: device misfits that eviction could cure are kube-scheduler's to solve.
  bool preemption_in_tree() const { return preemption_in_tree_; }
  // GPUPolicy objects that are not in force because another one is.
  int64_t surplus_policies() const { return surplus_policies_; }
  // Time since "pods" or "nodes" was heard of; nullopt: never, or another resource.
  std::optional<std::chrono::milliseconds> HeardAge(std::string_view resource) const;

  // All nodes by name, all pods by namespace/name; pages are copied one after another, so that the
  // whole is no snapshot of one moment.
  std::vector<NodeView> Nodes();
  std::vector<PodView> Pods();
  // Ends what is due by the clock. Returns when to call again; nullopt: nothing waits.
  std::optional<Instant> Tick();

  void NodeChanged(NodeFacts node) override;
  void NodeGone(const NodeName& name) override;
  void PodChanged(PodFacts pod) override;
  void PodGone(const PodUid& uid) override;
  void PoliciesChanged(std::vector<GpuPolicy> policies) override;
  void Synced() override;
  void Heard(const char* resource) override;

 private:
  // Hands an event to the engine, and on to the poker whom it brings back.
  template <typename Work>
  void Tell(Work work) {
    Instant when;
    std::vector<std::pair<PodName, PodUid>> pokes;
    With([&](Engine& engine, Instant now) {
      when = now;
      work(engine, now);
      pokes = engine.TakePokes();
    });
    for (const auto& [pod, uid] : pokes) {
      if (poker_) poker_(pod, uid, when);
    }
  }

  using Steady = std::chrono::steady_clock;
  static constexpr std::array<std::string_view, 2> kWatched = {"pods", "nodes"};
  static constexpr Steady::rep kNever = -1;

  const Clock& clock_;
  const GpuPolicy defaults_;
  const std::chrono::milliseconds cache_limit_;
  std::mutex mutex_;
  Engine engine_;  // guarded by mutex_
  Poker poker_;
  std::atomic<bool> synced_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> preemption_in_tree_ = false;
  std::atomic<int64_t> surplus_policies_ = 0;
  // Steady time of the last sign of life, parallel to kWatched.
  std::array<std::atomic<Steady::rep>, kWatched.size()> heard_ = {kNever, kNever};
};

}  // namespace tranche::app
