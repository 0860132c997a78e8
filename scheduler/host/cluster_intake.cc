#include "scheduler/host/cluster_intake.h"

#include <algorithm>
#include <utility>

#include "topology/base/check.h"

namespace tranche {

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

ClusterIntake::ClusterIntake(EngineHost& engine, PolicyIntake& policies,
                             std::chrono::milliseconds cache_limit, std::function<bool()> may_write)
    : engine_(engine),
      policies_(policies),
      cache_limit_(cache_limit),
      may_write_(std::move(may_write)) {}

Readiness ClusterIntake::readiness() const {
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

std::optional<std::chrono::milliseconds> ClusterIntake::HeardAge(std::string_view resource) const {
  const auto* const found = std::find(kWatched.begin(), kWatched.end(), resource);
  if (found == kWatched.end()) return std::nullopt;
  const Steady::rep heard = heard_[static_cast<std::size_t>(found - kWatched.begin())];
  if (heard == kNever) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now().time_since_epoch() -
                                                               Steady::duration(heard));
}

void ClusterIntake::NodeChanged(NodeFacts node) {
  engine_.With([&node](Engine& engine, Instant now) { engine.UpsertNode(std::move(node), now); });
}

void ClusterIntake::NodeGone(const NodeName& name) {
  engine_.With([&name](Engine& engine, Instant now) { engine.DeleteNode(name, now); });
}

void ClusterIntake::PodChanged(PodFacts pod) {
  engine_.With([&pod](Engine& engine, Instant now) { engine.UpsertPod(std::move(pod), now); });
}

void ClusterIntake::PodGone(const PodUid& uid) {
  engine_.With([&uid](Engine& engine, Instant now) { engine.DeletePod(uid, now); });
}

void ClusterIntake::NodeZonesChanged(const NodeName& name, std::optional<NodeZones> zones) {
  engine_.With(
      [&](Engine& engine, Instant now) { engine.SetNodeZones(name, std::move(zones), now); });
}

void ClusterIntake::NodeSlicesChanged(const NodeName& name, std::vector<SliceDevice> devices) {
  engine_.With(
      [&](Engine& engine, Instant now) { engine.SetNodeSlices(name, std::move(devices), now); });
}

void ClusterIntake::DraChanged(dra::Object object) {
  engine_.With([&](Engine& engine, Instant now) { engine.SetDraObject(std::move(object), now); });
}

void ClusterIntake::DraGone(const dra::ObjectRef& object) {
  engine_.With([&](Engine& engine, Instant now) { engine.RemoveDraObject(object, now); });
}

void ClusterIntake::NodeAgentChanged(const NodeName& name, std::optional<AgentRegister> agent) {
  engine_.With(
      [&](Engine& engine, Instant now) { engine.SetNodeAgent(name, std::move(agent), now); });
}

void ClusterIntake::GangSizeChanged(const std::string& ns, const std::string& gang, int size) {
  engine_.With([&](Engine& engine, Instant now) { engine.SetGangSize(ns, gang, size, now); });
}

void ClusterIntake::PolicyObjectChanged(PolicyObject object) {
  policies_.Changed(std::move(object));
}

void ClusterIntake::PolicyObjectGone(const std::string& kind, const NamespacedName& object) {
  policies_.Gone(kind, object);
}

void ClusterIntake::PolicyObjectsSettled() { policies_.Settled(); }

void ClusterIntake::Synced() {
  if (policies_.FinishRestore()) synced_ = true;
}

void ClusterIntake::Heard(const char* resource) {
  const auto* const found = std::find(kWatched.begin(), kWatched.end(), std::string_view(resource));
  if (found == kWatched.end()) return;
  heard_[static_cast<std::size_t>(found - kWatched.begin())] =
      Steady::now().time_since_epoch().count();
}

}  // namespace tranche
