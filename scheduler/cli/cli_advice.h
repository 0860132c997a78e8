// Advice for people: `tranche top --advise`.
#pragma once

#include <iosfwd>

#include "scheduler/cli/output/json.h"

namespace tranche {

// The answer of /api/v1/advice as three tables, each under a heading.
void PrintAdvice(const Json& advice, std::ostream& out);

}  // namespace tranche
