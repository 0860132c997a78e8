// Contract towards the driver about MIG instances; no code.
//
// Errors are sentences for people. A call takes as long as the driver does.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/facts/allocation.h"
#include "topology/base/ids.h"

namespace tranche::agent {

struct Instance {
  unsigned id = 0;  // the driver's
  MigDevice place;
  std::string uuid;  // empty: no container can use it, since its compute instance is missing
  friend bool operator==(const Instance&, const Instance&) = default;
};

class MigDriver {
 public:
  virtual ~MigDriver() = default;
  virtual absl::StatusOr<std::vector<Instance>> List(const GpuUuid& gpu) = 0;
  // After an error an instance may be there, whole or half done.
  virtual absl::Status Make(const GpuUuid& gpu, const MigDevice& place) = 0;
  // Error also where somebody uses it.
  virtual absl::Status Remove(const GpuUuid& gpu, unsigned id) = 0;
};

}  // namespace tranche::agent
