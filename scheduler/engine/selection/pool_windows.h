// What pools say of their nodes: how they are paid for, what they cost, and maintenance (GPUPool
// windows): which work a node takes before, and until when what runs there may stay.
//
// A pod whose class does not bear how the node is paid for is not placed there.
//
// A pod is placed that will have ended before, by its own word or its class's maxRuntime. Of one
// that says nothing nobody knows: it is placed where the window drains, if its class may be evicted
// and it has its minimum of time, and at least some, before. In a window the node is closed.
//
// Functions of the state; only NotePool changes it. Externally synchronised, as the state is.
// Cost: a look at the node, NotePool's as PolicySet::PoolOf.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "policy/spec.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/request_context.h"
#include "scheduler/facts/reason.h"

namespace tranche {

// Looks for the node's pool anew: what it costs, and its window, when the node is woken as that
// begins and ends; Refresh follows. True: the window is another one now.
bool NotePool(ClusterState& cluster, NodeId id, Instant now);

// The pool by which the GPUs of a node are charged (PolicySet::metered_pools); empty: by none.
const std::string& MeteredPoolOf(const PolicySet& set, const NodeFacts& facts);

// So long before it has to go a pod is told, and placed no later than that.
inline constexpr Millis kDrainNotice{600'000};

// When a pod of that class is asked to leave for the node's maintenance, early enough for its
// grace; nullopt: it may stay. `gpu_class` may be null.
std::optional<Instant> DrainedAt(const NodeEntry& node, const GpuClass* gpu_class);

// The capacity types the pod's class bears, and in which order; a plain value.
struct BornCapacity {
  explicit BornCapacity(const GpuClass* gpu_class);
  bool Has(CapacityType type) const { return choice[static_cast<std::size_t>(type)] >= 0; }
  // By CapacityType: how far down the list of its class it stands; -1: not borne.
  std::array<int8_t, kCapacityTypes> choice;
};

// Why the node takes no such pod now, whatever room it has; kNone: it may.
Reason ShutTo(const ClusterState& cluster, const RequestContext& context, NodeId id, Instant now);

}  // namespace tranche
