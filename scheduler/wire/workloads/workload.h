// Objects that stand for several pods: of which templates their controllers make how many, and how
// many of them start together.
//
// Errors: InvalidArgument naming what was expected, found and where.
// Source: kubernetes/api batch/v1 and apps/v1, kubernetes-sigs/jobset (api/jobset/v1alpha2),
// kubeflow/training-operator (pkg/apis/kubeflow.org/v1), kubeflow/mpi-operator (v2beta1), KubeRay
// (ray-operator/apis/ray/v1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/wire/json/json.h"

namespace tranche::wire {

// Pods of one template.
struct PodSet {
  std::string name;                          // among those of its owner; empty: there is no other
  int64_t count = 0;                         // at the same time
  std::optional<Object> pod = std::nullopt;  // the template: metadata and spec; nullopt: none
};

struct Workload {
  std::string ns;  // empty: not said
  std::string name;
  std::vector<PodSet> sets = {};  // in the order in which their controller makes them
  // As PodRequest::gang of its pods; empty: they are no gang by themselves.
  std::string gang = {};
  // How many of the gang start together; 0: not all, as some are made when others run.
  int64_t together = 0;
};

// "Job, Deployment, ...", for error texts.
std::string WorkloadKinds();
bool IsWorkload(std::string_view kind);
// Requires: IsWorkload(kind). Lives as long as `object`. More than 10,000 pods: an error.
absl::StatusOr<Workload> ReadWorkload(Element object, std::string_view kind);
// The gang that the pods of such an owner are, as their labels name it; empty: none.
std::string GangOfOwner(std::string_view kind, std::string_view name);

}  // namespace tranche::wire
