// A node as people are shown it: its GPUs, what is free on them, and the pods that hold the rest.
//
// Pure. Cost: its devices and holdings once.
#pragma once

#include "scheduler/engine/state/records.h"
#include "scheduler/engine/state/views.h"
#include "topology/base/ids.h"

namespace tranche {

// Tentative placements are left out: they hold nothing. Earmarks are shown over what their victims
// still hold, and take no more than is free there.
NodeView ViewNode(const NodeName& name, const NodeEntry& entry);

}  // namespace tranche
