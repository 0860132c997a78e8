// Which nodes could be emptied, and where their work would go: nodes that run little all of which
// may be moved (consolidation), or the one that another MIG layout is wanted on.
//
// Work goes to other nodes as the placement rules put it there, on the GPU model it has; the
// fullest node that takes it is tried first. Nodes nobody works on are no place to consolidate to.
// Entries hold one after another. Pure, deterministic.
// Cost: placements of a node's pods on all others, bounded by `most_trials`; at 5,000 nodes of 8
// GPUs with 30,000 pods 0.02 to 0.2 s.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "scheduler/advice/case.h"
#include "scheduler/advice/defragment.h"

namespace tranche {

enum class EmptyFor : uint8_t { kConsolidation, kLayout };

struct EmptiedNode {
  NodeName node;
  int64_t gpus = 0;  // that are free afterwards
  std::vector<DefragMove> moves;
  int64_t lost_gpu_ms = 0;
};

struct EmptyingLimits {
  int most_entries = 10;
  int most_moves = 16;  // of one node
  // What may be lost for a GPU that is free afterwards.
  Millis most_lost{900'000};
  int64_t most_trials = 200'000;
};

// Nodes to consolidate, the least work lost for a GPU first: open ones of which half or less is
// used. None of `apart`.
std::vector<EmptiedNode> PlanConsolidation(const AdviceCase& fleet, const EmptyingLimits& limits,
                                           const std::set<NodeName>& apart = {});

// Where the work of that node would go now, whether the node takes new pods or not; nullopt: some
// of it may not be moved, or finds no place. What was asked to leave needs none.
std::optional<EmptiedNode> PlanEmptying(const AdviceCase& fleet, const NodeName& node,
                                        EmptyFor purpose, const EmptyingLimits& limits);

// The node as if nobody worked on it; its pods are gone from the case as well.
AdviceCase WithoutWorkOn(const AdviceCase& fleet, const NodeName& node);

// Nobody holds anything there, as far as anybody can know.
bool NobodyHolds(const AdviceCase& fleet, const AdviceNode& node);

// The first that has waited so long for devices and could be placed on the node if nobody else
// were there; nullptr: nobody.
const AdviceWaiter* WaiterFor(const AdviceCase& fleet, const AdviceNode& node, Millis patience);

}  // namespace tranche
