// Resources of others whose objects tell more of nodes and gangs than Node and Pod do. None of them
// need be there: which controllers and drivers a cluster has is its own choice. Their sinks tell
// ClusterEvents what they say.
//
// Thread rule: the reading thread.
// Source: gpu-topology section 5, dra facts section 1 (resource.k8s.io is v1 since
// Kubernetes 1.34, which GPU drivers that publish them require), request-dialects section 12.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "scheduler/kube/watch/object_sink.h"
#include "scheduler/ports/cluster_events.h"
#include "scheduler/wire/nodes/node_topology.h"

namespace tranche::kube {

struct ObservedResource {
  enum class Kind : uint8_t { kZones, kSlices, kClasses, kClaims, kTemplates, kGangs, kAgents };
  Kind kind;
  std::string_view name;  // in statuses and the log: two are called podgroups
  std::string_view path;
  std::string_view group = {};  // kGangs: decides the gang's name
};

inline constexpr std::array kObservedResources = {
    ObservedResource{ObservedResource::Kind::kZones, "noderesourcetopologies",
                     "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"},
    ObservedResource{ObservedResource::Kind::kSlices, "resourceslices",
                     "/apis/resource.k8s.io/v1/resourceslices"},
    ObservedResource{ObservedResource::Kind::kClasses, "deviceclasses",
                     "/apis/resource.k8s.io/v1/deviceclasses"},
    ObservedResource{ObservedResource::Kind::kClaims, "resourceclaims",
                     "/apis/resource.k8s.io/v1/resourceclaims"},
    ObservedResource{ObservedResource::Kind::kTemplates, "resourceclaimtemplates",
                     "/apis/resource.k8s.io/v1/resourceclaimtemplates"},
    ObservedResource{ObservedResource::Kind::kAgents, "devices.scheduling.koordinator.sh",
                     "/apis/scheduling.koordinator.sh/v1alpha1/devices"},
    ObservedResource{ObservedResource::Kind::kGangs, "podgroups.scheduling.volcano.sh",
                     "/apis/scheduling.volcano.sh/v1beta1/podgroups", wire::kVolcanoGroup},
    ObservedResource{ObservedResource::Kind::kGangs, "podgroups.scheduling.x-k8s.io",
                     "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", wire::kPluginsGroup},
};

std::unique_ptr<ObjectSink> SinkOf(const ObservedResource& resource, ClusterEvents& events);

}  // namespace tranche::kube
