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
#include "scheduler/wire/json/json_value.h"

namespace tranche::wire {

// What is settled when it is planned, and what happens to it: members of an ObjectWrite,
// "\"spec\":{...}" and "\"status\":{...}".
std::string EncodeReclaimSpec(const Reclaim& reclaim);
std::string EncodeReclaimStatus(const Reclaim& reclaim);

// What the API shows of a reclaim in the same form.
int64_t CeilSeconds(int64_t millis);
// What a reclaim without pods is for: kind and name, of a gang its namespace.
Json SourceJson(const Reclaim& reclaim);
Json CostJson(const PlanCost& cost);      // numbers in the order of comparison: see the CRD
std::string ProgressText(const Reclaim& reclaim);  // "1 of 2 gone"
std::string_view SearchResult(bool optimal);

// A whole object. One without a status, whose writer was cut off, is planned and has no victims.
// Errors: InvalidArgument naming the field and what was found.
absl::StatusOr<Reclaim> DecodeReclaim(std::string_view json);

}  // namespace tranche::wire
