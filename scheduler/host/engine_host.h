// The one place where the engine lives: it puts every call under one lock, gives it the time, and
// hands what the call made due to those who do it.
//
// Thread rule: any thread. The lock is never held across I/O, and for views of many nodes or pods
// only for kPage of them at a time.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "scheduler/engine/engine.h"
#include "scheduler/host/engine_holds.h"
#include "scheduler/host/recent_events.h"
#include "scheduler/host/turn_lock.h"
#include "scheduler/ports/clock.h"
#include "scheduler/ports/ledger.h"

namespace tranche {

// Carries out what reclaims want done.
class ReclaimSink {
 public:
  virtual ~ReclaimSink() = default;
  // What GPUReclaim objects said at start. Once, before everything else.
  virtual void Restored(const std::vector<Reclaim>& reclaims) = 0;
  // Under the engine's lock, so that work comes in the engine's order: only queues.
  virtual void Queue(ReclaimWork work, Instant now) = 0;
  // Outside of it: does what is queued. Ends up here again when doing makes further work.
  virtual void Carry() = 0;
};

// Where the engine's effects go; an empty member drops its kind. All but ReclaimSink::Queue and
// `watch` are called outside the engine's lock, but perhaps under locks of whoever called it.
struct EffectSinks {
  // kube-scheduler should try the pod again.
  std::function<void(const PodName& pod, const PodUid& uid, Instant when)> requeue = nullptr;
  // A scheduling gate of ours is to go.
  std::function<void(const GateRemoval& removal)> remove_gate = nullptr;
  // Turns, orphans and placeholders of node agents.
  std::function<void(const AgentWork& work)> agents = nullptr;
  // Null: reclaims are planned and not carried out.
  ReclaimSink* reclaims = nullptr;
  // What a call made due, before it is carried out; under the engine's lock, so in its order: only
  // takes notes.
  std::function<void(const Effects& effects)> watch = nullptr;
  // One round of planning, and how long it held the engine.
  std::function<void(const PlanOutcome& outcome, std::chrono::nanoseconds took)> planned = nullptr;
};

class EngineHost {
 public:
  static constexpr std::size_t kPage = 16;
  // Rounds of planning in one Tick, and of learning.
  static constexpr int kMostPlans = 64;
  static constexpr int kMostLessons = 8;
  static constexpr int kReachPause = 100;  // times as long as the question took
  static constexpr Millis kLongestQuestion{1'000};
  // In one AskReach.
  static constexpr int kMostQuestions = 4;

  // `ledger`: where metering goes; null: nowhere. `may_plan`: asked before whom to evict is
  // decided. Both outlive this.
  EngineHost(const EngineOptions& options, Clock& clock, Ledger* ledger,
             std::function<bool()> may_plan);
  // Once, before events come from more than one thread: the sinks are made of parts that need the
  // host themselves. What the sinks refer to outlives the last call.
  void Connect(EffectSinks sinks) { sinks_ = std::move(sinks); }

  // work(Engine&, Instant now) under the lock. Nothing the engine hands out by pointer may leave.
  // What the work makes due is done before the call returns: the ledger has its journal queued in
  // the engine's order, and the sinks are called outside the lock. `caller`: for whom, as the
  // holds are counted by.
  template <typename Work>
  auto With(EngineCaller caller, Work&& work) ABSL_LOCKS_EXCLUDED(lock_) {
    const EngineLock lock(*this, caller);
    return std::forward<Work>(work)(engine_, Now());
  }
  template <typename Work>
  auto With(Work&& work) ABSL_LOCKS_EXCLUDED(lock_) {
    return With(EngineCaller::kOther, std::forward<Work>(work));
  }
  // What happened lately, in the engine's order. Needs no lock of the engine's.
  RecentEvents& recent() { return recent_; }
  // How long the engine was held since the start, by caller.
  std::vector<metrics::HoldRow> Holds() ABSL_LOCKS_EXCLUDED(lock_);

  // Calls `done` once what the ledger was given before is on disk, or at once when it cannot be
  // written (placement goes on) or there is none.
  void WhenMetered(std::function<void()> done);
  // Lets the ledger know that we live, and how usage has faded.
  void Heartbeat();
  // The reclaims that were found at start, and usage taken over from checkpoints; then the engine
  // ends its restart, and the ledger knows until when what it holds was there.
  void FinishRestore(std::vector<Reclaim> reclaims, std::vector<RestoredUse> uses);

  // All nodes by name, all pods by namespace/name; pages are copied one after another, so that the
  // whole is no snapshot of one moment.
  std::vector<NodeView> Nodes();
  std::vector<PodView> Pods();
  // By namespace/gang.
  std::vector<GangView> Gangs();
  // Reports about the whole cluster, likewise slice by slice.
  EngineTotals Totals(EngineCaller caller);
  WaitingWalk Waiting(EngineCaller caller);
  FleetWalk Fleet(EngineCaller caller, bool with_stranded = false);
  CostSums Costs(EngineCaller caller);
  // `waiting`: of a walk that has just been made.
  std::vector<QuotaView> Quotas(EngineCaller caller, const std::vector<PendingRow>& waiting);
  std::vector<QuotaView> Quotas(EngineCaller caller) {
    return Quotas(caller, Waiting(caller).Rows());
  }
  // Asks what teams can count on, some questions while nobody waits for the engine, and no more
  // than take a hundredth of the time: one of a large, full fleet takes tens of milliseconds.
  // False: nothing is to be asked now. By one thread.
  bool AskReach(EngineCaller caller);
  AdviceCase Case();
  // For an engine of its own, likewise.
  ClusterCopy Copy();
  // Ends what is due by the clock, plans what waits to be planned and, where nobody waits, learns
  // what decisions will ask for, one round at a time: calls of others come between. Returns when to
  // call again (the present where planning goes on); nullopt: nothing waits.
  std::optional<Instant> Tick();

 private:
  // One use of the engine. When it ends the effects of the call go out.
  class ABSL_SCOPED_LOCKABLE EngineLock {
   public:
    EngineLock(EngineHost& host, EngineCaller caller) ABSL_EXCLUSIVE_LOCK_FUNCTION(host.lock_)
        : host_(host), caller_(caller) {
      IsVerb(caller) ? host_.lock_.LockFirst() : host_.lock_.LockInTurn();
      since_ = std::chrono::steady_clock::now();
    }
    ~EngineLock() ABSL_UNLOCK_FUNCTION() { host_.EndCall(caller_, since_); }
    EngineLock(const EngineLock&) = delete;
    EngineLock& operator=(const EngineLock&) = delete;

   private:
    EngineHost& host_;
    const EngineCaller caller_;
    EngineHolds::Moment since_;
  };
  // Gives the lock back and lets the effects out.
  void EndCall(EngineCaller caller, EngineHolds::Moment since) ABSL_UNLOCK_FUNCTION(lock_);
  void Unlock(EngineCaller caller, EngineHolds::Moment since) ABSL_UNLOCK_FUNCTION(lock_);
  std::optional<PlanOutcome> Plan();
  void Learn();
  // The time, after the engine has heard of steps of the clock.
  Instant Now() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  Clock& clock_;
  Ledger* const ledger_;
  const std::function<bool()> may_plan_;
  EffectSinks sinks_;
  RecentEvents recent_;
  Instant reach_after_;  // of AskReach's thread
  TurnLock lock_;
  Engine engine_ ABSL_GUARDED_BY(lock_);
  EngineHolds holds_ ABSL_GUARDED_BY(lock_);
};

}  // namespace tranche
