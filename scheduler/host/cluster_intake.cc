#include "scheduler/host/cluster_intake.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "topology/base/check.h"
#include "topology/base/plant.h"

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

struct ClusterIntake::Receiver {
  void operator()(NodeChanged& told) const {
    host.With(EngineCaller::kEvents,
              [&](Engine& engine, Instant now) { engine.UpsertNode(std::move(told.node), now); });
  }
  void operator()(const NodeGone& told) const {
    host.With(EngineCaller::kEvents,
              [&](Engine& engine, Instant now) { engine.DeleteNode(told.name, now); });
  }
  void operator()(const NodeUnreadable& told) const {
    host.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      engine.SetUnreadable(told.name, told.problem, now);
    });
  }
  void operator()(PodChanged& told) const {
    // Before the engine hears of it: it never holds a pod of the watch that is not shown.
    intake.NoteShown(told.pod.request.uid);
    host.With(EngineCaller::kEvents,
              [&](Engine& engine, Instant now) { engine.UpsertPod(std::move(told.pod), now); });
  }
  void operator()(const PodGone& told) const {
    // Before the engine hears of it: whoever reads the pod asks under the engine's lock.
    intake.NoteGone(told.uid);
    host.With(EngineCaller::kEvents,
              [&](Engine& engine, Instant now) { engine.DeletePod(told.uid, now); });
  }
  void operator()(NodeZonesChanged& told) const {
    host.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      engine.SetNodeZones(told.node, std::move(told.zones), now);
    });
  }
  void operator()(NodeSlicesChanged& told) const {
    host.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      engine.SetNodeSlices(told.node, std::move(told.devices), now);
    });
  }
  void operator()(NodeAgentChanged& told) const {
    host.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      engine.SetNodeAgent(told.node, std::move(told.agent), now);
    });
  }
  void operator()(DraChanged& told) const {
    host.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      engine.SetDraObject(std::move(told.object), now);
    });
  }
  void operator()(const DraGone& told) const {
    host.With(EngineCaller::kEvents,
              [&](Engine& engine, Instant now) { engine.RemoveDraObject(told.object, now); });
  }
  void operator()(const GangSizeChanged& told) const {
    host.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      engine.SetGangSize(told.ns, told.gang, told.size, now);
    });
  }
  void operator()(PolicyObject& told) const { intake.policies_.Changed(std::move(told)); }
  void operator()(const PolicyObjectGone& told) const {
    intake.policies_.Gone(told.kind, told.name);
  }
  void operator()(PolicyObjectsSettled) const { intake.policies_.Settled(); }
  void operator()(Synced) const {
    if (intake.policies_.FinishRestore()) intake.synced_ = true;
  }
  void operator()(const Heard& told) const {
    const auto* const found =
        std::find(kWatched.begin(), kWatched.end(), std::string_view(told.resource));
    if (found == kWatched.end()) return;
    intake.heard_[static_cast<std::size_t>(found - kWatched.begin())] =
        Steady::now().time_since_epoch().count();
  }

  ClusterIntake& intake;
  EngineHost& host = intake.engine_;
};

void ClusterIntake::NoteShown(const PodUid& uid) {
  const absl::MutexLock lock(&mutex_);
  shown_.insert(uid);
}

void ClusterIntake::NoteGone(const PodUid& uid) {
  const Steady::time_point now = Steady::now();
  const absl::MutexLock lock(&mutex_);
  shown_.erase(uid);
  if (gone_.insert(uid).second) ends_.emplace_back(now, uid);
  while (!ends_.empty() &&
         (now - ends_.front().first > kRemembered || ends_.size() > kMostRemembered)) {
    gone_.erase(ends_.front().second);
    ends_.pop_front();
  }
}

bool ClusterIntake::IsGone(const PodUid& uid) const {
  const absl::MutexLock lock(&mutex_);
  return gone_.contains(uid);
}

bool ClusterIntake::Shows(const PodUid& uid) const {
  const absl::MutexLock lock(&mutex_);
  return shown_.contains(uid);
}

void ClusterIntake::ReceiveRead(PodFacts pod) {
  engine_.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
    if (!IsGone(pod.request.uid) || TRANCHE_PLANTED(read_pod_may_be_gone))
      engine.UpsertPod(std::move(pod), now);
  });
}

void ClusterIntake::Receive(ClusterEvent event) { std::visit(Receiver{*this}, event); }

}  // namespace tranche
