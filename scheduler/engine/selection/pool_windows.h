// Maintenance of pools (GPUPool windows): which work a node takes before, and until when what runs
// there may stay.
//
// A pod is placed that will have ended before, by its own word or its class's maxRuntime. Of one
// that says nothing nobody knows: it is placed where the window drains, if its class may be evicted
// and it has its minimum of time, and at least some, before. In a window the node is closed.
//
// Functions of the state; only NoteWindow changes it. Externally synchronised, as the state is.
// Cost: a look at the node, NoteWindow's as PolicySet::PoolOf.
#pragma once

#include <optional>

#include "policy/spec.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/request_context.h"
#include "scheduler/facts/reason.h"

namespace tranche {

// Looks for the node's window anew, and has the node woken when it begins and ends; Refresh
// follows. True: it is another one now.
bool NoteWindow(ClusterState& cluster, NodeId id, Instant now);

// So long before it has to go a pod is told, and placed no later than that.
inline constexpr Millis kDrainNotice{600'000};

// When a pod of that class is asked to leave for the node's maintenance, early enough for its
// grace; nullopt: it may stay. `gpu_class` may be null.
std::optional<Instant> DrainedAt(const NodeEntry& node, const GpuClass* gpu_class);

// Why the node takes no such pod now, whatever room it has; kNone: it may.
Reason ShutTo(const ClusterState& cluster, const RequestContext& context, NodeId id, Instant now);

}  // namespace tranche
