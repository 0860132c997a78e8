// Another engine that decides as the one would that was copied.
//
// Thread rule: as of an engine, one thread at a time; it shares nothing with the one that was
// copied. Cost: O(nodes + pods), as of a restart.
#pragma once

#include <memory>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/replica_walk.h"

namespace tranche {

// Its restart is finished and its effects are taken out. Tentative placements never end in it.
std::unique_ptr<Engine> MakeReplica(const ClusterCopy& copy);

}  // namespace tranche
