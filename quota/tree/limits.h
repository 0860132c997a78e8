// Amounts that administrators wrote, as what a quota line allows.
#pragma once

#include <algorithm>
#include <string_view>

#include "absl/status/statusor.h"
#include "policy/spec.h"
#include "quota/tree/charge.h"
#include "topology/base/limit.h"

namespace tranche {

// What is allowed of each dimension, in quanta.
struct ChargeLimit {
  Limit compute;
  Limit memory;

  constexpr ChargeLimit() = default;  // no limit in either
  constexpr ChargeLimit(Limit of_compute, Limit of_memory)
      : compute(of_compute), memory(of_memory) {}
  constexpr ChargeLimit(const Charge& charge) : compute(charge.compute), memory(charge.memory) {}

  bool Allows(const Charge& charge) const {
    return compute.Allows(charge.compute) && memory.Allows(charge.memory);
  }
  ChargeLimit Minus(const Charge& charge) const {
    return {compute.Minus(charge.compute), memory.Minus(charge.memory)};
  }
  ChargeLimit Plus(const ChargeLimit& other) const {
    return {AddSaturating(compute.saturated(), other.compute.saturated()),
            AddSaturating(memory.saturated(), other.memory.saturated())};
  }
  // What binds; lines of gpuMemory limit one dimension, and the other says nothing.
  Limit Smaller() const { return std::min(compute, memory); }
  Limit Larger() const { return std::max(compute, memory); }
  friend bool operator==(const ChargeLimit& left, const ChargeLimit& right) = default;
};

struct LineLimits {
  ChargeLimit nominal = Charge{};
  ChargeLimit borrow_limit = {};
  ChargeLimit lend_limit = {};
};

// `model`: the line's. gpus: both dimensions; slices: by the board's geometry, never the profile's
// name; gpuMemory: memory by the model's catalogue memory rounded up to a quantum, no limit
// of compute.
// Errors: InvalidArgument with path below the line ("nominal.slices.1g.18gb: expected a MIG profile
// of h200, found ...") for an unknown profile or model, or slices and gpuMemory of `any`.
absl::StatusOr<ChargeLimit> ToLimit(const QuotaAmount& amount, std::string_view model);
absl::StatusOr<LineLimits> ToLimits(const QuotaLine& line);

}  // namespace tranche
