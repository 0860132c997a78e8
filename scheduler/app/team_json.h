// Quotas and budgets as JSON: the read-only API (DESIGN section 9) and the status of our objects.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy_set.h"
#include "scheduler/engine/engine.h"

namespace tranche::app {

// {"quotas":[...]}, {"budgets":[...]}.
std::string EncodeQuotas(std::span<const QuotaView> quotas);
std::string EncodeBudgets(std::span<const BudgetReport> budgets);

// A condition of an object's status.
struct Condition {
  std::string type;
  bool status = false;
  std::string reason;   // CamelCase
  std::string message;  // may be empty
  Instant since;
  int64_t generation = 0;
};

// Members of an ObjectWrite: "\"status\":{...}". `slow` members drift with time and need no prompt
// write; they are left out of the text when `with_slow` is false, for comparing. `checkpoint`: one
// of them, as JSON; "": none.
std::string QuotaStatus(const QuotaView& view, std::string_view budget_column,
                        std::span<const Condition> conditions, int64_t generation,
                        std::string_view checkpoint, bool with_slow);
std::string BudgetStatus(const BudgetReport& report, Instant now,
                         std::span<const Condition> conditions, int64_t generation,
                         std::string_view checkpoint, bool with_slow);
std::string ClassStatus(int64_t pods, std::span<const Condition> conditions, int64_t generation);
std::string PolicyStatus(std::span<const Condition> conditions, int64_t generation);
// What a team sees of its leaf; `budgets`: those that meter it.
std::string TeamViewStatus(const QuotaView& view, std::span<const BudgetReport* const> budgets,
                           Instant now, bool with_slow);

// "388 / 1200, resets in 9d" of the tightest budget; "" without one.
std::string HoursLeft(std::span<const BudgetReport* const> budgets, Instant now);

}  // namespace tranche::app
