// A span of time as OpenCost's Allocation API takes it.
//
// Source: opencost.io/docs/integrations/api, "window" and "step": words, durations up to now, pairs
// of moments as RFC 3339 or Unix seconds. Days begin in UTC, weeks on Sunday.
//
// Pure; any thread.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "topology/base/units.h"

namespace tranche {

struct CostWindow {
  Instant from;
  Instant to;  // after `from`, not after the moment it is asked at
  friend bool operator==(const CostWindow&, const CostWindow&) = default;
};

// Errors: InvalidArgument with what was expected and found.
absl::StatusOr<CostWindow> ParseCostWindow(std::string_view text, Instant now);
// "30m", "12h", "7d", "2w". Errors: InvalidArgument, naming the parameter.
absl::StatusOr<Millis> ParseCostSpan(std::string_view text, const char* parameter);

}  // namespace tranche
