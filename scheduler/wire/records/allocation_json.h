// The annotation tranche.dev/allocation: Allocation <-> JSON text (DESIGN section 9).
//
// {"v":1,"epoch":E,"leaf":"team-a","knowledge":"exact","containers":[{"name":"main","devices":
//   [{"index":0,"uuid":"GPU-..","milli":500,"mib":40537,"mig":null|{"profile","start","size"}}]}]}
// `index` and `uuid` are null where knowledge is counts; then "slot" carries Device::card, so that
// a restart finds the same packing again.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "scheduler/facts/allocation.h"

namespace tranche::wire {

inline constexpr std::string_view kAllocationKey = "tranche.dev/allocation";

std::string EncodeAllocation(const Allocation& allocation);
// Errors: InvalidArgument naming field and value: malformed JSON, v other than 1, negative or
// absurd amounts (milli outside 0..1000, card outside 0..63, more than 64 devices a container).
absl::StatusOr<Allocation> DecodeAllocation(std::string_view text);

}  // namespace tranche::wire
