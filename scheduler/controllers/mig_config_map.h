// The file of MIG layouts that mig-parted reads, kept in a ConfigMap: layouts by name.
//
//   version: v1
//   mig-configs:
//     NAME:
//       - devices: [0]
//         mig-enabled: true
//         mig-devices: {3g.40gb: 2}
//
// Pure functions. Source: mig-geometry section 7.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tranche {

// `file` with the entry `name` added in front of the others, or as it is where it has that name
// already: equal names have equal contents. Everything else stays byte for byte, since the layouts
// there may be other people's. Empty text makes a new file. `entry`: "NAME:\n  - devices: ...".
// Errors: InvalidArgument naming what was expected and found; a file whose mig-configs are written
// in braces is one.
absl::StatusOr<std::string> AddMigConfig(const std::string& file, std::string_view name,
                                         std::string_view entry);

}  // namespace tranche
