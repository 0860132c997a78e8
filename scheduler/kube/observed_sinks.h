// The sinks of the observed resources: what they say of nodes and gangs -> ClusterEvents.
//
// Thread rule: the reading thread.
#pragma once

#include <memory>

#include "scheduler/kube/object_sink.h"
#include "scheduler/kube/observed_resources.h"
#include "scheduler/ports/cluster_events.h"

namespace tranche::kube {

std::unique_ptr<ObjectSink> SinkOf(const ObservedResource& resource, ClusterEvents& events);

}  // namespace tranche::kube
