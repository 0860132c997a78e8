// Resources of others whose objects tell more of nodes and gangs than Node and Pod do. None of them
// need be there: which controllers and drivers a cluster has is its own choice. Their sinks tell
// ClusterEvents what they say.
//
// Thread rule: the reading thread.
// Source: gpu-topology section 5, dra facts section 1 (resource.k8s.io is v1 since
// Kubernetes 1.34, which GPU drivers that publish them require), request-dialects section 12;
// scheduling.k8s.io of Kubernetes 1.36 and 1.37.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "scheduler/kube/watch/object_sink.h"
#include "scheduler/ports/cluster_events.h"
#include "scheduler/wire/workloads/gang_sizes.h"

namespace tranche::kube {

struct ObservedResource {
  enum class Kind : uint8_t {
    kZones,
    kSlices,
    kClasses,
    kClaims,
    kTemplates,
    kTaintRules,
    kGangs,
    kOwners,
    kAgents,
    kScaleUps
  };
  Kind kind;
  std::string_view name;  // in statuses and the log: several are called podgroups
  std::string_view path;
  // kGangs: the API group, kOwners: the kind; it decides the gang's name
  std::string_view word = {};
  std::string_view query = {};  // see ReflectorOptions
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
    // Kubernetes 1.36, and from 1.37 on; who serves both tells everything twice.
    ObservedResource{ObservedResource::Kind::kTaintRules,
                     "devicetaintrules.v1beta2.resource.k8s.io",
                     "/apis/resource.k8s.io/v1beta2/devicetaintrules"},
    ObservedResource{ObservedResource::Kind::kTaintRules, "devicetaintrules.v1.resource.k8s.io",
                     "/apis/resource.k8s.io/v1/devicetaintrules"},
    ObservedResource{ObservedResource::Kind::kAgents, "devices.scheduling.koordinator.sh",
                     "/apis/scheduling.koordinator.sh/v1alpha1/devices"},
    ObservedResource{ObservedResource::Kind::kGangs, "podgroups.scheduling.volcano.sh",
                     "/apis/scheduling.volcano.sh/v1beta1/podgroups", wire::kVolcanoGroup},
    ObservedResource{ObservedResource::Kind::kGangs, "podgroups.scheduling.x-k8s.io",
                     "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", wire::kPluginsGroup},
    // Kubernetes 1.36, and from 1.37 on.
    ObservedResource{ObservedResource::Kind::kGangs, "podgroups.v1alpha2.scheduling.k8s.io",
                     "/apis/scheduling.k8s.io/v1alpha2/podgroups", wire::kNativeGroup},
    ObservedResource{ObservedResource::Kind::kGangs, "podgroups.v1beta1.scheduling.k8s.io",
                     "/apis/scheduling.k8s.io/v1beta1/podgroups", wire::kNativeGroup},
    ObservedResource{ObservedResource::Kind::kOwners, "jobsets.jobset.x-k8s.io",
                     "/apis/jobset.x-k8s.io/v1alpha2/jobsets", "JobSet"},
    ObservedResource{ObservedResource::Kind::kOwners, "pytorchjobs.kubeflow.org",
                     "/apis/kubeflow.org/v1/pytorchjobs", "PyTorchJob"},
    // Of the training operator, and of the MPI operator; a cluster has one of them.
    ObservedResource{ObservedResource::Kind::kOwners, "mpijobs.v1.kubeflow.org",
                     "/apis/kubeflow.org/v1/mpijobs", "MPIJob"},
    ObservedResource{ObservedResource::Kind::kOwners, "mpijobs.v2beta1.kubeflow.org",
                     "/apis/kubeflow.org/v2beta1/mpijobs", "MPIJob"},
    ObservedResource{ObservedResource::Kind::kOwners, "rayclusters.ray.io",
                     "/apis/ray.io/v1/rayclusters", "RayCluster"},
    // What cluster-autoscaler and Karpenter say of pods they raise nodes for.
    ObservedResource{ObservedResource::Kind::kScaleUps, "events.TriggeredScaleUp", "/api/v1/events",
                     "", "fieldSelector=involvedObject.kind%3DPod%2Creason%3DTriggeredScaleUp"},
    ObservedResource{ObservedResource::Kind::kScaleUps, "events.Nominated", "/api/v1/events", "",
                     "fieldSelector=involvedObject.kind%3DPod%2Creason%3DNominated"},
};

std::unique_ptr<ObjectSink> SinkOf(const ObservedResource& resource, ClusterEvents& events);

}  // namespace tranche::kube
