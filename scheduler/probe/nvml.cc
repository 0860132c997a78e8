#include "scheduler/probe/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "scheduler/probe/nvml_abi.h"
#include "scheduler/probe/nvml_library.h"
#include "topology/base/status.h"

namespace tranche::probe {
namespace {

constexpr unsigned kUuidBytes = 96;
constexpr unsigned kVersionBytes = 80;
// Above what any driver knows; NVML says itself where profiles and links end.
constexpr unsigned kMostLinks = 64;
constexpr unsigned kMostMigDevices = 64;
constexpr int kMostDevices = 64;

std::string SpellBus(const abi::PciInfo& info) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", info.domain, info.bus, info.device);
}

template <std::size_t N>
std::string Text(const std::array<char, N>& buffer) {
  return std::string(buffer.begin(), std::find(buffer.begin(), buffer.end(), '\0'));
}

}  // namespace

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}

Nvml::~Nvml() {
  if (events_ != nullptr) library_->Call<void*>("nvmlEventSetFree", events_).IgnoreError();
  library_->Call("nvmlShutdown").IgnoreError();
}

absl::StatusOr<std::unique_ptr<Nvml>> Nvml::Open(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return absl::NotFoundError(fmt::format("expected the NVML library {}, found {}", library,
                                           why == nullptr ? "none" : why));
  }
  auto loaded = std::make_unique<Library>(handle, library);
  TRANCHE_RETURN_IF_ERROR(loaded->Call("nvmlInit_v2"));
  return std::unique_ptr<Nvml>(new Nvml(std::move(loaded)));
}

absl::StatusOr<std::string> Nvml::DriverVersion() {
  std::array<char, kVersionBytes> text{};
  TRANCHE_RETURN_IF_ERROR(
      library_->Call<char*, unsigned>("nvmlSystemGetDriverVersion", text.data(), kVersionBytes));
  return Text(text);
}

absl::StatusOr<int> Nvml::DeviceCount() {
  unsigned count = 0;
  TRANCHE_RETURN_IF_ERROR(library_->Call<unsigned*>("nvmlDeviceGetCount_v2", &count));
  if (count > kMostDevices) {
    return absl::UnavailableError(fmt::format(
        "nvmlDeviceGetCount_v2: expected at most {} GPUs, found {}", kMostDevices, count));
  }
  return static_cast<int>(count);
}

absl::StatusOr<Nvml::Device> Nvml::DeviceAt(int index) {
  Device device = nullptr;
  TRANCHE_RETURN_IF_ERROR(library_->Call<unsigned, Device*>("nvmlDeviceGetHandleByIndex_v2",
                                                            static_cast<unsigned>(index), &device));
  return device;
}

absl::StatusOr<std::string> Nvml::Uuid(Device device) {
  std::array<char, kUuidBytes> text{};
  TRANCHE_RETURN_IF_ERROR(library_->Call<Device, char*, unsigned>("nvmlDeviceGetUUID", device,
                                                                  text.data(), kUuidBytes));
  return Text(text);
}

absl::StatusOr<std::string> Nvml::ProductName(Device gpu) {
  std::array<char, kUuidBytes> text{};
  TRANCHE_RETURN_IF_ERROR(
      library_->Call<Device, char*, unsigned>("nvmlDeviceGetName", gpu, text.data(), kUuidBytes));
  return Text(text);
}

absl::StatusOr<std::string> Nvml::PciBus(Device gpu) {
  abi::PciInfo info{};
  TRANCHE_RETURN_IF_ERROR(
      library_->Call<Device, abi::PciInfo*>("nvmlDeviceGetPciInfo_v3", gpu, &info));
  return SpellBus(info);
}

absl::StatusOr<int64_t> Nvml::MemoryMib(Device gpu) {
  abi::Memory memory{};
  TRANCHE_RETURN_IF_ERROR(
      library_->Call<Device, abi::Memory*>("nvmlDeviceGetMemoryInfo", gpu, &memory));
  return static_cast<int64_t>(memory.total >> 20U);
}

absl::StatusOr<int64_t> Nvml::UsableMib(Device gpu) {
  abi::MemoryWithReserved memory{};
  memory.version = abi::kMemoryWithReservedVersion;
  const absl::Status status =
      library_->Call<Device, abi::MemoryWithReserved*>("nvmlDeviceGetMemoryInfo_v2", gpu, &memory);
  if (absl::IsFailedPrecondition(status)) return MemoryMib(gpu);
  if (!status.ok()) return status;
  return static_cast<int64_t>((memory.total - memory.reserved) >> 20U);
}

absl::Status Nvml::MakeExclusive(Device gpu) {
  int mode = 0;
  TRANCHE_RETURN_IF_ERROR(library_->Call<Device, int*>("nvmlDeviceGetComputeMode", gpu, &mode));
  if (mode == abi::kExclusiveProcess) return absl::OkStatus();
  return library_->Call<Device, int>("nvmlDeviceSetComputeMode", gpu, abi::kExclusiveProcess);
}

absl::StatusOr<bool> Nvml::MigIsOn(Device gpu) {
  unsigned current = 0;
  unsigned pending = 0;
  const absl::Status status =
      library_->Call<Device, unsigned*, unsigned*>("nvmlDeviceGetMigMode", gpu, &current, &pending);
  if (absl::IsUnimplemented(status)) return false;
  if (!status.ok()) return status;
  return current == 1;
}

absl::StatusOr<std::vector<MigInstance>> Nvml::MigInstances(Device gpu) {
  unsigned places = 0;
  TRANCHE_RETURN_IF_ERROR(
      library_->Call<Device, unsigned*>("nvmlDeviceGetMaxMigDeviceCount", gpu, &places));
  std::vector<MigInstance> found;
  for (unsigned place = 0; place < std::min(places, kMostMigDevices); ++place) {
    Device mig = nullptr;
    const absl::Status status = library_->Call<Device, unsigned, Device*>(
        "nvmlDeviceGetMigDeviceHandleByIndex", gpu, place, &mig);
    if (absl::IsOutOfRange(status)) continue;  // no instance at this index
    if (!status.ok()) return status;
    TRANCHE_ASSIGN_OR_RETURN(MigInstance instance, ReadMigInstance(gpu, mig));
    found.push_back(std::move(instance));
  }
  std::sort(found.begin(), found.end());
  return found;
}

absl::StatusOr<MigInstance> Nvml::ReadMigInstance(Device gpu, Device mig) {
  TRANCHE_ASSIGN_OR_RETURN(std::string uuid, Uuid(mig));
  unsigned id = 0;
  TRANCHE_RETURN_IF_ERROR(
      library_->Call<Device, unsigned*>("nvmlDeviceGetGpuInstanceId", mig, &id));
  void* instance = nullptr;
  TRANCHE_RETURN_IF_ERROR(
      library_->Call<Device, unsigned, void**>("nvmlDeviceGetGpuInstanceById", gpu, id, &instance));
  abi::GpuInstanceInfo info{};
  TRANCHE_RETURN_IF_ERROR(
      library_->Call<void*, abi::GpuInstanceInfo*>("nvmlGpuInstanceGetInfo", instance, &info));
  TRANCHE_ASSIGN_OR_RETURN(std::string profile, ProfileName(gpu, info.profile_id));
  abi::MigAttributes attributes{};
  TRANCHE_RETURN_IF_ERROR(
      library_->Call<Device, abi::MigAttributes*>("nvmlDeviceGetAttributes_v2", mig, &attributes));
  if (attributes.compute_slices < attributes.gpu_slices) {
    profile = fmt::format("{}c.{}", attributes.compute_slices, profile);
  }
  return MigInstance{static_cast<int>(info.start), static_cast<int>(info.size), std::move(profile),
                     std::move(uuid)};
}

absl::StatusOr<std::string> Nvml::ProfileName(Device gpu, unsigned profile_id) {
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<MigProfile> profiles, MigProfiles(gpu));
  for (const MigProfile& profile : profiles) {
    if (profile.id == profile_id) return profile.name;
  }
  return absl::OutOfRangeError(
      fmt::format("expected a MIG profile with the driver's id {}, found none", profile_id));
}

absl::StatusOr<Ancestor> Nvml::CommonAncestor(Device one, Device other) {
  unsigned level = 0;
  TRANCHE_RETURN_IF_ERROR(library_->Call<Device, Device, unsigned*>(
      "nvmlDeviceGetTopologyCommonAncestor", one, other, &level));
  switch (level) {
    case abi::kAncestorInternal:
      return Ancestor::kBoard;
    case abi::kAncestorSingle:
      return Ancestor::kSwitch;
    case abi::kAncestorMultiple:
      return Ancestor::kSwitches;
    case abi::kAncestorHostBridge:
      return Ancestor::kHostBridge;
    case abi::kAncestorNode:
      return Ancestor::kNumaNode;
    case abi::kAncestorSystem:
      return Ancestor::kSystem;
    default:
      return absl::UnavailableError(fmt::format(
          "nvmlDeviceGetTopologyCommonAncestor: expected 0, 10, .. 50, found {}", level));
  }
}

absl::StatusOr<NvLinks> Nvml::ActiveLinks(Device gpu) {
  NvLinks links;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned active = 0;
    absl::Status status =
        library_->Call<Device, unsigned, unsigned*>("nvmlDeviceGetNvLinkState", gpu, link, &active);
    if (absl::IsInvalidArgument(status)) break;
    // A gap, or hardware without NVLink: some drivers say so for each link.
    if (absl::IsUnimplemented(status)) continue;
    if (!status.ok()) return status;
    if (active != 1) continue;
    unsigned kind = 0;
    status = library_->Call<Device, unsigned, unsigned*>("nvmlDeviceGetNvLinkRemoteDeviceType", gpu,
                                                         link, &kind);
    if (!status.ok()) return status;
    if (kind == abi::kRemoteSwitch) ++links.to_switches;
    if (kind != abi::kRemoteGpu) continue;
    abi::PciInfo remote{};
    status = library_->Call<Device, unsigned, abi::PciInfo*>("nvmlDeviceGetNvLinkRemotePciInfo_v2",
                                                             gpu, link, &remote);
    if (!status.ok()) return status;
    links.to_gpus.push_back(SpellBus(remote));
  }
  return links;
}

}  // namespace tranche::probe
