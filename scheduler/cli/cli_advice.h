// Advice for people: `tranche top --advise`, and what edits would do: `tranche plan`.
#pragma once

#include <iosfwd>

#include "scheduler/cli/output/json.h"

namespace tranche {

// The answer of /api/v1/advice as three tables, each under a heading.
void PrintAdvice(const Json& advice, std::ostream& out);
// The answer of /api/v1/plan: a row for each pod.
void PrintEditPlan(const Json& plan, std::ostream& out);

}  // namespace tranche
