#include "scheduler/engine/selection/held_nodes.h"

#include <algorithm>

namespace tranche {

std::optional<Instant> HeldNodes::EndOf(const PodUid& uid, Instant now) const {
  const auto found = cluster_.pods.find(uid);
  if (found == cluster_.pods.end()) return std::nullopt;
  const PodRecord& record = found->second;
  if (record.traits.leaves_at) return std::max(now, *record.traits.leaves_at);
  const HeldWork* work = cluster_.book.Find(uid);
  if (work == nullptr || record.node.empty() || !record.request->expected_runtime) {
    return std::nullopt;
  }
  const Instant end = work->running.value_or(work->since) + *record.request->expected_runtime;
  return end > now ? std::optional(end) : std::nullopt;
}

bool HeldNodes::IsHeldFrom(const PodRequest& request, NodeId id, Instant now) const {
  if (hold.nodes.empty() || hold.start <= now || !hold.nodes.contains(cluster_.names.name(id)))
    return false;
  if (GangKeyOf(request) == hold.gang) return false;
  return !request.expected_runtime || now + *request.expected_runtime > hold.start;
}

}  // namespace tranche
