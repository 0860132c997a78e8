// NVML for tests: a library of the functions that probe and agent call, playing the machine in the
// file that the environment variable FAKE_NVML_NODE names (see test/fakes/gpu_node). Answers as the
// driver does also where there is nothing: gaps in MIG indices and profile numbers, links past the
// last.
//
// A GPU with "board": "h100-80" can be cut. Its instances outlive the process: they are kept in
// instances.json beside the node's file. faults.json there says what goes wrong, by function:
// {"nvmlGpuInstanceDestroy": {"code": 19, "sleepMs": 50}}; "late": true does it and fails all the
// same.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/probe/nvml_abi.h"

namespace {

namespace abi = tranche::probe::abi;
using Json = nlohmann::json;

constexpr int kUninitialized = 1;
constexpr int kInsufficientResources = 23;
constexpr int kDriverNotLoaded = 9;
constexpr unsigned kMigPlaces = 7;
constexpr unsigned kFirstProfileId = 100;
constexpr unsigned kProfileGap = 1;  // a profile number this GPU does not have

struct Mig {
  std::string uuid, profile;
  unsigned gpu_instance = 0;
  unsigned start = 0, size = 0;
  unsigned gpu_slices = 0, compute_slices = 0;  // 0 of compute: no compute instance
};

// What a board can be cut into, by NVML's number of the profile. Source: the MIG user guide.
struct Profile {
  unsigned number, id;
  const char* name;
  unsigned slices;
  unsigned long long mib;
  unsigned size, most;
  std::vector<unsigned> starts;
};
const std::vector<Profile>& ProfilesOfH100() {
  static const std::vector<Profile> profiles = {
      {0, 19, "1g.10gb", 1, 9984, 1, 7, {0, 1, 2, 3, 4, 5, 6}},
      {1, 14, "2g.20gb", 2, 20096, 2, 3, {0, 2, 4}},
      {2, 9, "3g.40gb", 3, 40448, 4, 2, {0, 4}},
      {3, 5, "4g.40gb", 4, 40448, 4, 1, {0}},
      {4, 0, "7g.80gb", 7, 81152, 8, 1, {0}},
      {7, 20, "1g.10gb+me", 1, 9984, 1, 1, {0, 1, 2, 3, 4, 5, 6}},
      {9, 15, "1g.20gb", 1, 20096, 2, 4, {0, 2, 4, 6}},
  };
  return profiles;
}
constexpr unsigned kProfileNumbers = 10;
// Compute instance profiles: NVML's numbers for 1, 2, 3, 4 and 7 slices; 5 and 6 are gaps.
constexpr unsigned kComputeProfiles = 8;
unsigned ComputeSlices(unsigned number) {
  constexpr unsigned kSlices[] = {1, 2, 3, 4, 7};
  return number < std::size(kSlices) ? kSlices[number] : 0;
}

struct Card {
  std::string uuid, bus;
  unsigned long long memory_mib = 0;
  bool mig_mode = false;
  bool may_monitor_mig = true;
  bool cuttable = false;
  std::list<Mig> migs;           // handles are their addresses
  std::vector<std::string> row;  // of the matrix
};

struct Machine {
  std::filesystem::path folder;
  std::string driver;
  bool switched = false;
  unsigned next_instance = 1;
  std::vector<Card> cards;
  std::vector<std::string> profiles;  // by number, with the gap
};

// The agent calls from two threads.
std::recursive_mutex mutex;
using Lock = std::lock_guard<std::recursive_mutex>;
std::unique_ptr<Machine> machine;
int users = 0;  // of nvmlInit

// What a test wants to go wrong, if anything. Sleeps without the lock.
struct Fault {
  int code = abi::kSuccess;
  bool late = false;
};
Fault FaultOf(const char* function) {
  std::filesystem::path path;
  {
    const Lock lock(mutex);
    if (machine == nullptr) return {kUninitialized};
    path = machine->folder / "faults.json";
  }
  std::ifstream file(path);
  if (!file) return {};
  const Json faults = Json::parse(file, nullptr, false);
  if (!faults.is_object() || !faults.contains(function)) return {};
  const Json& fault = faults[function];
  std::this_thread::sleep_for(std::chrono::milliseconds(fault.value("sleepMs", 0)));
  return {fault.value("code", abi::kSuccess), fault.value("late", false)};
}

Json ToJson(const Mig& mig) {
  return {{"uuid", mig.uuid},
          {"profile", mig.profile},
          {"id", mig.gpu_instance},
          {"start", mig.start},
          {"size", mig.size},
          {"slices", mig.gpu_slices},
          {"compute", mig.compute_slices}};
}

// Of cards that can be cut.
void SaveInstances() {
  Json all = {{"next", machine->next_instance}};
  for (const Card& card : machine->cards) {
    if (!card.cuttable) continue;
    all[card.uuid] = Json::array();
    for (const Mig& mig : card.migs) all[card.uuid].push_back(ToJson(mig));
  }
  const auto path = machine->folder / "instances.json";
  std::ofstream(path.string() + ".new") << all.dump();
  std::filesystem::rename(path.string() + ".new", path);
}

void LoadInstances(Machine& of) {
  std::ifstream file(of.folder / "instances.json");
  if (!file) return;
  const Json all = Json::parse(file);
  of.next_instance = all.at("next");
  for (Card& card : of.cards) {
    for (const Json& one : all.value(card.uuid, Json::array())) {
      card.migs.push_back({one.at("uuid"), one.at("profile"), one.at("id"), one.at("start"),
                           one.at("size"), one.at("slices"), one.at("compute")});
    }
  }
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

// The cells of the GPU columns, which come first, of every GPU row.
void ReadMatrix(const std::filesystem::path& path, std::vector<Card>& cards) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> words = Words(line);
    if (words.empty() || words[0].rfind("GPU", 0) != 0) continue;
    // The head also starts with a GPU; only rows have themselves in them.
    const auto at = static_cast<std::size_t>(std::stoi(words[0].substr(3)));
    if (words.size() <= at + 1 || words[at + 1] != "X") continue;
    if (at < cards.size()) cards[at].row.assign(words.begin() + 1, words.end());
  }
}

Card ReadCard(const Json& json) {
  Card card;
  card.uuid = json.at("uuid");
  card.bus = json.at("bus");
  card.memory_mib = json.at("memoryMiB");
  card.mig_mode = json.contains("mig");
  card.may_monitor_mig = json.value("mayMonitorMig", true);
  card.cuttable = json.value("board", "") == "h100-80";
  for (const Json& one : json.value("mig", Json::array())) {
    Mig mig;
    mig.uuid = one.at("uuid");
    mig.profile = one.at("profile");
    mig.start = one.at("start");
    mig.size = one.at("size");
    mig.gpu_instance = mig.start + 1;
    mig.gpu_slices = static_cast<unsigned>(mig.profile[0] - '0');
    mig.compute_slices = one.value("computeSlices", mig.gpu_slices);
    card.migs.push_back(mig);
  }
  return card;
}

std::unique_ptr<Machine> ReadMachine(const std::filesystem::path& path) {
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object()) return nullptr;
  auto read = std::make_unique<Machine>();
  read->folder = path.parent_path();
  read->driver = json.at("driver");
  read->switched = json.value("switched", false);
  for (const Json& card : json.at("gpus")) read->cards.push_back(ReadCard(card));
  ReadMatrix(path.parent_path() / json.at("matrix").get<std::string>(), read->cards);
  std::set<std::string> names;
  for (const Card& card : read->cards) {
    for (const Mig& mig : card.migs) names.insert(mig.profile);
  }
  read->profiles.assign(names.begin(), names.end());
  if (read->profiles.size() > kProfileGap) {
    read->profiles.insert(read->profiles.begin() + kProfileGap, std::string());
  }
  LoadInstances(*read);
  return read;
}

Card* CardOf(void* device) {
  if (machine == nullptr) return nullptr;
  for (Card& card : machine->cards) {
    if (&card == device) return &card;
  }
  return nullptr;
}

Mig* MigOf(void* device) {
  if (machine == nullptr) return nullptr;
  for (Card& card : machine->cards) {
    for (Mig& mig : card.migs) {
      if (&mig == device) return &mig;
    }
  }
  return nullptr;
}

const Profile* ProfileOf(const std::string& name) {
  for (const Profile& profile : ProfilesOfH100()) {
    if (profile.name == name) return &profile;
  }
  return nullptr;
}

// The card an instance is on.
Card* CardWith(void* instance) {
  for (Card& card : machine->cards) {
    for (Mig& mig : card.migs) {
      if (&mig == instance) return &card;
    }
  }
  return nullptr;
}

bool IsFree(const Card& card, const Profile& profile, unsigned start) {
  unsigned same = 0;
  for (const Mig& mig : card.migs) {
    if (start < mig.start + mig.size && mig.start < start + profile.size) return false;
    same += mig.profile == profile.name ? 1 : 0;
  }
  return same < profile.most;
}

// A MIG device is a compute instance.
std::vector<Mig*> MigDevices(Card& card) {
  std::vector<Mig*> devices;
  for (Mig& mig : card.migs) {
    if (mig.compute_slices > 0) devices.push_back(&mig);
  }
  return devices;
}

int Copy(const std::string& text, char* buffer, unsigned size) {
  if (text.size() >= size) return abi::kInvalidArgument;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return abi::kSuccess;
}

void FillPci(const std::string& bus, abi::PciInfo& info) {
  info = {};
  // domain:bus:device.0 in hexadecimal; NVML itself writes the domain with eight digits.
  info.domain = static_cast<unsigned>(std::stoul(bus.substr(0, 4), nullptr, 16));
  info.bus = static_cast<unsigned>(std::stoul(bus.substr(5, 2), nullptr, 16));
  info.device = static_cast<unsigned>(std::stoul(bus.substr(8, 2), nullptr, 16));
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
  return Copy(card->cuttable ? "NVIDIA H100 80GB HBM3" : "NVIDIA Test GPU", text, size);
}

int nvmlDeviceGetPciInfo_v3(void* device, abi::PciInfo* info) {
  FillPci(CardOf(device)->bus, *info);
  return abi::kSuccess;
}

int nvmlDeviceGetMemoryInfo(void* device, abi::Memory* memory) {
  const Lock lock(mutex);
  const Card* const card = CardOf(device);
  if (card->mig_mode && !card->may_monitor_mig) return abi::kNoPermission;
  *memory = {card->memory_mib << 20U, card->memory_mib << 19U, card->memory_mib << 19U};
  return abi::kSuccess;
}

int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  const Lock lock(mutex);
  *current = *pending = CardOf(device)->mig_mode ? 1 : 0;
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
    *info = {CardWith(instance), mig.gpu_instance, ProfileOf(mig.profile)->id, mig.start, mig.size};
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
    const auto& all = ProfilesOfH100();
    const auto profile = std::ranges::find(all, number, &Profile::number);
    if (profile == all.end()) return abi::kNotSupported;
    info->id = profile->id;
    info->slices = profile->slices;
    info->memory_mib = profile->mib;
    return Copy(std::string("MIG ") + profile->name, info->name, sizeof(info->name));
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
  const auto& all = ProfilesOfH100();
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
    const Profile* const profile = ProfileOf(mig.profile);
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
  const auto& all = ProfilesOfH100();
  const auto profile = std::ranges::find(all, id, &Profile::id);
  const bool legal = profile != all.end() && profile->size == place->size &&
                     std::ranges::count(profile->starts, place->start) > 0;
  if (!card->cuttable || !card->mig_mode || !legal) return abi::kInvalidArgument;
  if (!IsFree(*card, *profile, place->start)) return kInsufficientResources;
  const unsigned number = machine->next_instance++;
  card->migs.push_back({"MIG-" + std::to_string(number), profile->name, number, place->start,
                        place->size, profile->slices, 0});
  *instance = &card->migs.back();
  SaveInstances();
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

int nvmlDeviceGetAttributes_v2(void* device, abi::MigAttributes* attributes) {
  const Lock lock(mutex);
  const Mig& mig = *MigOf(device);
  *attributes = {};
  attributes->gpu_slices = mig.gpu_slices;
  attributes->compute_slices = mig.compute_slices;
  return abi::kSuccess;
}

int nvmlDeviceGetTopologyCommonAncestor(void* one, void* other, unsigned* level) {
  const auto column = static_cast<std::size_t>(CardOf(other) - machine->cards.data());
  *level = Level(CardOf(one)->row.at(column));
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
