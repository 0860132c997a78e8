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
    host.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      intake.NoteShown(told.node);
      engine.UpsertNode(std::move(told.node), now);
    });
  }
  void operator()(const NodeGone& told) const {
    host.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      intake.NoteGone(told.name);
      engine.DeleteNode(told.name, now);
    });
  }
  void operator()(const NodeUnreadable& told) const {
    host.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      engine.SetUnreadable(told.name, told.problem, now);
    });
  }
  void operator()(PodChanged& told) const {
    host.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      intake.NoteShown(told.pod);
      engine.UpsertPod(std::move(told.pod), now);
    });
  }
  void operator()(const PodGone& told) const {
    host.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      intake.NoteGone(told.uid);
      engine.DeletePod(told.uid, now);
    });
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
  void operator()(const ScaleUpTold& told) const {
    host.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
      engine.NoteScaleUp(told.pod, told.told.value_or(now), now);
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
    if (told.whole && *found == "pods") ++intake.pod_lists_;
    intake.heard_[static_cast<std::size_t>(found - kWatched.begin())] =
        Steady::now().time_since_epoch().count();
  }

  ClusterIntake& intake;
  EngineHost& host = intake.engine_;
};

ShownNode ShownOf(const NodeFacts& node) {
  return {.uid = node.uid, .ready = node.ready, .cordoned = node.cordoned, .gpu = node.gpu};
}

ClusterIntake::Place ClusterIntake::PlaceOf(const NodeName& node) {
  return node.empty() ? 0 : std::hash<NodeName>()(node) | 1U;
}

void ClusterIntake::NoteShown(const PodFacts& pod) {
  const bool ended = pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
  const bool says = !ended && !pod.unreadable && !pod.placeholder && !pod.request.uid.empty();
  const absl::MutexLock lock(&mutex_);
  shown_[pod.request.uid] = says ? PlaceOf(pod.node) : 0;
}

void ClusterIntake::NoteShown(const NodeFacts& node) {
  const absl::MutexLock lock(&mutex_);
  shown_nodes_.insert_or_assign(node.name, ShownOf(node));
}

void ClusterIntake::NoteGone(const NodeName& node) {
  const absl::MutexLock lock(&mutex_);
  shown_nodes_.erase(node);
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

bool ClusterIntake::Shows(const NodeName& node) const {
  const absl::MutexLock lock(&mutex_);
  return shown_nodes_.contains(node);
}

void ClusterIntake::VisitShown(
    ShownWalk& walk, std::size_t most, const std::function<void(const PodUid&, Place)>& pod,
    const std::function<void(const NodeName&, const ShownNode&)>& node) const {
  const absl::MutexLock lock(&mutex_);
  std::size_t visited = 0;
  if (!walk.pods_done) {
    // A table that has grown is walked anew.
    if (walk.buckets != shown_.bucket_count()) walk.bucket = 0;
    walk.buckets = shown_.bucket_count();
    for (; walk.bucket < walk.buckets && visited < most; ++walk.bucket) {
      for (auto at = shown_.begin(walk.bucket); at != shown_.end(walk.bucket); ++at, ++visited) {
        pod(at->first, at->second);
      }
    }
    walk.pods_done = walk.bucket == walk.buckets;
    return;
  }
  auto at = shown_nodes_.upper_bound(walk.node);
  for (; at != shown_nodes_.end() && visited < most; ++at, ++visited) {
    walk.node = at->first;
    node(at->first, at->second);
  }
  walk.done = at == shown_nodes_.end();
}

void ClusterIntake::ReceiveRead(PodFacts pod) {
  engine_.With(EngineCaller::kEvents, [&](Engine& engine, Instant now) {
    if (!IsGone(pod.request.uid) || TRANCHE_PLANTED(read_pod_may_be_gone))
      engine.UpsertPod(std::move(pod), now);
  });
}

void ClusterIntake::Receive(ClusterEvent event) { std::visit(Receiver{*this}, event); }

}  // namespace tranche
