// Reads a text file whole.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace tranche::embedded {

// The content; at least `padding` bytes behind its end are readable as well. Errors name the file:
// NotFound, PermissionDenied and the like; InvalidArgument for a folder or more than `max_bytes`.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, std::size_t max_bytes,
                                         std::size_t padding);

}  // namespace tranche::embedded
