// Amounts that administrators wrote, as charges: what a quota line allows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "policy/spec.h"
#include "quota/tree/charge.h"

namespace tranche {

// No limit in that dimension. Sums saturate here and never wrap: Add(kUnlimited, x) is kUnlimited.
inline constexpr int64_t kUnlimited = INT64_MAX / 4;

// Saturating at +-kUnlimited; a quantity at or beyond stays there.
int64_t AddSaturating(int64_t left, int64_t right);
Charge AddSaturating(const Charge& left, const Charge& right);

struct LineLimits {
  Charge nominal;
  std::optional<Charge> borrow_limit;  // nullopt: no cap
  std::optional<Charge> lend_limit;    // nullopt: all
};

// `model`: the line's. gpus: both dimensions; slices: by the board's geometry, never the profile's
// name; gpuMemory: memory by the model's catalogue memory rounded up to a quantum, compute
// kUnlimited.
// Errors: InvalidArgument with path below the line ("nominal.slices.1g.18gb: expected a MIG profile
// of h200, found ...") for an unknown profile or model, or slices and gpuMemory of `any`.
absl::StatusOr<Charge> ToCharge(const QuotaAmount& amount, std::string_view model);
absl::StatusOr<LineLimits> ToLimits(const QuotaLine& line);

}  // namespace tranche
