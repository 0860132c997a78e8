// ResourceQuota: the keys HAMi reads of it, limits.nvidia.com/gpumem and
// limits.nvidia.com/gpucores.
//
// Pure functions. Source: request-dialects section 4.5.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "scheduler/index/namespace_caps.h"

namespace tranche::wire {

struct QuotaReading {
  NamespaceCap cap;
  // An amount that cannot be read lets nothing in: what was expected and found; empty: all can.
  std::string problem;
};

// `json`: a whole v1 object. As in HAMi its scopes are not looked at: it counts every pod of the
// namespace. Errors: InvalidArgument where it is no object with a name.
absl::StatusOr<QuotaReading> DecodeResourceQuota(std::string_view json);

}  // namespace tranche::wire
