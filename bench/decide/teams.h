// The owners of the made fleet: teams with namespaces, and what an administrator declares for them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "bench/profile/profile.h"

namespace tranche::bench {

// One List of namespaces, classes, a tree of quotas (a root, departments, a leaf a team) and a
// budget a team, by the fleet and its fill. Errors: what the file system says.
absl::Status WriteTeams(const Profile& profile, const std::string& path);

}  // namespace tranche::bench
