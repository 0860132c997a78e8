// What NVIDIA's own programs ask the fake NVML beyond what probe and agent ask: the device plugin,
// GPU feature discovery and mig-parted. See fake_nvml.cc.
#include <algorithm>
#include <cstring>
#include <string>

#include "test/fakes/nvml/machine.h"

namespace tranche::fake_nvml {
namespace {

// nvmlDeviceGetGpuInstanceProfileInfo, the first version.
struct GpuInstanceProfileV1 {
  unsigned id;
  unsigned peer_to_peer;
  unsigned slices;
  unsigned instances;
  unsigned multiprocessors;
  unsigned copy_engines, decoders, encoders, jpeg_engines, optical_flow_engines;
  unsigned long long memory_mib;
};
static_assert(sizeof(GpuInstanceProfileV1) == 48);

// nvmlComputeInstanceGetInfo_v2.
struct ComputeInstanceInfo {
  void* device;
  void* gpu_instance;
  unsigned id;
  unsigned profile_id;
  unsigned start, size;  // compute slices of the GPU instance
};
static_assert(sizeof(ComputeInstanceInfo) == 32);

// NVML's number of the compute instance profile of so many slices.
unsigned ComputeProfile(unsigned slices) {
  constexpr unsigned kSeven = 4;
  return slices == 7 ? kSeven : slices - 1;
}

// "0000:3b:00.0" and NVML's "00000000:3B:00.0" are one bus.
std::string ShortBus(std::string bus) {
  std::ranges::transform(bus, bus.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::size_t colon = bus.find(':');
  constexpr std::size_t kDomain = 4;
  return colon > kDomain && colon != std::string::npos ? bus.substr(colon - kDomain) : bus;
}

}  // namespace

extern "C" {

int nvmlSystemGetNVMLVersion(char* text, unsigned size) {
  const Lock lock(mutex);
  return machine == nullptr ? kUninitialized : Copy("12." + machine->driver, text, size);
}

int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = 12040;
  return abi::kSuccess;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  const Lock lock(mutex);
  for (Card& card : machine->cards) {
    if (card.uuid == uuid) *device = &card;
    if (card.uuid == uuid) return abi::kSuccess;
    for (Mig& mig : card.migs) {
      if (mig.uuid == uuid) *device = &mig;
      if (mig.uuid == uuid) return abi::kSuccess;
    }
  }
  return abi::kNotFound;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  const Lock lock(mutex);
  for (Card& card : machine->cards) {
    if (ShortBus(card.bus) != ShortBus(bus)) continue;
    *device = &card;
    return abi::kSuccess;
  }
  return abi::kNotFound;
}

int nvmlDeviceGetMinorNumber(void* device, unsigned* minor) {
  const Lock lock(mutex);
  *minor = static_cast<unsigned>(CardOf(device) - machine->cards.data());
  return abi::kSuccess;
}

int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  const Lock lock(mutex);
  const Board* const board = CardOf(device)->board;
  if (board == nullptr) return abi::kNotSupported;
  *major = board->compute_major;
  *minor = board->compute_minor;
  return abi::kSuccess;
}

int nvmlDeviceIsMigDeviceHandle(void* device, unsigned* is_mig) {
  const Lock lock(mutex);
  *is_mig = MigOf(device) != nullptr ? 1 : 0;
  return abi::kSuccess;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* mig, void** device) {
  const Lock lock(mutex);
  if (MigOf(mig) == nullptr) return abi::kInvalidArgument;
  *device = CardWith(mig);
  return abi::kSuccess;
}

int nvmlDeviceGetComputeInstanceId(void* mig, unsigned* id) {
  const Lock lock(mutex);
  if (MigOf(mig) == nullptr) return abi::kInvalidArgument;
  *id = ComputeIdOf(*MigOf(mig));
  return abi::kSuccess;
}

int nvmlGpuInstanceGetComputeInstanceById(void* instance, unsigned id, void** compute) {
  const Lock lock(mutex);
  for (Mig& mig : CardWith(instance)->migs) {
    if (mig.gpu_instance != MigOf(instance)->gpu_instance || ComputeIdOf(mig) != id) continue;
    *compute = &mig;
    return abi::kSuccess;
  }
  return abi::kNotFound;
}

int nvmlComputeInstanceGetInfo_v2(void* compute, ComputeInstanceInfo* info) {
  const Lock lock(mutex);
  const Mig& mig = *MigOf(compute);
  *info = {CardWith(compute), compute, ComputeIdOf(mig), ComputeProfile(mig.compute_slices), 0,
           mig.compute_slices};
  return abi::kSuccess;
}

int nvmlDeviceGetGpuInstanceProfileInfo(void* device, unsigned number, GpuInstanceProfileV1* info) {
  const Lock lock(mutex);
  const Card& card = *CardOf(device);
  if (number >= kProfileNumbers) return abi::kInvalidArgument;
  if (!card.cuttable) return abi::kNotSupported;
  const auto& all = card.board->profiles;
  const auto profile = std::ranges::find(all, number, &Profile::number);
  if (profile == all.end()) return abi::kNotSupported;
  *info = {};
  info->id = profile->id;
  info->slices = profile->slices;
  info->instances = profile->most;
  info->multiprocessors = profile->multiprocessors;
  info->memory_mib = profile->mib;
  return abi::kSuccess;
}

int nvmlDeviceSetMigMode(void* device, unsigned mode, int* activation) {
  const Lock lock(mutex);
  Card& card = *CardOf(device);
  if (!card.cuttable) return abi::kNotSupported;
  card.mig_mode = mode == 1;
  if (!card.mig_mode) card.migs.clear();
  SaveInstances();
  *activation = abi::kSuccess;
  return abi::kSuccess;
}

// Which of the free places a driver takes is documented nowhere, so that a machine has either way.
int nvmlDeviceCreateGpuInstance(void* device, unsigned id, void** instance) {
  const Lock lock(mutex);
  Card& card = *CardOf(device);
  if (!card.cuttable || !card.mig_mode) return abi::kInvalidArgument;
  const auto& all = card.board->profiles;
  const auto profile = std::ranges::find(all, id, &Profile::id);
  if (profile == all.end()) return abi::kInvalidArgument;
  std::vector<unsigned> starts = profile->starts;
  if (machine->starts_from_above) std::ranges::reverse(starts);
  const auto free =
      std::ranges::find_if(starts, [&](unsigned start) { return IsFree(card, *profile, start); });
  if (free == starts.end()) return kInsufficientResources;
  *instance = MakeInstance(card, *profile, *free);
  return abi::kSuccess;
}

}  // extern "C"

}  // namespace tranche::fake_nvml
