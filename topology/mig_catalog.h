// The MIG boards as data. Callers use mig.h; this is the seam between rules and facts.
#pragma once

#include <vector>

#include "topology/mig.h"

namespace tranche {

// Built anew at every call; MigBoards() keeps the one copy.
std::vector<MigBoard> BuildMigCatalog();

}  // namespace tranche
