#include "scheduler/host/engine_host.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

#include "scheduler/wire/records/allocation_json.h"

namespace tranche {

EngineHost::EngineHost(const EngineOptions& options, Clock& clock, Ledger* ledger,
                       std::function<bool()> may_plan)
    : clock_(clock), ledger_(ledger), may_plan_(std::move(may_plan)), engine_(options) {}

void EngineHost::WhenMetered(std::function<void()> done) {
  if (ledger_ == nullptr) return done();
  ledger_->WhenCommitted([done = std::move(done)](bool) { done(); });
}

void EngineHost::Heartbeat() {
  if (ledger_ == nullptr) return;
  With(EngineCaller::kLedger,
       [this](Engine& engine, Instant now) { ledger_->Heartbeat(now, engine.Decay()); });
}

void EngineHost::FinishRestore(std::vector<Reclaim> reclaims, std::vector<RestoredUse> uses) {
  if (sinks_.reclaims != nullptr) sinks_.reclaims->Restored(reclaims);
  With(EngineCaller::kStart, [&reclaims, &uses](Engine& engine, Instant now) {
    if (!uses.empty()) engine.RestoreUse(uses, now);
    engine.RestoreReclaims(std::move(reclaims));
    engine.FinishRestore(now);
  });
  if (ledger_ != nullptr && !uses.empty()) ledger_->Restore(std::move(uses));
  // All there is was seen just now: who ends before the next heartbeat has seen it as well.
  Heartbeat();
}

Instant EngineHost::Now() {
  for (const ClockStep& step : clock_.TakeSteps()) {
    spdlog::warn("the machine's clock was set forward by {} s: metering goes on from there",
                 std::chrono::duration_cast<std::chrono::seconds>(step.to - step.from).count());
    engine_.StepClock(step.from, step.to);
  }
  const Instant now = clock_.Now();
  if (const auto cluster = clock_.Cluster()) {
    engine_.NoteClusterTime(cluster->earliest, cluster->latest, now);
  }
  return now;
}

void EngineHost::Unlock(EngineCaller caller, EngineHolds::Moment since) {
  const EngineHolds::Moment now = std::chrono::steady_clock::now();
  const bool tell = holds_.Note(caller, since, now);
  lock_.Unlock();
  if (!tell) return;
  spdlog::warn("the engine was held for {} ms by {}; everybody else waited",
               std::chrono::duration_cast<std::chrono::milliseconds>(now - since).count(),
               EngineCallerName(caller));
}

std::vector<metrics::HoldRow> EngineHost::Holds() {
  lock_.LockFirst();
  std::vector<metrics::HoldRow> rows = holds_.Rows();
  lock_.Unlock();
  return rows;
}

void EngineHost::EndCall(EngineCaller caller, EngineHolds::Moment since) {
  Effects effects = std::exchange(engine_.effects(), {});
  // Under the lock too: its lines have the engine's order.
  if (!effects.empty()) recent_.Note(effects, clock_.Now());
  if (sinks_.watch && !effects.empty()) sinks_.watch(effects);
  if (ledger_ != nullptr && (!effects.metering.empty() || !effects.closings.empty())) {
    for (MeterEvent& event : effects.metering) {
      if (event.allocation) event.devices = wire::EncodeAllocation(*event.allocation);
    }
    // Under the lock, so that the journal has the engine's order; it only queues.
    ledger_->Append(std::move(effects.metering), std::move(effects.closings));
  }
  const auto tell = [faults = std::move(effects.faults)] {
    for (const BookFault& fault : faults) {
      spdlog::error("books: {}: {}", BookFaultName(fault.kind), fault.detail);
    }
  };
  const bool reclaims = sinks_.reclaims != nullptr && !effects.reclaims.empty();
  if (!reclaims && effects.requeue.empty() && effects.ungate.empty() && effects.agents.empty()) {
    Unlock(caller, since);
    return tell();
  }
  const Instant when = clock_.Now();
  if (reclaims) sinks_.reclaims->Queue(std::move(effects.reclaims), when);
  Unlock(caller, since);
  tell();
  if (sinks_.requeue) {
    for (const auto& [pod, uid] : effects.requeue) sinks_.requeue(pod, uid, when);
  }
  if (sinks_.remove_gate) {
    for (const GateRemoval& gate : effects.ungate) sinks_.remove_gate(gate);
  }
  if (sinks_.agents && !effects.agents.empty()) sinks_.agents(effects.agents);
  if (reclaims) sinks_.reclaims->Carry();
}

std::vector<NodeView> EngineHost::Nodes() {
  std::vector<NodeView> all;
  for (;;) {
    std::vector<NodeView> page = With(EngineCaller::kPages, [&all](Engine& engine, Instant now) {
      return engine.Nodes(all.empty() ? NodeName() : all.back().name, kPage, now);
    });
    const bool last = page.size() < kPage;
    std::move(page.begin(), page.end(), std::back_inserter(all));
    if (last) return all;
  }
}

std::vector<PodView> EngineHost::Pods() {
  std::vector<PodView> all;
  for (;;) {
    std::vector<PodView> page = With(EngineCaller::kPages, [&all](Engine& engine, Instant) {
      return all.empty() ? engine.Pods({}, {}, kPage)
                         : engine.Pods(all.back().name, all.back().uid, kPage);
    });
    const bool last = page.size() < kPage;
    std::move(page.begin(), page.end(), std::back_inserter(all));
    if (last) return all;
  }
}

std::vector<GangView> EngineHost::Gangs() {
  std::vector<GangView> all;
  for (;;) {
    const std::string after = all.empty() ? "" : all.back().name.str();
    std::vector<GangView> page = With(EngineCaller::kPages, [&after](Engine& engine, Instant) {
      return engine.GangsAfter(after, kPage);
    });
    if (page.empty()) return all;
    std::move(page.begin(), page.end(), std::back_inserter(all));
  }
}

EngineTotals EngineHost::Totals(EngineCaller caller) {
  TotalsWalk walk;
  while (!walk.done()) {
    With(caller, [&walk](Engine& engine, Instant) { engine.TotalsSlice(walk); });
  }
  return std::move(walk.totals);
}

FleetWalk EngineHost::Fleet(EngineCaller caller, bool with_stranded) {
  FleetWalk walk;
  walk.with_stranded = with_stranded;
  while (!walk.done()) {
    With(caller, [&walk](Engine& engine, Instant) { engine.FleetSlice(walk); });
  }
  return walk;
}

CostSums EngineHost::Costs(EngineCaller caller) {
  CostWalk walk;
  while (!walk.done()) {
    With(caller, [&walk](Engine& engine, Instant now) { engine.CostSlice(walk, now); });
  }
  return CostsOf(walk);
}

WaitingWalk EngineHost::Waiting(EngineCaller caller) {
  WaitingWalk walk;
  while (!walk.done()) {
    With(caller, [&walk](Engine& engine, Instant) { engine.WaitingSlice(walk); });
  }
  return walk;
}

std::vector<QuotaView> EngineHost::Quotas(EngineCaller caller,
                                          const std::vector<PendingRow>& waiting) {
  QuotaWalk walk;
  while (!walk.done()) {
    With(caller, [&walk](Engine& engine, Instant now) { engine.QuotaSlice(walk, now); });
  }
  return QuotaViewsOf(std::move(walk), waiting);
}

bool EngineHost::AskReach(EngineCaller caller) {
  const auto ask = [](Engine& engine, Instant now) { return engine.ReachSlice(now); };
  bool more = true;
  for (int questions = 0; more && questions < kMostQuestions && lock_.waiting() == 0; ++questions) {
    const Instant began = clock_.Now();
    if (began < reach_after_) return false;
    more = With(caller, ask);
    const Instant ended = clock_.Now();
    // Should the clock be set forward meanwhile, that was no question.
    reach_after_ = ended + kReachPause * std::min(ended - began, kLongestQuestion);
  }
  return more;
}

AdviceCase EngineHost::Case() {
  CaseWalk walk;
  while (!walk.done()) {
    With(EngineCaller::kAdvice,
         [&walk](Engine& engine, Instant now) { engine.CaseSlice(walk, now); });
  }
  return walk.Take();
}

ClusterCopy EngineHost::Copy() {
  ReplicaWalk walk;
  while (!walk.done()) {
    With(EngineCaller::kForesight,
         [&walk](Engine& engine, Instant now) { engine.CopySlice(walk, now); });
  }
  return walk.Take();
}

std::optional<PlanOutcome> EngineHost::Plan() {
  std::chrono::nanoseconds took{0};
  PlanWalk walk;
  // Evictions are planned on fresh knowledge only.
  while (!walk.done() && may_plan_()) {
    With(EngineCaller::kPlan, [&walk, &took](Engine& engine, Instant now) {
      const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
      engine.PlanSlice(walk, now);
      took += std::chrono::steady_clock::now() - started;
    });
    walk.spent.reset();
  }
  if (walk.outcome && sinks_.planned) sinks_.planned(*walk.outcome, took);
  return walk.outcome;
}

void EngineHost::Learn() {
  const auto learn = [](Engine& engine, Instant) { return engine.Learn(); };
  for (int lessons = 0; lessons < kMostLessons && lock_.waiting() == 0; ++lessons) {
    if (!With(EngineCaller::kLearn, learn)) return;
  }
}

std::optional<Instant> EngineHost::Tick() {
  const auto tick = [](Engine& engine, Instant now) { return engine.Tick(now); };
  const std::optional<Instant> next = With(EngineCaller::kTick, tick);
  if (!may_plan_()) return next;
  for (int plans = 0; plans < kMostPlans && Plan();) ++plans;
  Learn();
  // Planning changes what is due.
  return With(EngineCaller::kTick, tick);
}

}  // namespace tranche
