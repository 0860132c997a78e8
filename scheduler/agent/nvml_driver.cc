#include "scheduler/agent/nvml_driver.h"

#include <fmt/format.h>

#include <memory>

#include "scheduler/probe/nvml.h"
#include "topology/base/status.h"

namespace tranche::agent {
namespace {

absl::StatusOr<probe::Nvml::Device> GpuOf(probe::Nvml& nvml, const GpuUuid& gpu) {
  TRANCHE_ASSIGN_OR_RETURN(const int count, nvml.DeviceCount());
  for (int index = 0; index < count; ++index) {
    const auto device = nvml.DeviceAt(index);
    if (!device.ok()) continue;
    const auto uuid = nvml.Uuid(*device);
    if (uuid.ok() && *uuid == gpu.str()) return *device;
  }
  return absl::UnavailableError(
      fmt::format("expected the driver to know GPU {}, found that it does not", gpu.str()));
}

}  // namespace

absl::StatusOr<std::vector<Instance>> NvmlDriver::List(const GpuUuid& gpu) {
  TRANCHE_ASSIGN_OR_RETURN(const auto nvml, probe::Nvml::Open(library_));
  TRANCHE_ASSIGN_OR_RETURN(const auto device, GpuOf(*nvml, gpu));
  TRANCHE_ASSIGN_OR_RETURN(const auto found, nvml->GpuInstances(device));
  std::vector<Instance> instances;
  for (const probe::GpuInstance& one : found) {
    instances.push_back({one.id, {one.profile, one.start, one.size}, one.uuid});
  }
  return instances;
}

absl::Status NvmlDriver::Make(const GpuUuid& gpu, const MigDevice& place) {
  TRANCHE_ASSIGN_OR_RETURN(const auto nvml, probe::Nvml::Open(library_));
  TRANCHE_ASSIGN_OR_RETURN(const auto device, GpuOf(*nvml, gpu));
  TRANCHE_ASSIGN_OR_RETURN(const auto profiles, nvml->MigProfiles(device));
  for (const probe::MigProfile& profile : profiles) {
    if (profile.name != place.profile) continue;
    return nvml->MakeInstance(device, profile, place.start, place.size);
  }
  return absl::OutOfRangeError(
      fmt::format("expected the driver to know profile {}, found that it does not", place.profile));
}

absl::Status NvmlDriver::Remove(const GpuUuid& gpu, unsigned id) {
  TRANCHE_ASSIGN_OR_RETURN(const auto nvml, probe::Nvml::Open(library_));
  TRANCHE_ASSIGN_OR_RETURN(const auto device, GpuOf(*nvml, gpu));
  return nvml->DestroyInstance(device, id);
}

}  // namespace tranche::agent
