// Quotas and budgets as JSON: the read-only API (DESIGN section 9).
#pragma once

#include <span>
#include <string>

#include "scheduler/engine/engine.h"

namespace tranche {

// {"quotas":[...]}, {"budgets":[...]}.
std::string EncodeQuotas(std::span<const QuotaView> quotas);
std::string EncodeBudgets(std::span<const BudgetReport> budgets);

}  // namespace tranche
