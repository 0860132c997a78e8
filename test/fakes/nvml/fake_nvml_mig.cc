// The fake NVML's MIG instances, and what its GPUs tell of their health. See fake_nvml.cc.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "test/fakes/nvml/machine.h"

namespace tranche::fake_nvml {
namespace {

// Compute instance profiles: NVML's numbers for 1, 2, 3, 4 and 7 slices; 5 and 6 are gaps.
constexpr unsigned kComputeProfiles = 8;
unsigned ComputeSlices(unsigned number) {
  constexpr unsigned kSlices[] = {1, 2, 3, 4, 7};
  return number < std::size(kSlices) ? kSlices[number] : 0;
}

// Events of the GPUs that were registered, from events.json beside the node's file: each has uuid,
// type and data, and is told once.
struct EventSet {
  std::set<std::string> uuids;
  std::size_t read = 0;
};
constexpr unsigned kEventPause = 10;  // ms

bool NextEvent(EventSet& set, abi::EventData& data) {
  const Lock lock(mutex);
  std::ifstream file(machine->folder / "events.json");
  const nlohmann::json events = nlohmann::json::parse(file, nullptr, false);
  while (events.is_array() && set.read < events.size()) {
    const nlohmann::json& event = events[set.read++];
    for (Card& card : machine->cards) {
      if (card.uuid != event.at("uuid") || !set.uuids.contains(card.uuid)) continue;
      data = {&card, event.at("type"), event.value("data", 0ULL), 0, 0};
      return true;
    }
  }
  return false;
}

}  // namespace

extern "C" {

int nvmlDeviceGetGpuInstanceId(void* mig, unsigned* id) {
  const Lock lock(mutex);
  *id = MigOf(mig)->gpu_instance;
  return abi::kSuccess;
}

int nvmlDeviceGetGpuInstanceById(void* device, unsigned id, void** instance) {
  const Lock lock(mutex);
  for (Mig& mig : CardOf(device)->migs) {
    if (mig.gpu_instance != id) continue;
    *instance = &mig;
    return abi::kSuccess;
  }
  return abi::kNotFound;
}

int nvmlGpuInstanceGetInfo(void* instance, abi::GpuInstanceInfo* info) {
  const Lock lock(mutex);
  const Mig& mig = *MigOf(instance);
  if (CardWith(instance)->cuttable) {
    const Card& card = *CardWith(instance);
    *info = {CardWith(instance), mig.gpu_instance, ProfileOf(card, mig.profile)->id, mig.start,
             mig.size};
    return abi::kSuccess;
  }
  const auto& profiles = machine->profiles;
  const auto at = std::find(profiles.begin(), profiles.end(), mig.profile) - profiles.begin();
  *info = {nullptr, mig.gpu_instance, kFirstProfileId + static_cast<unsigned>(at), mig.start,
           mig.size};
  return abi::kSuccess;
}

int nvmlDeviceGetGpuInstanceProfileInfoV(void* device, unsigned number,
                                         abi::GpuInstanceProfile* info) {
  const Lock lock(mutex);
  if (info->version != abi::kGpuInstanceProfileVersion) return abi::kInvalidArgument;
  if (CardOf(device)->cuttable) {
    if (number >= kProfileNumbers) return abi::kInvalidArgument;
    const auto& all = CardOf(device)->board->profiles;
    const auto profile = std::ranges::find(all, number, &Profile::number);
    if (profile == all.end()) return abi::kNotSupported;
    info->id = profile->id;
    info->slices = profile->slices;
    info->memory_mib = profile->mib;
    return Copy("MIG " + profile->name, info->name, sizeof(info->name));
  }
  if (number >= machine->profiles.size()) return abi::kInvalidArgument;
  if (machine->profiles[number].empty()) return abi::kNotSupported;
  info->id = kFirstProfileId + number;
  return Copy("MIG " + machine->profiles[number], info->name, sizeof(info->name));
}

int nvmlDeviceGetGpuInstancePossiblePlacements_v2(void* device, unsigned id,
                                                  abi::GpuInstancePlacement* places,
                                                  unsigned* count) {
  const Lock lock(mutex);
  if (!CardOf(device)->cuttable) return abi::kNotSupported;
  const auto& all = CardOf(device)->board->profiles;
  const auto profile = std::ranges::find(all, id, &Profile::id);
  if (profile == all.end()) return abi::kInvalidArgument;
  *count = 0;
  for (const unsigned start : profile->starts) places[(*count)++] = {start, profile->size};
  return abi::kSuccess;
}

int nvmlDeviceGetGpuInstances(void* device, unsigned id, void** instances, unsigned* count) {
  if (const Fault fault = FaultOf("nvmlDeviceGetGpuInstances"); fault.code != abi::kSuccess) {
    return fault.code;
  }
  const Lock lock(mutex);
  *count = 0;
  for (Mig& mig : CardOf(device)->migs) {
    const Profile* const profile = ProfileOf(*CardOf(device), mig.profile);
    if (profile != nullptr && profile->id == id) instances[(*count)++] = &mig;
  }
  return abi::kSuccess;
}

int nvmlDeviceCreateGpuInstanceWithPlacement(void* device, unsigned id,
                                             const abi::GpuInstancePlacement* place,
                                             void** instance) {
  const Fault fault = FaultOf("nvmlDeviceCreateGpuInstanceWithPlacement");
  if (fault.code != abi::kSuccess && !fault.late) return fault.code;
  const Lock lock(mutex);
  Card* const card = CardOf(device);
  if (!card->cuttable) return abi::kInvalidArgument;
  const auto& all = card->board->profiles;
  const auto profile = std::ranges::find(all, id, &Profile::id);
  const bool legal = profile != all.end() && profile->size == place->size &&
                     std::ranges::count(profile->starts, place->start) > 0;
  if (!card->mig_mode || !legal) return abi::kInvalidArgument;
  if (!IsFree(*card, *profile, place->start)) return kInsufficientResources;
  *instance = MakeInstance(*card, *profile, place->start);
  return fault.code;
}

int nvmlGpuInstanceDestroy(void* instance) {
  if (const Fault fault = FaultOf("nvmlGpuInstanceDestroy"); fault.code != abi::kSuccess) {
    return fault.code;
  }
  const Lock lock(mutex);
  Card* const card = CardWith(instance);
  if (card == nullptr || MigOf(instance)->compute_slices > 0) return abi::kInvalidArgument;
  card->migs.remove_if([instance](const Mig& mig) { return &mig == instance; });
  SaveInstances();
  return abi::kSuccess;
}

int nvmlGpuInstanceGetComputeInstanceProfileInfo(void* instance, unsigned number, unsigned engines,
                                                 abi::ComputeInstanceProfile* info) {
  const Lock lock(mutex);
  if (number >= kComputeProfiles || engines != abi::kSharedEngines) return abi::kInvalidArgument;
  const unsigned slices = ComputeSlices(number);
  if (slices == 0 || slices > MigOf(instance)->gpu_slices) return abi::kNotSupported;
  *info = {};
  info->id = number;
  info->slices = slices;
  info->instances = MigOf(instance)->gpu_slices / slices;
  return abi::kSuccess;
}

int nvmlGpuInstanceCreateComputeInstance(void* instance, unsigned id, void** compute) {
  const Fault fault = FaultOf("nvmlGpuInstanceCreateComputeInstance");
  if (fault.code != abi::kSuccess) return fault.code;
  const Lock lock(mutex);
  Mig* const mig = MigOf(instance);
  if (mig->compute_slices + ComputeSlices(id) > mig->gpu_slices) return kInsufficientResources;
  mig->compute_slices = ComputeSlices(id);
  *compute = instance;
  SaveInstances();
  return abi::kSuccess;
}

int nvmlGpuInstanceGetComputeInstances(void* instance, unsigned id, void** computes,
                                       unsigned* count) {
  const Lock lock(mutex);
  *count = 0;
  const unsigned slices = MigOf(instance)->compute_slices;
  if (slices > 0 && slices == ComputeSlices(id)) computes[(*count)++] = instance;
  return abi::kSuccess;
}

int nvmlComputeInstanceDestroy(void* compute) {
  if (const Fault fault = FaultOf("nvmlComputeInstanceDestroy"); fault.code != abi::kSuccess) {
    return fault.code;
  }
  const Lock lock(mutex);
  MigOf(compute)->compute_slices = 0;
  SaveInstances();
  return abi::kSuccess;
}

int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  const Lock lock(mutex);
  const Card* const card = CardOf(device);
  *corrected = *uncorrected = 0;
  *pending = card->rows == "pending" ? 1 : 0;
  *failed = card->rows == "failed" ? 1 : 0;
  return abi::kSuccess;
}

int nvmlEventSetCreate(void** set) {
  *set = new EventSet;
  return abi::kSuccess;
}

int nvmlEventSetFree(void* set) {
  delete static_cast<EventSet*>(set);
  return abi::kSuccess;
}

int nvmlDeviceGetSupportedEventTypes(void*, unsigned long long* types) {
  *types = abi::kXidCriticalError | abi::kDoubleBitEccError | 1;
  return abi::kSuccess;
}

int nvmlDeviceRegisterEvents(void* device, unsigned long long, void* set) {
  const Lock lock(mutex);
  static_cast<EventSet*>(set)->uuids.insert(CardOf(device)->uuid);
  return abi::kSuccess;
}

int nvmlEventSetWait_v2(void* of, abi::EventData* data, unsigned patience_ms) {
  EventSet& set = *static_cast<EventSet*>(of);
  for (unsigned waited = 0;; waited += kEventPause) {
    if (NextEvent(set, *data)) return abi::kSuccess;
    if (waited >= patience_ms) return abi::kTimeout;
    std::this_thread::sleep_for(std::chrono::milliseconds(kEventPause));
  }
}

}  // extern "C"

}  // namespace tranche::fake_nvml
