// MIG instances: what there is, what there can be, making and destroying them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "scheduler/probe/nvml_abi.h"
#include "scheduler/probe/nvml_library.h"
#include "topology/base/status.h"

namespace tranche::probe {
namespace {

// Above what any driver knows; NVML says itself where profiles end.
constexpr unsigned kMostProfiles = 64;
constexpr unsigned kMostComputeProfiles = 16;
// Above what any board has of one profile.
constexpr std::size_t kMostOfAProfile = 64;

// What the driver wrote into an array, as far as it says that it did.
template <typename Value>
std::vector<Value> Written(const std::array<Value, kMostOfAProfile>& values, unsigned count) {
  const auto most = std::min<std::size_t>(count, kMostOfAProfile);
  return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(most)};
}

}  // namespace

absl::StatusOr<std::vector<MigProfile>> Nvml::MigProfiles(Device gpu) {
  std::vector<MigProfile> profiles;
  // NVML finds profiles by its own numbering alone, which has gaps.
  for (unsigned number = 0; number < kMostProfiles; ++number) {
    abi::GpuInstanceProfile info{};
    info.version = abi::kGpuInstanceProfileVersion;
    const absl::Status status = library_->Call<Device, unsigned, abi::GpuInstanceProfile*>(
        "nvmlDeviceGetGpuInstanceProfileInfoV", gpu, number, &info);
    if (absl::IsUnimplemented(status)) continue;
    if (absl::IsInvalidArgument(status)) break;
    if (!status.ok()) return status;
    std::string name(info.name, std::find(std::begin(info.name), std::end(info.name), 0));
    constexpr std::string_view kPrefix = "MIG ";
    if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
    profiles.push_back({std::move(name), info.id, static_cast<int>(info.slices),
                        static_cast<int64_t>(info.memory_mib)});
  }
  return profiles;
}

absl::StatusOr<Nvml::Places> Nvml::PlacesOf(Device gpu, const MigProfile& profile) {
  std::array<abi::GpuInstancePlacement, kMostOfAProfile> found{};
  unsigned count = 0;
  TRANCHE_RETURN_IF_ERROR((library_->Call<Device, unsigned, abi::GpuInstancePlacement*, unsigned*>(
      "nvmlDeviceGetGpuInstancePossiblePlacements_v2", gpu, profile.id, found.data(), &count)));
  Places places;
  for (const abi::GpuInstancePlacement& place : Written(found, count)) {
    places.size = static_cast<int>(place.size);
    places.starts.push_back(static_cast<int>(place.start));
  }
  std::ranges::sort(places.starts);
  return places;
}

absl::StatusOr<std::vector<GpuInstance>> Nvml::GpuInstances(Device gpu) {
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<MigProfile> profiles, MigProfiles(gpu));
  std::vector<GpuInstance> instances;
  for (const MigProfile& profile : profiles) {
    std::array<void*, kMostOfAProfile> handles{};
    unsigned count = 0;
    TRANCHE_RETURN_IF_ERROR((library_->Call<Device, unsigned, void**, unsigned*>(
        "nvmlDeviceGetGpuInstances", gpu, profile.id, handles.data(), &count)));
    for (void* const handle : Written(handles, count)) {
      abi::GpuInstanceInfo info{};
      TRANCHE_RETURN_IF_ERROR(
          library_->Call<void*, abi::GpuInstanceInfo*>("nvmlGpuInstanceGetInfo", handle, &info));
      instances.push_back(
          {info.id, profile.name, static_cast<int>(info.start), static_cast<int>(info.size), ""});
    }
  }
  TRANCHE_RETURN_IF_ERROR(AddUuids(gpu, instances));
  std::ranges::sort(instances, {}, &GpuInstance::start);
  return instances;
}

absl::Status Nvml::AddUuids(Device gpu, std::vector<GpuInstance>& instances) {
  // A compute instance that is a part is told with the count of its slices in front.
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<MigInstance> devices, MigInstances(gpu));
  for (GpuInstance& instance : instances) {
    const auto device = std::ranges::find_if(devices, [&](const MigInstance& one) {
      return one.start == instance.start && one.profile == instance.profile;
    });
    if (device != devices.end()) instance.uuid = device->uuid;
  }
  return absl::OkStatus();
}

absl::Status Nvml::MakeInstance(Device gpu, const MigProfile& profile, int start, int size) {
  const abi::GpuInstancePlacement place{static_cast<unsigned>(start), static_cast<unsigned>(size)};
  void* instance = nullptr;
  TRANCHE_RETURN_IF_ERROR(
      (library_->Call<Device, unsigned, const abi::GpuInstancePlacement*, void**>(
          "nvmlDeviceCreateGpuInstanceWithPlacement", gpu, profile.id, &place, &instance)));
  return MakeComputeInstance(instance, profile.slices);
}

absl::Status Nvml::MakeComputeInstance(void* instance, int slices) {
  for (unsigned number = 0; number < kMostComputeProfiles; ++number) {
    abi::ComputeInstanceProfile info{};
    const absl::Status status =
        library_->Call<void*, unsigned, unsigned, abi::ComputeInstanceProfile*>(
            "nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, number, abi::kSharedEngines,
            &info);
    if (absl::IsUnimplemented(status)) continue;
    if (absl::IsInvalidArgument(status)) break;
    if (!status.ok()) return status;
    if (static_cast<int>(info.slices) != slices) continue;
    void* compute = nullptr;
    return library_->Call<void*, unsigned, void**>("nvmlGpuInstanceCreateComputeInstance", instance,
                                                   info.id, &compute);
  }
  return absl::OutOfRangeError(
      fmt::format("expected a compute instance profile of {} slices, found none", slices));
}

absl::Status Nvml::DestroyInstance(Device gpu, unsigned id) {
  void* instance = nullptr;
  TRANCHE_RETURN_IF_ERROR(
      library_->Call<Device, unsigned, void**>("nvmlDeviceGetGpuInstanceById", gpu, id, &instance));
  for (unsigned number = 0; number < kMostComputeProfiles; ++number) {
    abi::ComputeInstanceProfile info{};
    const absl::Status status =
        library_->Call<void*, unsigned, unsigned, abi::ComputeInstanceProfile*>(
            "nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, number, abi::kSharedEngines,
            &info);
    if (absl::IsUnimplemented(status)) continue;
    if (absl::IsInvalidArgument(status)) break;
    if (!status.ok()) return status;
    std::array<void*, kMostOfAProfile> handles{};
    unsigned count = 0;
    TRANCHE_RETURN_IF_ERROR((library_->Call<void*, unsigned, void**, unsigned*>(
        "nvmlGpuInstanceGetComputeInstances", instance, info.id, handles.data(), &count)));
    for (void* const handle : Written(handles, count)) {
      TRANCHE_RETURN_IF_ERROR(library_->Call<void*>("nvmlComputeInstanceDestroy", handle));
    }
  }
  return library_->Call<void*>("nvmlGpuInstanceDestroy", instance);
}

}  // namespace tranche::probe
