#include "test/fakes/nvml/machine.h"

#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace tranche::fake_nvml {

std::recursive_mutex mutex;
std::unique_ptr<Machine> machine;

namespace {

using Json = nlohmann::json;

Json ToJson(const Mig& mig) {
  return {{"uuid", mig.uuid},
          {"profile", mig.profile},
          {"id", mig.gpu_instance},
          {"start", mig.start},
          {"size", mig.size},
          {"slices", mig.gpu_slices},
          {"compute", mig.compute_slices}};
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
  card.rows = json.value("rows", "");
  card.fixed_mode = json.value("mode", "") == "fixed";
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

}  // namespace

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

Card* CardWith(void* instance) {
  for (Card& card : machine->cards) {
    for (Mig& mig : card.migs) {
      if (&mig == instance) return &card;
    }
  }
  return nullptr;
}

int Copy(const std::string& text, char* buffer, unsigned size) {
  if (text.size() >= size) return abi::kInvalidArgument;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return abi::kSuccess;
}

}  // namespace tranche::fake_nvml
