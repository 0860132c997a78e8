// GPUPolicy objects (tranche.dev/v1alpha1) -> GpuPolicy, defaulted and checked.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "policy/spec.h"

namespace tranche {

// Reads one GPUPolicy object as JSON text. Absent fields keep those of `defaults`.
// Errors: InvalidArgument with field path, rule and the value found ("spec.placement.filterWidth:
// expected 1..64, found 0"). Fields this version does not act on are checked for type only.
absl::StatusOr<GpuPolicy> DecodeGpuPolicy(std::string_view json, const GpuPolicy& defaults);

}  // namespace tranche
