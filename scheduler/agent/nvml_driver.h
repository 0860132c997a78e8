// MigDriver by NVML, opened for each call and closed after it, as for looks.
//
// Thread rule: one thread. A call takes as long as the driver does.
#pragma once

#include <string>
#include <vector>

#include "scheduler/turns/mig_driver.h"

namespace tranche::agent {

class NvmlDriver final : public MigDriver {
 public:
  explicit NvmlDriver(std::string library) : library_(std::move(library)) {}

  absl::StatusOr<std::vector<Instance>> List(const GpuUuid& gpu) override;
  absl::Status Make(const GpuUuid& gpu, const MigDevice& place) override;
  absl::Status Remove(const GpuUuid& gpu, unsigned id) override;

 private:
  const std::string library_;
};

}  // namespace tranche::agent
