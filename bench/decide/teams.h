// The owners of the made fleet: teams with namespaces, and what an administrator declares for them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "bench/decide/fleet.h"

namespace tranche::bench {

// One List of namespaces, classes, a tree of quotas (a root, 4 departments, a leaf a team) and a
// budget a team. Sized by the fleet and its fill so that nearly all teams have room: every fourth
// one borrows, one is demoted by its budget, and one is at its limit and waits. Errors: what the
// file system says.
absl::Status WriteTeams(const FleetOptions& options, const std::string& path);

}  // namespace tranche::bench
