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

bool NotePool(ClusterState& cluster, NodeId id, Instant now) {
  NodeEntry& entry = *cluster.nodes[id];
  std::optional<NodeWindow> next;
  const GpuPool* pool = nullptr;
  entry.capacity.reset();
  entry.pool.clear();
  entry.price_group = 0;
  if (entry.state.present()) {
    const FindLabel label = entry.state.facts().labels.Finder();
    pool = cluster.set->pools.empty() ? nullptr : cluster.set->PoolOf(label);
    const NodeTraits traits = TraitsOf(pool, label);
    entry.capacity = traits.capacity;
    entry.pool = traits.pool;
    entry.price_group = cluster.prices.GroupOf(traits, entry.state.inventory().model, now);
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

const std::string& MeteredPoolOf(const PolicySet& set, const NodeFacts& facts) {
  const bool metered = !set.metered_pools.empty();
  return set.MeteredName(metered ? set.PoolOf(facts.labels.Finder()) : nullptr);
}

std::optional<Instant> DrainedAt(const NodeEntry& node, const GpuClass* gpu_class) {
  if (!node.window || !node.window->drain) return std::nullopt;
  if (gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever) return std::nullopt;
  const Millis grace =
      gpu_class == nullptr ? kUsualGrace : gpu_class->grace_period.value_or(kUsualGrace);
  return node.window->from - grace - kBeforeMaintenance;
}

BornCapacity::BornCapacity(const GpuClass* gpu_class) {
  for (int type = 0; type < kCapacityTypes; ++type) {
    const std::optional<int> place = CapacityChoice(gpu_class, static_cast<CapacityType>(type));
    choice[static_cast<std::size_t>(type)] = static_cast<int8_t>(place.value_or(-1));
  }
}

Reason ShutTo(const ClusterState& cluster, const RequestContext& context, NodeId id, Instant now) {
  const NodeHot& row = cluster.hot[id];
  if (row.closed != Reason::kNone) return row.closed;
  const GpuClass* gpu_class = context.membership.gpu_class;
  if (!CapacityChoice(gpu_class, row.capacity)) return Reason::kCapacity;
  if (cluster.windows == 0) return Reason::kNone;
  return StaysTooLong(*cluster.nodes[id], *context.request, gpu_class, now) ? Reason::kMaintenance
                                                                            : Reason::kNone;
}

}  // namespace tranche
