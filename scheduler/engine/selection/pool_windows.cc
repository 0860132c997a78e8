#include "scheduler/engine/selection/pool_windows.h"

#include <algorithm>

namespace tranche {
namespace {

// What a class without a grace of its own is given, as Kubernetes gives it.
constexpr Millis kUsualGrace{30'000};
// Between a pod's last moment and the maintenance: it takes time to be asked, and to be seen gone.
constexpr Millis kBeforeMaintenance{60'000};

// How long the pod runs at most; nullopt: nobody says.
std::optional<Millis> LongestOf(const PodRequest& request, const GpuClass* gpu_class) {
  std::optional<Millis> longest = request.expected_runtime;
  if (gpu_class != nullptr && gpu_class->max_runtime) {
    longest = longest ? std::min(*longest, *gpu_class->max_runtime) : *gpu_class->max_runtime;
  }
  return longest;
}

bool StaysTooLong(const NodeEntry& node, const PodRequest& request, const GpuClass* gpu_class,
                  Instant now) {
  if (!node.window) return false;
  if (const auto longest = LongestOf(request, gpu_class)) {
    return now + *longest > node.window->from;
  }
  const std::optional<Instant> drained = DrainedAt(node, gpu_class);
  const Millis least = gpu_class == nullptr ? Millis::zero() : gpu_class->min_runtime;
  return !drained || now + std::max(least, kDrainNotice) > *drained;
}

}  // namespace

bool NoteWindow(ClusterState& cluster, NodeId id, Instant now) {
  NodeEntry& entry = *cluster.nodes[id];
  std::optional<NodeWindow> next;
  const GpuPool* pool = nullptr;
  if (!cluster.set->pools.empty() && entry.state.present()) {
    pool = cluster.set->PoolOf(entry.state.facts().labels.Finder());
  }
  if (pool != nullptr) {
    for (const PoolWindow& window : pool->windows) {
      if (window.to <= now || (next && next->from <= window.from)) continue;
      next = NodeWindow{pool->name, window.from, window.to, window.drain};
    }
  }
  if (entry.window == next) return false;
  cluster.windows += (next ? 1 : 0) - (entry.window ? 1 : 0);
  if (next) {
    cluster.reopenings.emplace(std::max(next->from, now), id);
    cluster.reopenings.emplace(next->to, id);
  }
  entry.window = std::move(next);
  return true;
}

std::optional<Instant> DrainedAt(const NodeEntry& node, const GpuClass* gpu_class) {
  if (!node.window || !node.window->drain) return std::nullopt;
  if (gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever) return std::nullopt;
  const Millis grace =
      gpu_class == nullptr ? kUsualGrace : gpu_class->grace_period.value_or(kUsualGrace);
  return node.window->from - grace - kBeforeMaintenance;
}

Reason ShutTo(const ClusterState& cluster, const RequestContext& context, NodeId id, Instant now) {
  const Reason closed = cluster.hot[id].closed;
  if (closed != Reason::kNone || cluster.windows == 0) return closed;
  const GpuClass* gpu_class = context.membership.gpu_class;
  return StaysTooLong(*cluster.nodes[id], *context.request, gpu_class, now) ? Reason::kMaintenance
                                                                            : Reason::kNone;
}

}  // namespace tranche
