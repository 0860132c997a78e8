// Reclaims for people: `tranche reclaims`, and what explain and whatif print of a plan.
#pragma once

#include <iosfwd>

#include "scheduler/cli/cli_json.h"

namespace tranche {

// The answer of /api/v1/reclaims as a table.
void PrintReclaims(const Json& answer, std::ostream& out);
// "plan" of an explanation; nothing where it is null.
void PrintPlan(const Json& plan, std::ostream& out);
// What would be evicted for a pod of a what-if; nothing where nobody would.
void PrintEvictions(const Json& pod, std::ostream& out);

}  // namespace tranche
