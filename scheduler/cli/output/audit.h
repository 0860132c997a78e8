// What `tranche audit` prints: what the books say otherwise than they should, and what is set
// aside.
#pragma once

#include <iosfwd>

#include "scheduler/cli/output/json.h"

namespace tranche {

// The answer of /api/v1/audit as tables. True: nothing was found.
bool PrintAudit(const Json& audit, std::ostream& out);

}  // namespace tranche
