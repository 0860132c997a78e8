// A reclaim as a GPUReclaim object of tranche.dev/v1alpha1: written when it changes, read back
// after a restart. The schema is charts/tranche/crds/gpureclaims.yaml.
//
// A round trip keeps everything of a Reclaim but PlanCost::order: what people read in seconds
// (lostGpuSeconds, graceSeconds, the cost) is rounded up, and stands beside its milliseconds.
// Pure functions; cost O(text).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "scheduler/facts/reclaim.h"

namespace tranche::wire {

// What is settled when it is planned, and what happens to it: members of an ObjectWrite,
// "\"spec\":{...}" and "\"status\":{...}".
std::string EncodeReclaimSpec(const Reclaim& reclaim);
std::string EncodeReclaimStatus(const Reclaim& reclaim);

// A whole object. One without a status, whose writer was cut off, is planned and has no victims.
// Errors: InvalidArgument naming the field and what was found.
absl::StatusOr<Reclaim> DecodeReclaim(std::string_view json);

}  // namespace tranche::wire
