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
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/policy_set.h"
#include "scheduler/app/history_desk.h"
#include "scheduler/engine/engine.h"
#include "scheduler/ports/clock.h"
#include "scheduler/ports/cluster_events.h"
#include "scheduler/ports/ledger.h"

namespace tranche::app {

enum class Readiness : uint8_t {
  kReady,
  kLoading,   // the first complete set of nodes and pods is not in yet
  kStale,     // nothing was heard of nodes or pods for longer than the cache limit
  kStandby,   // another process leads
  kStopping,  // on the way out
};
// A fixed sentence without numbers: it reaches kube-scheduler, which re-queues pods whose message
// changes.
std::string_view Describe(Readiness readiness);

// Carries out what reclaims want done.
class ReclaimSink {
 public:
  virtual ~ReclaimSink() = default;
  // What GPUReclaim objects told at start. Once, before everything else.
  virtual void Restored(const std::vector<Reclaim>& reclaims) = 0;
  // Under the engine's lock, so that work comes in the engine's order: only queues.
  virtual void Queue(ReclaimWork work, Instant now) = 0;
  // Outside of it: does what is queued. Ends up here again when doing makes further work.
  virtual void Carry() = 0;
};

struct HostOptions {
  EngineOptions engine;
  GpuPolicy defaults;
  // Oldest cache a decision may rest on; zero: any age (the embedded cluster cannot lag).
  std::chrono::milliseconds cache_limit{0};
  // Whether this process may still write what it decides; null: always.
  std::function<bool()> may_write = nullptr;
};

class Host : public ClusterEvents {
 public:
  static constexpr std::size_t kPage = 256;
  // Rounds of planning in one Tick, and of learning.
  static constexpr int kMostPlans = 64;
  static constexpr int kMostLessons = 8;

  Host(HostOptions options, Clock& clock);

  // work(Engine&, Instant now) under the lock. Nothing the engine hands out by pointer may leave.
  // What the work makes due is done before the call returns: the ledger has its journal queued in
  // the engine's order, and outside the lock whom kube-scheduler should try again is poked and what
  // reclaims want is carried out.
  template <typename Work>
  auto With(Work&& work) {
    const Turn turn(*this);
    return std::forward<Work>(work)(engine_, Now());
  }

  // Calls `done` once what the ledger was told before is on disk, or at once when it cannot be
  // written (placement goes on) or there is none.
  void WhenMetered(std::function<void()> done);
  // Tells the ledger that we live, and how usage has faded.
  void Heartbeat();
  // Where metering goes; null: nowhere. With it, before events come: what it remembers.
  void SetLedger(Ledger* ledger, MeterHistory history);
  // What objects told of earlier ledgers when the first complete set of them was in. Whatever this
  // one lacked of it is queued to be entered. Empty before.
  FoundHistory found_history() const;

  // Called, outside the lock, for every pod that kube-scheduler should try again. Set before events
  // come from more than one thread.
  using Poker = std::function<void(const PodName& pod, const PodUid& uid, Instant when)>;
  void OnPoke(Poker poker) { poker_ = std::move(poker); }

  // Called, outside the lock, for every scheduling gate of ours that is to go. Set like the poker.
  using Ungater = std::function<void(const GateRemoval& removal)>;
  void OnUngate(Ungater ungater) { ungater_ = std::move(ungater); }

  // Called with what the engine wants done about agents, outside of its lock but perhaps under
  // those of whoever called. Set before events come from more than one thread.
  using AgentObserver = std::function<void(const AgentWork& work)>;
  void OnAgentWork(AgentObserver observer) { agent_observer_ = std::move(observer); }

  // Null: reclaims are planned and not carried out. Set before events come, outlives their use.
  void SetReclaimSink(ReclaimSink* sink) { reclaim_sink_ = sink; }
  // Told of every round of planning and how long it held the engine.
  using PlanObserver = std::function<void(const PlanOutcome& outcome, std::chrono::nanoseconds)>;
  void OnPlan(PlanObserver observer) { plan_observer_ = std::move(observer); }

  Readiness readiness() const;
  void BeginStopping() { stopping_ = true; }
  // True: device misfits that eviction could cure are kube-scheduler's to solve.
  bool preemption_in_tree() const { return preemption_in_tree_; }
  // Of the policy that governs where no namespace's own does.
  MigMode mig_mode() const { return mig_mode_; }
  // Objects of ours that are not in force as written.
  int64_t invalid_objects() const { return invalid_objects_; }
  // What is wrong with objects or must be known of them, and what identifies each.
  struct Steering {
    std::vector<Finding> findings;
    // kind, name -> uid and generation.
    std::map<std::pair<std::string, std::string>, std::pair<std::string, int64_t>> objects;
    std::set<std::pair<std::string, std::string>> views;  // namespace, name of GPUQuotaViews
    std::set<std::string> namespaces;                     // known ones
    uint64_t version = 0;                                 // grows with every change
  };
  Steering steering() const;
  // Empty: no such object.
  std::string UidOf(const std::string& kind, const std::string& name) const;
  // Time since "pods" or "nodes" was heard of; nullopt: never, or another resource.
  std::optional<std::chrono::milliseconds> HeardAge(std::string_view resource) const;

  // All nodes by name, all pods by namespace/name; pages are copied one after another, so that the
  // whole is no snapshot of one moment.
  std::vector<NodeView> Nodes();
  std::vector<PodView> Pods();
  // Ends what is due by the clock, plans what waits to be planned and, where nobody waits, learns
  // what decisions will ask for, one round at a time: calls of others come between. Returns when to
  // call again (the present where planning goes on); nullopt: nothing waits.
  std::optional<Instant> Tick();

  void NodeChanged(NodeFacts node) override;
  void NodeGone(const NodeName& name) override;
  void PodChanged(PodFacts pod) override;
  void PodGone(const PodUid& uid) override;
  void NodeZonesChanged(const NodeName& name, std::optional<NodeZones> zones) override;
  void NodeSlicesChanged(const NodeName& name, std::vector<SliceDevice> devices) override;
  void DraChanged(dra::Object object) override;
  void DraGone(const dra::ObjectRef& object) override;
  void NodeAgentChanged(const NodeName& name, std::optional<AgentRegister> agent) override;
  void GangSizeChanged(const std::string& ns, const std::string& gang, int size) override;
  void SteeringChanged(SteeringObject object) override;
  void SteeringGone(const std::string& kind, const std::string& ns,
                    const std::string& name) override;
  void SteeringSettled() override;
  void Synced() override;
  void Heard(const char* resource) override;

 private:
  // One use of the engine: the lock, and what is to be done when it is given back.
  class Turn {
   public:
    explicit Turn(Host& host) : host_(host), lock_(host.mutex_, std::defer_lock) {
      ++host_.waiting_;
      lock_.lock();
      --host_.waiting_;
    }
    ~Turn() { host_.EndTurn(lock_); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Host& host_;
    std::unique_lock<std::mutex> lock_;
  };
  void EndTurn(std::unique_lock<std::mutex>& lock);
  std::optional<PlanOutcome> Plan();
  void LetOthersIn() const;
  void Learn();
  FoundHistory JudgeHistory();
  void KeepDisruptionBudget(const SteeringObject& object);
  void KeepResourceQuota(const SteeringObject& object);
  // The time, after the engine was told of steps of the clock. Under the lock.
  Instant Now();

  using Steady = std::chrono::steady_clock;
  static constexpr std::array<std::string_view, 2> kWatched = {"pods", "nodes"};
  static constexpr Steady::rep kNever = -1;

  Clock& clock_;
  const GpuPolicy defaults_;
  const std::chrono::milliseconds cache_limit_;
  const std::function<bool()> may_write_;
  std::mutex mutex_;
  Engine engine_;                 // guarded by mutex_
  std::atomic<int> waiting_ = 0;  // calls that wait for mutex_
  Poker poker_;
  Ungater ungater_;
  AgentObserver agent_observer_;
  ReclaimSink* reclaim_sink_ = nullptr;
  PlanObserver plan_observer_;
  std::atomic<bool> restored_ = false;  // the engine is being told that the first set is in
  std::atomic<bool> synced_ = false;    // it was told
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> preemption_in_tree_ = false;
  std::atomic<MigMode> mig_mode_ = MigMode::kOff;
  std::atomic<int64_t> invalid_objects_ = 0;
  Ledger* ledger_ = nullptr;  // set before events come
  LedgerFile ledger_file_;    // likewise
  mutable std::mutex steering_mutex_;
  PolicyDesk desk_;  // guarded by steering_mutex_, as is what follows
  Steering steering_;
  HistoryDesk history_desk_;  // until the first complete set is in
  FoundHistory found_history_;
  std::map<std::string, Reclaim> found_reclaims_;  // by name, until the first complete set is in
  std::set<std::pair<std::string, std::string>> disruption_budgets_;  // namespace, name; known ones
  // Steady time of the last sign of life, parallel to kWatched.
  std::array<std::atomic<Steady::rep>, kWatched.size()> heard_ = {kNever, kNever};
};

}  // namespace tranche::app
