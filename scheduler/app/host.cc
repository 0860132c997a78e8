#include "scheduler/app/host.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

#include "scheduler/wire/allocation_json.h"
#include "scheduler/wire/json.h"
#include "scheduler/wire/reclaim_json.h"
#include "scheduler/wire/resource_quota.h"
#include "topology/base/check.h"

namespace tranche::app {

std::string_view Describe(Readiness readiness) {
  switch (readiness) {
    case Readiness::kReady:
      return "ready";
    case Readiness::kLoading:
      return "tranche has not read the whole cluster yet";
    case Readiness::kStale:
      return "tranche has not heard from the API server for too long";
    case Readiness::kStandby:
      return "tranche is a standby: another process leads";
    case Readiness::kStopping:
      return "tranche is stopping";
  }
  TRANCHE_CHECK(false);
}

Host::Host(HostOptions options, Clock& clock)
    : clock_(clock),
      defaults_(std::move(options.defaults)),
      cache_limit_(options.cache_limit),
      may_write_(std::move(options.may_write)),
      engine_(options.engine),
      desk_(defaults_) {
  SteeringSettled();
}

void Host::SetLedger(Ledger* ledger, MeterHistory history) {
  ledger_ = ledger;
  ledger_file_ = {history.ledger, history.last_entry, history.restored};
  engine_.Restore(std::move(history));
}

void Host::WhenMetered(std::function<void()> done) {
  if (ledger_ == nullptr) return done();
  ledger_->WhenCommitted([done = std::move(done)](bool) { done(); });
}

void Host::Heartbeat() {
  if (ledger_ == nullptr) return;
  With([this](Engine& engine, Instant now) { ledger_->Heartbeat(now, engine.Decay()); });
}

Instant Host::Now() {
  for (const ClockStep& step : clock_.TakeSteps()) {
    spdlog::warn("the machine's clock was set forward by {} s: metering goes on from there",
                 std::chrono::duration_cast<std::chrono::seconds>(step.to - step.from).count());
    engine_.StepClock(step.from, step.to);
  }
  return clock_.Now();
}

void Host::EndTurn(std::unique_lock<std::mutex>& lock) {
  if (engine_.HasMetering()) {
    std::vector<WindowClosing> closings;
    std::vector<MeterEvent> events = engine_.TakeMetering(closings);
    if (ledger_ != nullptr) {
      for (MeterEvent& event : events) {
        if (event.allocation) event.devices = wire::EncodeAllocation(*event.allocation);
      }
      // Under the lock, so that the journal has the engine's order; it only queues.
      ledger_->Append(std::move(events), std::move(closings));
    }
  }
  const std::vector<std::pair<PodName, PodUid>> pokes = engine_.TakePokes();
  const AgentWork agents = engine_.TakeAgentWork();
  const std::vector<GateRemoval> gates = engine_.TakeGateRemovals();
  const bool reclaims = reclaim_sink_ != nullptr && engine_.HasReclaimWork();
  if (!reclaims && (pokes.empty() || !poker_) && (gates.empty() || !ungater_) &&
      (agents.empty() || !agent_observer_)) {
    return;
  }
  const Instant when = clock_.Now();
  if (reclaims) reclaim_sink_->Queue(engine_.TakeReclaimWork(), when);
  lock.unlock();
  if (poker_) {
    for (const auto& [pod, uid] : pokes) poker_(pod, uid, when);
  }
  if (ungater_) {
    for (const GateRemoval& gate : gates) ungater_(gate);
  }
  if (agent_observer_ && !agents.empty()) agent_observer_(agents);
  if (reclaims) reclaim_sink_->Carry();
}

Readiness Host::readiness() const {
  if (stopping_) return Readiness::kStopping;
  if (!synced_) return Readiness::kLoading;
  if (may_write_ && !may_write_()) return Readiness::kStandby;
  if (cache_limit_.count() > 0) {
    for (const std::string_view resource : kWatched) {
      const auto age = HeardAge(resource);
      if (!age || *age > cache_limit_) return Readiness::kStale;
    }
  }
  return Readiness::kReady;
}

std::optional<std::chrono::milliseconds> Host::HeardAge(std::string_view resource) const {
  const auto* const found = std::find(kWatched.begin(), kWatched.end(), resource);
  if (found == kWatched.end()) return std::nullopt;
  const Steady::rep heard = heard_[static_cast<std::size_t>(found - kWatched.begin())];
  if (heard == kNever) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now().time_since_epoch() -
                                                               Steady::duration(heard));
}

std::vector<NodeView> Host::Nodes() {
  std::vector<NodeView> all;
  for (;;) {
    std::vector<NodeView> page = With([&all](Engine& engine, Instant now) {
      return engine.Nodes(all.empty() ? NodeName() : all.back().name, kPage, now);
    });
    const bool last = page.size() < kPage;
    std::move(page.begin(), page.end(), std::back_inserter(all));
    if (last) return all;
  }
}

std::vector<PodView> Host::Pods() {
  std::vector<PodView> all;
  for (;;) {
    std::vector<PodView> page = With([&all](Engine& engine, Instant) {
      return all.empty() ? engine.Pods({}, {}, kPage)
                         : engine.Pods(all.back().name, all.back().uid, kPage);
    });
    const bool last = page.size() < kPage;
    std::move(page.begin(), page.end(), std::back_inserter(all));
    if (last) return all;
  }
}

std::optional<PlanOutcome> Host::Plan() {
  std::chrono::nanoseconds took{0};
  const std::optional<PlanOutcome> outcome = With([&took](Engine& engine, Instant now) {
    const Steady::time_point started = Steady::now();
    std::optional<PlanOutcome> planned = engine.PlanNext(now);
    took = Steady::now() - started;
    return planned;
  });
  if (outcome && plan_observer_) plan_observer_(*outcome, took);
  return outcome;
}

// A mutex goes to whoever comes first, and who has just given it back is first.
void Host::LetOthersIn() const {
  constexpr int kPatience = 1'000;
  for (int i = 0; i < kPatience && waiting_ > 0; ++i) std::this_thread::yield();
}

void Host::Learn() {
  const auto learn = [](Engine& engine, Instant) { return engine.Learn(); };
  for (int lessons = 0; lessons < kMostLessons && waiting_ == 0 && With(learn); ++lessons) {
    LetOthersIn();
  }
}

std::optional<Instant> Host::Tick() {
  const auto tick = [](Engine& engine, Instant now) { return engine.Tick(now); };
  const std::optional<Instant> next = With(tick);
  // Whom to evict is decided on fresh knowledge only.
  if (readiness() != Readiness::kReady) return next;
  for (int plans = 0; plans < kMostPlans && Plan(); ++plans) LetOthersIn();
  Learn();
  // Planning changes what is due.
  return With(tick);
}

void Host::NodeChanged(NodeFacts node) {
  With([&node](Engine& engine, Instant now) { engine.UpsertNode(std::move(node), now); });
}

void Host::NodeGone(const NodeName& name) {
  With([&name](Engine& engine, Instant now) { engine.DeleteNode(name, now); });
}

void Host::PodChanged(PodFacts pod) {
  With([&pod](Engine& engine, Instant now) { engine.UpsertPod(std::move(pod), now); });
}

void Host::PodGone(const PodUid& uid) {
  With([&uid](Engine& engine, Instant now) { engine.DeletePod(uid, now); });
}

void Host::NodeZonesChanged(const NodeName& name, std::optional<NodeZones> zones) {
  With([&](Engine& engine, Instant now) { engine.SetNodeZones(name, std::move(zones), now); });
}

void Host::NodeSlicesChanged(const NodeName& name, std::vector<SliceDevice> devices) {
  With([&](Engine& engine, Instant now) { engine.SetNodeSlices(name, std::move(devices), now); });
}

void Host::DraChanged(dra::Object object) {
  With([&](Engine& engine, Instant now) { engine.SetDraObject(std::move(object), now); });
}

void Host::DraGone(const dra::ObjectRef& object) {
  With([&](Engine& engine, Instant now) { engine.RemoveDraObject(object, now); });
}

void Host::NodeAgentChanged(const NodeName& name, std::optional<AgentRegister> agent) {
  With([&](Engine& engine, Instant now) { engine.SetNodeAgent(name, std::move(agent), now); });
}

void Host::GangSizeChanged(const std::string& ns, const std::string& gang, int size) {
  With([&](Engine& engine, Instant now) { engine.SetGangSize(ns, gang, size, now); });
}

void Host::KeepDisruptionBudget(const SteeringObject& object) {
  absl::StatusOr<DisruptionBudget> budget = DecodeDisruptionBudget(object.json);
  {
    const std::lock_guard lock(steering_mutex_);
    const bool known = !disruption_budgets_.emplace(object.ns, object.name).second;
    if (!budget.ok()) {
      spdlog::warn("PodDisruptionBudget {}/{} cannot be read, {}: {}", object.ns, object.name,
                   known ? "its last version stays" : "it is not known whom it protects",
                   std::string(budget.status().message()));
      if (known) return;
      budget = DisruptionBudget{object.ns, object.name, std::nullopt, 0, {}};
    }
  }
  With([&budget](Engine& engine, Instant now) {
    engine.SetDisruptionBudget(*std::move(budget), now);
  });
}

void Host::KeepResourceQuota(const SteeringObject& object) {
  absl::StatusOr<wire::QuotaReading> reading = wire::DecodeResourceQuota(object.json);
  const std::string problem = reading.ok() ? reading->problem : reading.status().ToString();
  if (!problem.empty()) spdlog::warn("ResourceQuota {}/{}: {}", object.ns, object.name, problem);
  if (!reading.ok()) return;
  With([&reading](Engine& engine, Instant now) {
    engine.SetNamespaceCap(std::move(reading->cap), now);
  });
}

void Host::SteeringChanged(SteeringObject object) {
  if (object.kind == "PodDisruptionBudget") return KeepDisruptionBudget(object);
  if (object.kind == "ResourceQuota") return KeepResourceQuota(object);
  const std::lock_guard lock(steering_mutex_);
  if (object.kind == "GPUReclaim") {
    // Ours: read once, at start.
    if (restored_) return;
    absl::StatusOr<Reclaim> reclaim = wire::DecodeReclaim(object.json);
    if (reclaim.ok()) {
      // Somebody may have edited it.
      if (reclaim->finished() && !reclaim->finished_at) reclaim->finished_at = reclaim->planned_at;
      found_reclaims_[object.name] = *std::move(reclaim);
    } else {
      spdlog::warn("GPUReclaim {} cannot be read and is left alone: {}", object.name,
                   std::string(reclaim.status().message()));
    }
    return;
  }
  if (object.kind == "GPUQuotaView") {
    steering_.views.emplace(object.ns, object.name);
    return;
  }
  if (object.kind == "Namespace") steering_.namespaces.insert(object.name);
  // Ours as well: how its status stood before this process wrote it.
  if (!restored_) history_desk_.Upsert(object);
  steering_.objects[{object.kind, object.name}] = {object.uid, object.generation};
  desk_.Upsert(object.kind, object.name, object.json);
}

void Host::SteeringGone(const std::string& kind, const std::string& ns, const std::string& name) {
  if (kind == "PodDisruptionBudget") {
    {
      const std::lock_guard lock(steering_mutex_);
      disruption_budgets_.erase({ns, name});
    }
    With([&](Engine& engine, Instant) { engine.RemoveDisruptionBudget(ns, name); });
    return;
  }
  if (kind == "ResourceQuota") {
    With([&](Engine& engine, Instant now) { engine.RemoveNamespaceCap(ns, name, now); });
    return;
  }
  const std::lock_guard lock(steering_mutex_);
  if (kind == "GPUReclaim") {
    found_reclaims_.erase(name);
    return;
  }
  if (kind == "GPUQuotaView") {
    steering_.views.erase({ns, name});
    return;
  }
  if (kind == "Namespace") steering_.namespaces.erase(name);
  steering_.objects.erase({kind, name});
  history_desk_.Remove(kind, name);
  desk_.Remove(kind, name);
}

void Host::SteeringSettled() {
  std::unique_lock lock(steering_mutex_);
  const bool first = steering_.version == 0;
  if (!desk_.Commit() && !first) return;
  ++steering_.version;
  steering_.findings = desk_.findings();
  for (const Finding& finding : steering_.findings) {
    if (finding.type == "Ready" && !finding.status) {
      spdlog::warn("{} {} is not in force as written: {}: {}", finding.kind, finding.name,
                   finding.reason, finding.message);
    }
  }
  invalid_objects_ = desk_.invalid();
  auto set = std::make_shared<const PolicySet>(desk_.set());
  const bool has_default = !set->policies.empty() && !set->policies.back().namespaces;
  const GpuPolicy& governing = has_default ? set->policies.back() : defaults_;
  preemption_in_tree_ = governing.actor == PreemptionActor::kScheduler;
  mig_mode_ = governing.mig;
  // What the engine makes of it is carried out without the lock: carrying may ask for objects.
  lock.unlock();
  With([&](Engine& engine, Instant now) { engine.SetPolicies(std::move(set), defaults_, now); });
}

Host::Steering Host::steering() const {
  const std::lock_guard lock(steering_mutex_);
  return steering_;
}

std::string Host::UidOf(const std::string& kind, const std::string& name) const {
  const std::lock_guard lock(steering_mutex_);
  const auto found = steering_.objects.find({kind, name});
  return found == steering_.objects.end() ? std::string() : found->second.first;
}

FoundHistory Host::found_history() const {
  const std::lock_guard lock(steering_mutex_);
  return found_history_;
}

// Which checkpoints there are is known now, which of them count as well. Restored are those of
// budgets at once; the ledger follows, after what the end of the restart has it write.
FoundHistory Host::JudgeHistory() {
  const auto [budgets, now] = With([](Engine& engine, Instant when) {
    std::vector<GpuBudget> specs;
    for (BudgetReport& report : engine.Budgets(when)) specs.push_back(std::move(report.spec));
    return std::pair(std::move(specs), when);
  });
  const std::lock_guard lock(steering_mutex_);
  found_history_ = history_desk_.Judge(budgets, ledger_file_, now);
  for (const Finding& finding : found_history_.findings) {
    if (finding.status) continue;
    spdlog::warn("{} {}: its checkpoint of the ledger is not believed: {}", finding.kind,
                 finding.name, finding.message);
  }
  for (const RestoredUse& use : found_history_.uses) {
    const bool of_budget = use.of == RestoredUse::Of::kBudget;
    spdlog::warn(
        "the ledger {} lacks what ledger {} had at entry {}: {} {}{} stood at {} GPU-hours at {} "
        "by its checkpoint, which is taken over; what ran between then and the loss is not known",
        ledger_file_.id.empty() ? "(none)" : ledger_file_.id, use.mark.ledger, use.mark.entry,
        of_budget ? "budget" : "leaf", use.name, of_budget ? "" : " on " + use.use.model,
        FormatGpuHours(Larger(of_budget ? UsedOf(use.stand) : use.use.time)),
        wire::FormatTime(use.mark.at));
  }
  return found_history_;
}

void Host::Synced() {
  if (restored_.exchange(true)) return;
  std::vector<Reclaim> reclaims;
  {
    const std::lock_guard lock(steering_mutex_);
    for (auto& [name, reclaim] : found_reclaims_) reclaims.push_back(std::move(reclaim));
    found_reclaims_.clear();
  }
  if (reclaim_sink_ != nullptr) reclaim_sink_->Restored(reclaims);
  FoundHistory history = JudgeHistory();
  With([&reclaims, &history](Engine& engine, Instant now) {
    if (!history.uses.empty()) engine.RestoreUse(history.uses, now);
    engine.RestoreReclaims(std::move(reclaims));
    engine.FinishRestore(now);
  });
  if (ledger_ != nullptr && !history.uses.empty()) ledger_->Restore(std::move(history.uses));
  synced_ = true;
}

void Host::Heard(const char* resource) {
  const auto* const found = std::find(kWatched.begin(), kWatched.end(), std::string_view(resource));
  if (found == kWatched.end()) return;
  heard_[static_cast<std::size_t>(found - kWatched.begin())] =
      Steady::now().time_since_epoch().count();
}

}  // namespace tranche::app
