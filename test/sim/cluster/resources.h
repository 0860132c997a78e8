// The resources that the simulated API server serves, and where.
//
// Source: kube-client-protocol section 2; dra section 1.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace tranche::sim {

struct ResourceType {
  std::string_view plural;  // "pods": its name in the store and in the history
  std::string_view group;   // "/api/v1"
  std::string_view kind;
  std::string_view version;  // apiVersion of its objects
  bool namespaced = false;
  bool has_status = false;  // status is written by a subresource of its own
};

inline constexpr std::string_view kTrancheGroup = "/apis/tranche.dev/v1alpha1";
inline constexpr std::string_view kTrancheVersion = "tranche.dev/v1alpha1";

inline constexpr std::array kResources = {
    ResourceType{"pods", "/api/v1", "Pod", "v1", true, true},
    ResourceType{"nodes", "/api/v1", "Node", "v1", false, true},
    ResourceType{"namespaces", "/api/v1", "Namespace", "v1", false, true},
    ResourceType{"configmaps", "/api/v1", "ConfigMap", "v1", true},
    ResourceType{"resourcequotas", "/api/v1", "ResourceQuota", "v1", true, true},
    ResourceType{"leases", "/apis/coordination.k8s.io/v1", "Lease", "coordination.k8s.io/v1", true},
    ResourceType{"events", "/apis/events.k8s.io/v1", "Event", "events.k8s.io/v1", true},
    // What the simulated autoscaler says. The real server has all Events under both paths.
    ResourceType{"scaleups", "/api/v1", "Event", "v1", true},
    ResourceType{"priorityclasses", "/apis/scheduling.k8s.io/v1", "PriorityClass",
                 "scheduling.k8s.io/v1"},
    ResourceType{"poddisruptionbudgets", "/apis/policy/v1", "PodDisruptionBudget", "policy/v1",
                 true, true},
    ResourceType{"gpupolicies", kTrancheGroup, "GPUPolicy", kTrancheVersion, false, true},
    ResourceType{"gpuclasses", kTrancheGroup, "GPUClass", kTrancheVersion, false, true},
    ResourceType{"gpuquotas", kTrancheGroup, "GPUQuota", kTrancheVersion, false, true},
    ResourceType{"gpubudgets", kTrancheGroup, "GPUBudget", kTrancheVersion, false, true},
    ResourceType{"gpupools", kTrancheGroup, "GPUPool", kTrancheVersion, false, true},
    ResourceType{"gpuprices", kTrancheGroup, "GPUPrice", kTrancheVersion, false, true},
    ResourceType{"gpuquotaviews", kTrancheGroup, "GPUQuotaView", kTrancheVersion, true, true},
    ResourceType{"gpureclaims", kTrancheGroup, "GPUReclaim", kTrancheVersion, false, true},
    ResourceType{"resourceslices", "/apis/resource.k8s.io/v1", "ResourceSlice",
                 "resource.k8s.io/v1"},
    ResourceType{"deviceclasses", "/apis/resource.k8s.io/v1", "DeviceClass", "resource.k8s.io/v1"},
    ResourceType{"resourceclaims", "/apis/resource.k8s.io/v1", "ResourceClaim",
                 "resource.k8s.io/v1", true, true},
    ResourceType{"resourceclaimtemplates", "/apis/resource.k8s.io/v1", "ResourceClaimTemplate",
                 "resource.k8s.io/v1", true},
};

// nullptr: it is not served.
const ResourceType* FindResource(std::string_view plural);

// A path of the API taken apart: "/api/v1/namespaces/NS/pods/NAME/SUB".
struct ApiPath {
  const ResourceType* type = nullptr;  // nullptr: 404 page not found
  std::string ns = {}, name = {}, subresource = {};
  std::string key() const { return ns.empty() ? name : ns + "/" + name; }
};
ApiPath SplitPath(std::string_view path);

}  // namespace tranche::sim
