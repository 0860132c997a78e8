// tranche reserve: what runs inside a placeholder (facts/placeholder.h). It says which GPU its
// container was given, or does nothing until a signal ends it.
#pragma once

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"

namespace tranche {

struct ReserveOptions {
  bool hold = false;  // wait for SIGTERM or SIGINT and end with 0
  // Where the answer goes: the kubelet shows it as the container's termination message.
  std::string message_file = "/dev/termination-log";
  std::string root;  // before every path that is looked at; for tests
};

// The one GPU of this container, as `visible` (NVIDIA_VISIBLE_DEVICES) says it, or the mounted list
// of devices, or the device node that is there. Errors: FailedPrecondition with what was found.
absl::StatusOr<std::string> OwnGpu(const char* visible, const std::string& root);

// Returns the exit code: 0 done; 1 with one line on `err` when the GPU cannot be told or written.
int RunReserve(const ReserveOptions& options, std::ostream& err);

}  // namespace tranche
