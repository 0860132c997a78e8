// What the ledger had settled at a moment, as the statuses of GPUQuotas and GPUBudgets carry it,
// and what a ledger that lacks it was told from there (ADR 0027).
//
// Plain values. Amounts are quanta x ms x weight (quota/budget/budget_amounts.h), of leaves with
// kUnitWeight. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quota/budget/budget.h"
#include "topology/base/units.h"

namespace tranche {

// Which ledger said it, after which of its entries, as of when.
struct CheckpointMark {
  std::string ledger;  // LedgerHealth::id
  int64_t entry = 0;
  Instant at;
  friend bool operator==(const CheckpointMark&, const CheckpointMark&) = default;
};

// Of one budget; stand.at is mark.at.
struct BudgetCheckpoint {
  CheckpointMark mark;
  BudgetStand stand;
  friend bool operator==(const BudgetCheckpoint&, const BudgetCheckpoint&) = default;
};

// GPU time of a leaf on GPUs of one model.
struct LeafUse {
  std::string model;
  TimeSpan span;  // a month of UTC, or what of it had passed
  GpuTime time;
  friend bool operator==(const LeafUse&, const LeafUse&) = default;
};

struct LeafCheckpoint {
  CheckpointMark mark;
  std::vector<LeafUse> uses;  // ascending start, model
  friend bool operator==(const LeafCheckpoint&, const LeafCheckpoint&) = default;
};

// What a ledger takes over from a checkpoint: an entry of its own kind.
struct RestoredUse {
  enum class Of : uint8_t { kBudget, kLeaf };
  Of of = Of::kBudget;
  std::string name;  // uid of the budget; name of the leaf
  CheckpointMark mark;
  BudgetStand stand;  // kBudget: all of it
  LeafUse use;        // kLeaf: told, what is to be had in all; as an entry, what was lacking
  friend bool operator==(const RestoredUse&, const RestoredUse&) = default;
};

// No checkpoint holds more; sums of thousands of such amounts stay within an Int128.
inline constexpr Int128 kMostCheckpointed =
    Int128{1'000'000'000'000'000'000} * 1'000'000'000'000'000'000;

}  // namespace tranche
