// The statuses and conditions of our own objects, as JSON: GPUQuota, GPUBudget, GPUClass, GPUPolicy
// and GPUQuotaView (quota-model section 8).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/engine/engine.h"

namespace tranche::wire {

// A condition of an object's status.
struct Condition {
  std::string type;
  bool status = false;
  std::string reason;   // CamelCase
  std::string message;  // may be empty
  Instant since;
  int64_t generation = 0;
};

// Some members drift with time and need no prompt write; a text without them shows by comparison
// whether one is due.
enum class StatusMembers { kAll, kPrompt };

// Members of an ObjectWrite: "\"status\":{...}". `checkpoint`: a member that drifts, as JSON; "":
// none.
std::string QuotaStatus(const QuotaView& view, std::string_view budget_column,
                        std::span<const Condition> conditions, int64_t generation,
                        std::string_view checkpoint, StatusMembers members);
std::string BudgetStatus(const BudgetReport& report, Instant now,
                         std::span<const Condition> conditions, int64_t generation,
                         std::string_view checkpoint, StatusMembers members);
std::string ClassStatus(int64_t pods, std::span<const Condition> conditions, int64_t generation);
std::string PolicyStatus(std::span<const Condition> conditions, int64_t generation);
// What a team sees of its leaf; `budgets`: those that meter it.
std::string TeamViewStatus(const QuotaView& view, std::span<const BudgetReport* const> budgets,
                           Instant now, StatusMembers members);

// "388 / 1200, resets in 9d" of the tightest budget; "" without one.
std::string HoursLeft(std::span<const BudgetReport* const> budgets, Instant now);

// What the API shows in the same way.
std::string_view BudgetStateName(BudgetState state);
// The borrowed part of a line: of a leaf its borrowed work, of an inner quota what it takes from
// outside.
int64_t BorrowedOf(const QuotaView& view, const QuotaLineReport& line);
bool IsRolling(const BudgetReport& report);

}  // namespace tranche::wire
