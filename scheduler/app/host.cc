#include "scheduler/app/host.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "scheduler/wire/allocation_json.h"
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
    case Readiness::kStopping:
      return "tranche is stopping";
  }
  TRANCHE_CHECK(false);
}

Host::Host(HostOptions options, Clock& clock)
    : clock_(clock),
      defaults_(std::move(options.defaults)),
      cache_limit_(options.cache_limit),
      engine_(options.engine),
      desk_(defaults_) {
  SteeringSettled();
}

void Host::SetLedger(Ledger* ledger, MeterHistory history) {
  ledger_ = ledger;
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
  if (pokes.empty() || !poker_) return;
  const Instant when = clock_.Now();
  lock.unlock();
  for (const auto& [pod, uid] : pokes) poker_(pod, uid, when);
}

Readiness Host::readiness() const {
  if (stopping_) return Readiness::kStopping;
  if (!synced_) return Readiness::kLoading;
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

std::optional<Instant> Host::Tick() {
  std::optional<Instant> next;
  With([&next](Engine& engine, Instant now) { next = engine.Tick(now); });
  return next;
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

void Host::SteeringChanged(SteeringObject object) {
  const std::lock_guard lock(steering_mutex_);
  if (object.kind == "GPUQuotaView") {
    steering_.views.emplace(object.ns, object.name);
    return;
  }
  if (object.kind == "Namespace") steering_.namespaces.insert(object.name);
  steering_.objects[{object.kind, object.name}] = {object.uid, object.generation};
  desk_.Upsert(object.kind, object.name, object.json);
}

void Host::SteeringGone(const std::string& kind, const std::string& ns, const std::string& name) {
  const std::lock_guard lock(steering_mutex_);
  if (kind == "GPUQuotaView") {
    steering_.views.erase({ns, name});
    return;
  }
  if (kind == "Namespace") steering_.namespaces.erase(name);
  steering_.objects.erase({kind, name});
  desk_.Remove(kind, name);
}

void Host::SteeringSettled() {
  const std::lock_guard lock(steering_mutex_);
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
  preemption_in_tree_ =
      (has_default ? set->policies.back().actor : defaults_.actor) == PreemptionActor::kScheduler;
  With([&](Engine& engine, Instant now) { engine.SetPolicies(std::move(set), defaults_, now); });
}

Host::Steering Host::steering() const {
  const std::lock_guard lock(steering_mutex_);
  return steering_;
}

void Host::Synced() {
  if (synced_.exchange(true)) return;
  With([](Engine& engine, Instant now) { engine.FinishRestore(now); });
}

void Host::Heard(const char* resource) {
  const auto* const found = std::find(kWatched.begin(), kWatched.end(), std::string_view(resource));
  if (found == kWatched.end()) return;
  heard_[static_cast<std::size_t>(found - kWatched.begin())] =
      Steady::now().time_since_epoch().count();
}

}  // namespace tranche::app
