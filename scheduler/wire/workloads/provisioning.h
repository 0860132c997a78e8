// ProvisioningRequests and their PodTemplates as JSON, and what the autoscaler answers in them.
//
// Pure functions. Errors: InvalidArgument naming what was expected, found and where.
// Source: kubernetes/autoscaler cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/
// v1/types.go (fields and their limits, conditions), cluster-autoscaler/proposals/
// provisioning-request.md (the template must agree with the pods in all that schedulers go by).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/ports/provisioning.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

inline constexpr std::string_view kProvisioningApi = "autoscaling.x-k8s.io/v1";
inline constexpr std::string_view kManagedBy = "app.kubernetes.io/managed-by";
inline constexpr std::size_t kMostPodSets = 32;            // maxItems of spec.podSets
inline constexpr std::size_t kMostTemplateBytes = 65'536;  // of a template; larger is refused

// What autoscalers go by of a pod: the `template` of a PodTemplate, as JSON. No environment, no
// commands, no annotations: they may hold what not everybody who reads PodTemplates is to read.
// Pods of one kind have the same.
absl::StatusOr<std::string> PodTemplateOf(Element pod);

struct TemplateSet {
  std::string pod_template;  // as PodTemplateOf makes it
  int64_t count = 0;
};

// The objects of one request: its templates, named after it, and itself.
struct ProvisioningObjects {
  struct Named {
    std::string name;
    std::string json;
  };
  std::vector<Named> templates;
  std::string request;  // JSON
};
// Sets with equal templates become one. Errors: more than kMostPodSets are left.
absl::StatusOr<ProvisioningObjects> EncodeProvisioning(const ProvisioningWrite& write,
                                                       const std::vector<TemplateSet>& sets);

// Whether the object carries our label.
bool IsOurProvisioning(Element request);
absl::StatusOr<ProvisioningFound> DecodeProvisioning(Element request);

}  // namespace tranche::wire
