// Quotas and budgets as JSON: the read-only API (DESIGN section 9).
#pragma once

#include <span>
#include <string>

#include "scheduler/engine/engine.h"

namespace tranche {

// {"quotas":[...]}, {"budgets":[...]}.
std::string EncodeQuotas(std::span<const QuotaView> quotas);
std::string EncodeBudgets(std::span<const BudgetReport> budgets);
// A quota's entry, with "budgets" and "reclaims" of it.
std::string EncodeTeam(const QuotaView& quota, std::span<const BudgetReport> budgets,
                       std::span<const Reclaim> reclaims);

}  // namespace tranche
