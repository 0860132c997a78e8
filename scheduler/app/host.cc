#include "scheduler/app/host.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

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

Host::Host(HostOptions options, const Clock& clock)
    : clock_(clock),
      defaults_(std::move(options.defaults)),
      cache_limit_(options.cache_limit),
      engine_(options.engine) {
  PoliciesChanged({});
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
  Tell([&next](Engine& engine, Instant now) { next = engine.Tick(now); });
  return next;
}

void Host::NodeChanged(NodeFacts node) {
  Tell([&node](Engine& engine, Instant now) { engine.UpsertNode(std::move(node), now); });
}

void Host::NodeGone(const NodeName& name) {
  With([&name](Engine& engine, Instant now) { engine.DeleteNode(name, now); });
}

void Host::PodChanged(PodFacts pod) {
  Tell([&pod](Engine& engine, Instant now) { engine.UpsertPod(std::move(pod), now); });
}

void Host::PodGone(const PodUid& uid) {
  Tell([&uid](Engine& engine, Instant now) { engine.DeletePod(uid, now); });
}

void Host::PoliciesChanged(std::vector<GpuPolicy> policies) {
  std::sort(policies.begin(), policies.end(),
            [](const GpuPolicy& a, const GpuPolicy& b) { return a.name < b.name; });
  if (policies.size() > 1) {
    spdlog::warn(
        "expected at most one GPUPolicy, found {}: {} is in force, the first by name, the others "
        "are not",
        policies.size(), policies.front().name);
  }
  surplus_policies_ = policies.empty() ? 0 : static_cast<int64_t>(policies.size()) - 1;
  GpuPolicy effective = policies.empty() ? defaults_ : std::move(policies.front());
  preemption_in_tree_ = effective.actor == PreemptionActor::kScheduler;
  With([&effective](Engine& engine, Instant) { engine.SetPolicy(std::move(effective)); });
}

void Host::Synced() { synced_ = true; }

void Host::Heard(const char* resource) {
  const auto* const found = std::find(kWatched.begin(), kWatched.end(), std::string_view(resource));
  if (found == kWatched.end()) return;
  heard_[static_cast<std::size_t>(found - kWatched.begin())] =
      Steady::now().time_since_epoch().count();
}

}  // namespace tranche::app
