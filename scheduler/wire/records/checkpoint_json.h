// Checkpoints of the ledger as `status.checkpoint` of GPUBudgets and GPUQuotas
// (facts/checkpoint.h).
//
// Amounts are decimal texts of whole numbers. What is decoded has amounts of 0 to
// kMostCheckpointed, times that can be written, and lists of bounded length; whether it can be true
// is the reader's to judge. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "scheduler/facts/checkpoint.h"

namespace tranche::wire {

// Most a checkpoint may carry; more is refused.
inline constexpr std::size_t kMostStandParts = 32;
inline constexpr std::size_t kMostCarried = 12;
inline constexpr std::size_t kMostLeafUses = 64;

std::string EncodeCheckpoint(const BudgetCheckpoint& checkpoint);
std::string EncodeCheckpoint(const LeafCheckpoint& checkpoint);

// That of the object `json`; nullopt when its status has none. Errors: InvalidArgument naming the
// field, what was expected and what was found.
absl::StatusOr<std::optional<BudgetCheckpoint>> DecodeBudgetCheckpoint(std::string_view json);
absl::StatusOr<std::optional<LeafCheckpoint>> DecodeLeafCheckpoint(std::string_view json);

}  // namespace tranche::wire
