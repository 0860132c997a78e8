#include "test/sim/product/volume.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace tranche::sim {
namespace {

using ledger::Work;
using ledger::Worker;

// A worker that is told to end does so after a few steps, unless its disk fails.
constexpr int kLastSteps = 1'000;
constexpr int kFlips = 4'000;             // power cuts of 10,000 after which a bit is wrong
constexpr uint64_t kOfBits = 0x62697473;  // draws of their own

}  // namespace

class Volume::Steps : public Worker {
 public:
  Steps(Volume& volume, Process& process, Work work, Step step, std::function<void()> torn)
      : volume_(volume),
        process_(process),
        work_(work),
        step_(std::move(step)),
        torn_(std::move(torn)),
        turns_(process, [this] { Take(); }) {
    turns_.In({});
  }

  void Wake() override { turns_.In({}); }
  void Join() override {
    // A kill leaves undone what was not done.
    for (int left = kLastSteps; left > 0 && !over_ && !process_.dead(); --left) {
      const std::optional<Rest> rest = step_();
      over_ = !rest;
      // What rests after a failure would try again by time, which stands still here.
      if (rest && *rest > Rest::zero()) return;
    }
  }

 private:
  void Take() {
    if (over_ || process_.clocks().Boot() < busy_until_) return;
    volume_.operations_ = 0;
    const std::optional<Rest> rest = step_();
    if (volume_.TakeTorn()) torn_();
    over_ = !rest;
    if (over_ || *rest == kUntilWoken) return;
    if (*rest > Rest::zero()) return turns_.In(*rest);
    // What comes at once takes the time of the disk, in which nothing can wake it.
    const std::chrono::nanoseconds time = volume_.TimeOf(work_, process_.draws());
    busy_until_ = process_.clocks().Boot() + time.count();
    turns_.At(busy_until_);
  }

  Volume& volume_;
  Process& process_;
  const Work work_;
  const Step step_;
  const std::function<void()> torn_;
  bool over_ = false;
  int64_t busy_until_ = 0;
  Turns turns_;
};

Volume::Volume(Loop& loop, std::string folder, uint64_t seed)
    : loop_(loop), folder_(std::move(folder)) {
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_);
  vfs_.Seed(seed);
  vfs_.SetWatcher([this](int64_t) {
    if (tear_before_ == 0 || ++operations_ < tear_before_) return;
    tear_before_ = 0;
    torn_ = true;
    CutPower();
    Freeze();
  });
}

Volume::~Volume() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

ledger::Workers Volume::WorkersOf(Process& process, std::function<void()> torn) {
  return [this, &process, torn = std::move(torn)](Work work, Worker::Step step) {
    return std::make_unique<Steps>(*this, process, work, std::move(step), torn);
  };
}

SimTime Volume::TimeOf(Work work, Draws& draws) const {
  const SimTime usual{draws.Between(100, 1'500)};
  return work == Work::kWrite ? std::max(usual, hangs_until_ - loop_.now()) : usual;
}

void Volume::FlipBit(Draws& draws) const {
  std::vector<std::string> files;
  for (const char* const end : {"", "-wal"}) {
    const std::string path = ledger() + end;
    std::error_code absent;
    if (std::filesystem::file_size(path, absent) > 0 && !absent) files.push_back(path);
  }
  if (files.empty()) return;
  const std::string& path = draws.Pick(files);
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  const int64_t at = draws.Below(size);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ (1 << draws.Below(8))));
}

Volume::Left Volume::Restore(uint64_t seed) {
  for (const auto& [path, file] : cut_) {
    std::filesystem::remove(path);
    std::filesystem::remove(path + "-shm");
  }
  fakes::PowerCutVfs::Restore(cut_, seed, folder_, folder_);
  Draws draws = Draws(seed).Fork(kOfBits);
  const bool flips = bits_flip_ && draws.Chance(kFlips);
  if (flips) FlipBit(draws);
  vfs_.Forget(folder_);
  cut_.clear();
  return flips ? Left::kOneBitFlipped : Left::kSound;
}

void Volume::Heal() {
  vfs_.Heal();
  hangs_until_ = SimTime{0};
  tear_before_ = 0;
}

}  // namespace tranche::sim

// SQLite locks its files against other processes by this, dozens of times for each commit. Here all
// who open them are in one process, whose locks the kernel holds for compatible anyway; what they
// may do beside each other SQLite keeps in its own memory.
extern "C" int fcntl64(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (command == F_SETLK) return 0;
  if (command == F_GETLK) {
    static_cast<struct flock*>(argument)->l_type = F_UNLCK;
    return 0;
  }
  return static_cast<int>(syscall(SYS_fcntl, file, command, argument));
}
