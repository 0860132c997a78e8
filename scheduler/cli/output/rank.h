// Where a waiting pod stands, term by term, beside those right before and after it.
//
// Members of the answer that are missing or of another type throw Json::exception.
#pragma once

#include <iosfwd>

#include "scheduler/cli/output/json.h"

namespace tranche {

// An answer of GET /api/v1/rank/NAMESPACE/POD.
void PrintRank(const Json& answer, std::ostream& out);

}  // namespace tranche
