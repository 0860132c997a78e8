// The machine that the fake NVML plays: what its functions answer from. See fake_nvml.cc.
#pragma once

#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "scheduler/probe/nvml_abi.h"

namespace tranche::fake_nvml {

namespace abi = tranche::probe::abi;

inline constexpr int kUninitialized = 1;
inline constexpr int kInsufficientResources = 23;
inline constexpr int kDriverNotLoaded = 9;
inline constexpr unsigned kMigPlaces = 7;
inline constexpr unsigned kFirstProfileId = 100;
inline constexpr unsigned kProfileGap = 1;  // a profile number this GPU does not have

struct Mig {
  std::string uuid, profile;
  unsigned gpu_instance = 0;
  unsigned start = 0, size = 0;
  unsigned gpu_slices = 0, compute_slices = 0;  // 0 of compute: no compute instance
};

// What a board can be cut into, by NVML's number of the profile. Source: the MIG user guide.
struct Profile {
  unsigned number = 0, id = 0;
  std::string name;
  unsigned slices = 0;
  unsigned long long mib = 0;
  unsigned size = 0, most = 0;
  std::vector<unsigned> starts;
  unsigned multiprocessors = 0;
};
inline constexpr unsigned kProfileNumbers = 10;

// A kind of GPU. One without profiles has no MIG mode.
struct Board {
  std::string name;
  int compute_major = 0, compute_minor = 0;
  unsigned device_id = 0;
  std::vector<Profile> profiles;
};
// "h100-80", which every machine has.
const Board& BoardOfH100();

struct Card {
  std::string uuid, bus;
  unsigned long long memory_mib = 0;
  bool mig_mode = false;
  bool may_monitor_mig = true;
  const Board* board = nullptr;  // null: a GPU of which nobody asks what it is
  bool cuttable = false;         // by its board
  int compute_mode = 0;
  bool fixed_mode = false;         // who asks may not change it
  std::string rows;                // of memory: "pending", "failed" to be remapped
  std::list<Mig> migs;             // handles are their addresses
  std::vector<std::string> row;    // of the matrix
  std::vector<std::string> paths;  // the same without NVLinks, where the file tells them
};

struct Machine {
  std::filesystem::path folder;
  std::string driver;
  bool switched = false;
  bool starts_from_above = false;  // where instances go whose place nobody names
  unsigned next_instance = 1;
  std::map<std::string, Board> boards;
  std::vector<Card> cards;
  std::vector<std::string> profiles;  // by number, with the gap
};

// The agent calls from two threads: whoever reads or writes the machine holds the lock.
using Lock = std::lock_guard<std::recursive_mutex>;
extern std::recursive_mutex mutex;
extern std::unique_ptr<Machine> machine;  // null: nobody has called nvmlInit

// What a test wants to go wrong, if anything. Sleeps without the lock.
struct Fault {
  int code = abi::kSuccess;
  bool late = false;
};
Fault FaultOf(const char* function);

// Null: the file names no machine.
std::unique_ptr<Machine> ReadMachine(const std::filesystem::path& path);
// Of cards that can be cut: their instances and their MIG mode.
void SaveInstances();

// Null: the handle is none of that kind.
Card* CardOf(void* device);
Mig* MigOf(void* device);
// The card an instance is on.
Card* CardWith(void* instance);
const Profile* ProfileOf(const Card& card, const std::string& name);
// Its number among the compute instances of its GPU instance.
unsigned ComputeIdOf(const Mig& mig);

// Whether nothing stands there, and whether the board allows one more.
bool IsFree(const Card& card, const Profile& profile, unsigned start);
Mig* MakeInstance(Card& card, const Profile& profile, unsigned start);

int Copy(const std::string& text, char* buffer, unsigned size);

}  // namespace tranche::fake_nvml
