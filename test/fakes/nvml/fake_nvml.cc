// NVML for tests: a library of the functions that probe and agent call, playing the machine in the
// file that the environment variable FAKE_NVML_NODE names (see test/fakes/gpu_node). Answers as the
// driver does also where there is nothing: gaps in MIG indices and profile numbers, links past the
// last.
//
// A GPU with "board": "h100-80", or with a board of the file that has profiles, can be cut. Its
// instances outlive the process: they are kept in instances.json beside the node's file.
// faults.json there says what goes wrong, by function:
// {"nvmlGpuInstanceDestroy": {"code": 19, "sleepMs": 50}}; "late": true does it and fails all the
// same.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "test/fakes/nvml/machine.h"

namespace tranche::fake_nvml {
namespace {

int users = 0;  // of nvmlInit

// A MIG device is a compute instance.
std::vector<Mig*> MigDevices(Card& card) {
  std::vector<Mig*> devices;
  for (Mig& mig : card.migs) {
    if (mig.compute_slices > 0) devices.push_back(&mig);
  }
  return devices;
}

void FillPci(const std::string& bus, abi::PciInfo& info) {
  info = {};
  // domain:bus:device.0 in hexadecimal; NVML itself writes the domain with eight digits.
  info.domain = static_cast<unsigned>(std::stoul(bus.substr(0, 4), nullptr, 16));
  info.bus = static_cast<unsigned>(std::stoul(bus.substr(5, 2), nullptr, 16));
  info.device = static_cast<unsigned>(std::stoul(bus.substr(8, 2), nullptr, 16));
  std::snprintf(info.legacy_bus_id, sizeof(info.legacy_bus_id), "%04X:%02X:%02X.0", info.domain,
                info.bus, info.device);
  std::snprintf(info.bus_id, sizeof(info.bus_id), "%08X:%02X:%02X.0", info.domain, info.bus,
                info.device);
}

unsigned LinksOf(const std::string& cell) {
  return cell.rfind("NV", 0) == 0 ? static_cast<unsigned>(std::stoul(cell.substr(2))) : 0;
}

// Where the link leads: the other GPU, or null for a switch; false past the last link.
bool Follow(const Card& card, unsigned link, const Card** remote) {
  unsigned most = 0;
  for (std::size_t other = 0; other < machine->cards.size(); ++other) {
    const unsigned links = LinksOf(card.row.at(other));
    most = std::max(most, links);
    *remote = &machine->cards[other];
    if (!machine->switched && link < links) return true;
    if (!machine->switched) link -= links;
  }
  *remote = nullptr;
  return machine->switched && link < most;
}

unsigned Level(const std::string& cell) {
  if (cell == "PIX") return abi::kAncestorSingle;
  if (cell == "PXB") return abi::kAncestorMultiple;
  if (cell == "PHB") return abi::kAncestorHostBridge;
  if (cell == "NODE") return abi::kAncestorNode;
  return abi::kAncestorSystem;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  const Lock lock(mutex);
  if (users == 0) {
    const char* const path = std::getenv("FAKE_NVML_NODE");
    machine = path == nullptr ? nullptr : ReadMachine(path);
  }
  if (machine == nullptr) return kDriverNotLoaded;
  ++users;
  return abi::kSuccess;
}

int nvmlShutdown() {
  const Lock lock(mutex);
  if (users == 0) return kUninitialized;
  if (--users == 0) machine.reset();
  return abi::kSuccess;
}

const char* nvmlErrorString(int code) {
  switch (code) {
    case abi::kNoPermission:
      return "Insufficient Permissions";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case kInsufficientResources:
      return "Insufficient Resources";
    default:
      return "Some Error";
  }
}

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  const Lock lock(mutex);
  return machine == nullptr ? kUninitialized : Copy(machine->driver, text, size);
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  const Lock lock(mutex);
  *count = static_cast<unsigned>(machine->cards.size());
  return abi::kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  const Lock lock(mutex);
  if (index >= machine->cards.size()) return abi::kInvalidArgument;
  *device = &machine->cards[index];
  return abi::kSuccess;
}

int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  const Lock lock(mutex);
  if (const Card* const card = CardOf(device)) return Copy(card->uuid, text, size);
  if (const Mig* const mig = MigOf(device)) return Copy(mig->uuid, text, size);
  return abi::kInvalidArgument;
}

int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  const Lock lock(mutex);
  const Card* const card = CardOf(device);
  return Copy(card->board != nullptr ? card->board->name : "NVIDIA Test GPU", text, size);
}

int nvmlDeviceGetPciInfo_v3(void* device, abi::PciInfo* info) {
  const Lock lock(mutex);
  const Card& card = *CardOf(device);
  FillPci(card.bus, *info);
  constexpr unsigned kVendor = 0x10de;
  if (card.board != nullptr) info->device_id = (card.board->device_id << 16U) | kVendor;
  return abi::kSuccess;
}

int nvmlDeviceGetMemoryInfo(void* device, abi::Memory* memory) {
  const Lock lock(mutex);
  if (const Mig* const mig = MigOf(device)) {
    const Profile* const profile = ProfileOf(*CardWith(device), mig->profile);
    if (profile == nullptr) return abi::kNotSupported;
    *memory = {profile->mib << 20U, profile->mib << 20U, 0};
    return abi::kSuccess;
  }
  const Card* const card = CardOf(device);
  if (card->mig_mode && !card->may_monitor_mig) return abi::kNoPermission;
  *memory = {card->memory_mib << 20U, card->memory_mib << 19U, card->memory_mib << 19U};
  return abi::kSuccess;
}

int nvmlDeviceGetMemoryInfo_v2(void* device, abi::MemoryWithReserved* memory) {
  const Lock lock(mutex);
  if (memory->version != abi::kMemoryWithReservedVersion) return abi::kInvalidArgument;
  constexpr unsigned long long kReserved = 480ULL << 20U;
  const unsigned long long total = CardOf(device)->memory_mib << 20U;
  *memory = {memory->version, total, kReserved, total - kReserved, 0};
  return abi::kSuccess;
}

int nvmlDeviceGetComputeMode(void* device, int* mode) {
  const Lock lock(mutex);
  *mode = CardOf(device)->compute_mode;
  return abi::kSuccess;
}

int nvmlDeviceSetComputeMode(void* device, int mode) {
  const Lock lock(mutex);
  if (CardOf(device)->fixed_mode) return abi::kNoPermission;
  CardOf(device)->compute_mode = mode;
  return abi::kSuccess;
}

int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  const Lock lock(mutex);
  const Card& card = *CardOf(device);
  if (card.board != nullptr && !card.cuttable) return abi::kNotSupported;
  *current = *pending = card.mig_mode ? 1 : 0;
  return abi::kSuccess;
}

int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = kMigPlaces;
  return abi::kSuccess;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** mig) {
  const Lock lock(mutex);
  Card* const card = CardOf(device);
  if (index >= kMigPlaces) return abi::kInvalidArgument;
  const std::vector<Mig*> devices = MigDevices(*card);
  // Where there is room for it every second place is empty, as after instances were destroyed.
  const unsigned stride = devices.size() * 2 <= kMigPlaces + 1 ? 2 : 1;
  if (index % stride != 0 || index / stride >= devices.size()) return abi::kNotFound;
  *mig = devices[index / stride];
  return abi::kSuccess;
}

int nvmlDeviceGetAttributes_v2(void* device, abi::MigAttributes* attributes) {
  const Lock lock(mutex);
  const Mig& mig = *MigOf(device);
  *attributes = {};
  attributes->gpu_slices = mig.gpu_slices;
  attributes->compute_slices = mig.compute_slices;
  if (const Profile* const profile = ProfileOf(*CardWith(device), mig.profile)) {
    attributes->memory_mib = profile->mib;
    attributes->multiprocessors = profile->multiprocessors;
    attributes->copy_engines = profile->slices;
    const unsigned media = profile->name.ends_with("+me") ? 1 : 0;
    attributes->jpeg_engines = attributes->optical_flow_engines = media;
  }
  return abi::kSuccess;
}

int nvmlDeviceGetTopologyCommonAncestor(void* one, void* other, unsigned* level) {
  const auto column = static_cast<std::size_t>(CardOf(other) - machine->cards.data());
  const Card& card = *CardOf(one);
  *level = Level(card.paths.empty() ? card.row.at(column) : card.paths.at(column));
  return abi::kSuccess;
}

int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* active) {
  const Card* remote = nullptr;
  if (!Follow(*CardOf(device), link, &remote)) return abi::kInvalidArgument;
  *active = 1;
  return abi::kSuccess;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, unsigned* kind) {
  const Card* remote = nullptr;
  if (!Follow(*CardOf(device), link, &remote)) return abi::kInvalidArgument;
  *kind = remote == nullptr ? abi::kRemoteSwitch : abi::kRemoteGpu;
  return abi::kSuccess;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, abi::PciInfo* info) {
  const Card* remote = nullptr;
  if (!Follow(*CardOf(device), link, &remote) || remote == nullptr) return abi::kNotSupported;
  FillPci(remote->bus, *info);
  return abi::kSuccess;
}

}  // extern "C"

}  // namespace tranche::fake_nvml
