// NVML for tests: a library of the functions the probe calls, playing the machine in the file that
// the environment variable FAKE_NVML_NODE names (see test/fakes/gpu_node). Answers as the driver
// does also where there is nothing: gaps in MIG indices and profile numbers, links past the last.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler/probe/nvml_abi.h"

namespace {

namespace abi = tranche::probe::abi;
using Json = nlohmann::json;

constexpr int kUninitialized = 1;
constexpr int kDriverNotLoaded = 9;
constexpr unsigned kMigPlaces = 7;
constexpr unsigned kFirstProfileId = 100;
constexpr unsigned kProfileGap = 1;  // a profile number this GPU does not have

struct Mig {
  std::string uuid, profile;
  unsigned gpu_instance = 0;
  unsigned start = 0, size = 0;
  unsigned gpu_slices = 0, compute_slices = 0;
};

struct Card {
  std::string uuid, bus;
  unsigned long long memory_mib = 0;
  bool mig_mode = false;
  bool may_monitor_mig = true;
  std::vector<Mig> migs;
  std::vector<std::string> row;  // of the matrix
};

struct Machine {
  std::string driver;
  bool switched = false;
  std::vector<Card> cards;
  std::vector<std::string> profiles;  // by number, with the gap
};

std::unique_ptr<Machine> machine;

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
  const char* const path = std::getenv("FAKE_NVML_NODE");
  machine = path == nullptr ? nullptr : ReadMachine(path);
  return machine == nullptr ? kDriverNotLoaded : abi::kSuccess;
}

int nvmlShutdown() {
  machine.reset();
  return abi::kSuccess;
}

const char* nvmlErrorString(int code) {
  switch (code) {
    case abi::kNoPermission:
      return "Insufficient Permissions";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    default:
      return "Some Error";
  }
}

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return machine == nullptr ? kUninitialized : Copy(machine->driver, text, size);
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(machine->cards.size());
  return abi::kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= machine->cards.size()) return abi::kInvalidArgument;
  *device = &machine->cards[index];
  return abi::kSuccess;
}

int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  if (const Card* const card = CardOf(device)) return Copy(card->uuid, text, size);
  if (const Mig* const mig = MigOf(device)) return Copy(mig->uuid, text, size);
  return abi::kInvalidArgument;
}

int nvmlDeviceGetPciInfo_v3(void* device, abi::PciInfo* info) {
  FillPci(CardOf(device)->bus, *info);
  return abi::kSuccess;
}

int nvmlDeviceGetMemoryInfo(void* device, abi::Memory* memory) {
  const Card* const card = CardOf(device);
  if (card->mig_mode && !card->may_monitor_mig) return abi::kNoPermission;
  *memory = {card->memory_mib << 20U, card->memory_mib << 19U, card->memory_mib << 19U};
  return abi::kSuccess;
}

int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *current = *pending = CardOf(device)->mig_mode ? 1 : 0;
  return abi::kSuccess;
}

int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = kMigPlaces;
  return abi::kSuccess;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** mig) {
  Card* const card = CardOf(device);
  // Every second place is empty, as after instances were destroyed.
  if (index >= kMigPlaces) return abi::kInvalidArgument;
  if (index % 2 != 0 || index / 2 >= card->migs.size()) return abi::kNotFound;
  *mig = &card->migs[index / 2];
  return abi::kSuccess;
}

int nvmlDeviceGetGpuInstanceId(void* mig, unsigned* id) {
  *id = MigOf(mig)->gpu_instance;
  return abi::kSuccess;
}

int nvmlDeviceGetGpuInstanceById(void* device, unsigned id, void** instance) {
  for (Mig& mig : CardOf(device)->migs) {
    if (mig.gpu_instance != id) continue;
    *instance = &mig;
    return abi::kSuccess;
  }
  return abi::kNotFound;
}

int nvmlGpuInstanceGetInfo(void* instance, abi::GpuInstanceInfo* info) {
  const Mig& mig = *MigOf(instance);
  const auto& profiles = machine->profiles;
  const auto at = std::find(profiles.begin(), profiles.end(), mig.profile) - profiles.begin();
  *info = {nullptr, mig.gpu_instance, kFirstProfileId + static_cast<unsigned>(at), mig.start,
           mig.size};
  return abi::kSuccess;
}

int nvmlDeviceGetGpuInstanceProfileInfoV(void*, unsigned number, abi::GpuInstanceProfile* info) {
  if (info->version != abi::kGpuInstanceProfileVersion) return abi::kInvalidArgument;
  if (number >= machine->profiles.size()) return abi::kInvalidArgument;
  if (machine->profiles[number].empty()) return abi::kNotSupported;
  info->id = kFirstProfileId + number;
  return Copy("MIG " + machine->profiles[number], info->name, sizeof(info->name));
}

int nvmlDeviceGetAttributes_v2(void* device, abi::MigAttributes* attributes) {
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
