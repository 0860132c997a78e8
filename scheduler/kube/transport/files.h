// Reads the small files credentials live in.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tranche::kube {

// The whole file. Errors: FailedPrecondition naming the path and the system's words, also for a
// file over 1 MiB: no token, key or CA bundle is that large.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

// `text` without white space at both ends.
std::string Trimmed(const std::string& text);

}  // namespace tranche::kube
