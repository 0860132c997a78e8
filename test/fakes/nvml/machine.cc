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
    if (!all.contains(card.uuid)) continue;
    card.migs.clear();
    if (all.contains("modes")) card.mig_mode = all["modes"].at(card.uuid);
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
void ReadMatrix(const std::filesystem::path& path, std::vector<Card>& cards,
                std::vector<std::string> Card::*cells) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> words = Words(line);
    if (words.empty() || words[0].rfind("GPU", 0) != 0) continue;
    // The head also starts with a GPU; only rows have themselves in them.
    const auto at = static_cast<std::size_t>(std::stoi(words[0].substr(3)));
    if (words.size() <= at + 1 || words[at + 1] != "X") continue;
    if (at < cards.size()) (cards[at].*cells).assign(words.begin() + 1, words.end());
  }
}

Profile ReadProfile(const Json& json) {
  Profile profile;
  profile.number = json.at("number");
  profile.id = json.at("id");
  profile.name = json.at("name");
  profile.slices = json.at("slices");
  profile.mib = json.at("memoryMiB");
  profile.size = json.at("size");
  profile.most = json.at("most");
  profile.starts = json.at("starts").get<std::vector<unsigned>>();
  profile.multiprocessors = json.value("multiprocessors", 0U);
  return profile;
}

Board ReadBoard(const Json& json) {
  Board board;
  board.name = json.at("name");
  board.compute_major = json.at("compute").at(0);
  board.compute_minor = json.at("compute").at(1);
  board.device_id = json.value("deviceId", 0U);
  for (const Json& profile : json.value("profiles", Json::array())) {
    board.profiles.push_back(ReadProfile(profile));
  }
  return board;
}

Card ReadCard(const Json& json, const std::map<std::string, Board>& boards) {
  Card card;
  card.uuid = json.at("uuid");
  card.bus = json.at("bus");
  card.memory_mib = json.at("memoryMiB");
  card.mig_mode = json.contains("mig");
  card.may_monitor_mig = json.value("mayMonitorMig", true);
  card.rows = json.value("rows", "");
  card.fixed_mode = json.value("mode", "") == "fixed";
  if (json.contains("board")) card.board = &boards.at(json.at("board"));
  card.cuttable = card.board != nullptr && !card.board->profiles.empty();
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

const Board& BoardOfH100() {
  static const Board board = {"NVIDIA H100 80GB HBM3",
                              9,
                              0,
                              0x2330,
                              {
                                  {0, 19, "1g.10gb", 1, 9984, 1, 7, {0, 1, 2, 3, 4, 5, 6}, 16},
                                  {1, 14, "2g.20gb", 2, 20096, 2, 3, {0, 2, 4}, 32},
                                  {2, 9, "3g.40gb", 3, 40448, 4, 2, {0, 4}, 60},
                                  {3, 5, "4g.40gb", 4, 40448, 4, 1, {0}, 64},
                                  {4, 0, "7g.80gb", 7, 81152, 8, 1, {0}, 132},
                                  {7, 20, "1g.10gb+me", 1, 9984, 1, 1, {0, 1, 2, 3, 4, 5, 6}, 16},
                                  {9, 15, "1g.20gb", 1, 20096, 2, 4, {0, 2, 4, 6}, 26},
                              }};
  return board;
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
    all["modes"][card.uuid] = card.mig_mode;
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
  read->starts_from_above = json.value("starts", "") == "above";
  read->boards.emplace("h100-80", BoardOfH100());
  const Json boards = json.value("boards", Json::object());
  for (const auto& [name, board] : boards.items()) {
    read->boards[name] = ReadBoard(board);
  }
  for (const Json& card : json.at("gpus")) read->cards.push_back(ReadCard(card, read->boards));
  const auto folder = path.parent_path();
  ReadMatrix(folder / json.at("matrix").get<std::string>(), read->cards, &Card::row);
  ReadMatrix(folder / json.value("paths", "none"), read->cards, &Card::paths);
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

const Profile* ProfileOf(const Card& card, const std::string& name) {
  if (card.board == nullptr) return nullptr;
  for (const Profile& profile : card.board->profiles) {
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

unsigned ComputeIdOf(const Mig& mig) {
  unsigned id = 0;
  for (const Card& card : machine->cards) {
    for (const Mig& other : card.migs) {
      if (&other == &mig) return id;
      id += other.gpu_instance == mig.gpu_instance ? 1 : 0;
    }
    id = 0;
  }
  return id;
}

bool IsFree(const Card& card, const Profile& profile, unsigned start) {
  unsigned same = 0;
  for (const Mig& mig : card.migs) {
    if (start < mig.start + mig.size && mig.start < start + profile.size) return false;
    same += mig.profile == profile.name ? 1 : 0;
  }
  return same < profile.most;
}

Mig* MakeInstance(Card& card, const Profile& profile, unsigned start) {
  const unsigned number = machine->next_instance++;
  card.migs.push_back({"MIG-" + std::to_string(number), profile.name, number, start, profile.size,
                       profile.slices, 0});
  SaveInstances();
  return &card.migs.back();
}

int Copy(const std::string& text, char* buffer, unsigned size) {
  if (text.size() >= size) return abi::kInvalidArgument;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return abi::kSuccess;
}

}  // namespace tranche::fake_nvml
