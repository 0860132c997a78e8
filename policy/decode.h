// Objects of tranche.dev/v1alpha1 as JSON text -> values, defaulted and checked.
//
// Errors: InvalidArgument with all that is wrong, each as field path, rule and the value found
// ("spec.placement.filterWidth: expected 1..64, found 0"), joined by "; ". Fields the contract does
// not know are refused, so that a slip of the pen is not silently without effect.
// Pure functions but for one read of the machine's time zones; any thread; cost O(text).
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "policy/selector.h"
#include "policy/spec.h"

namespace tranche {

// Absent fields keep those of `defaults`. Fields this version does not act on are
// checked all the same.
absl::StatusOr<GpuPolicy> DecodeGpuPolicy(std::string_view json, const GpuPolicy& defaults);
absl::StatusOr<GpuQuota> DecodeGpuQuota(std::string_view json);
absl::StatusOr<GpuBudget> DecodeGpuBudget(std::string_view json);
// Absent fields are those of DefaultClass.
absl::StatusOr<GpuClass> DecodeGpuClass(std::string_view json);
absl::StatusOr<GpuPool> DecodeGpuPool(std::string_view json);
absl::StatusOr<GpuPrice> DecodeGpuPrice(std::string_view json);

// The labels of a Namespace, kubernetes.io/metadata.name among them as the API server sets it.
absl::StatusOr<Labels> DecodeNamespaceLabels(std::string_view name, std::string_view json);

// Checks an object of any of our kinds. GPUReclaim and GPUQuotaView are written by Tranche
// alone. Other kinds are fine.
absl::Status CheckObject(std::string_view kind, std::string_view json, const GpuPolicy& defaults);

}  // namespace tranche
