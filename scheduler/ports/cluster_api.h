// All that Tranche does to a cluster, for the room that wires the process and for the clusters that
// implement it: scheduler/kube (a real API server) and scheduler/embedded (in process). A
// controller takes the single ports it uses, so that its constructor says what it may do.
//
// Thread rule: that of the ports.
#pragma once

#include "scheduler/ports/config_maps.h"
#include "scheduler/ports/evictions.h"
#include "scheduler/ports/node_writes.h"
#include "scheduler/ports/object_writes.h"
#include "scheduler/ports/pod_marks.h"
#include "scheduler/ports/pod_writes.h"
#include "scheduler/ports/provisioning.h"

namespace tranche {

class ClusterApi : public PodWrites,
                   public NodeWrites,
                   public ObjectWrites,
                   public Evictions,
                   public ConfigMaps,
                   public PodMarks,
                   public ProvisioningRequests {};

}  // namespace tranche
