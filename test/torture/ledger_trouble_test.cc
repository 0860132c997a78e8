// Hazards 50, 52, 53 and 55 on whole servers: whatever is wrong with the ledger at a start or while
// pods come, pods are placed, it is told, and nothing is missing once the disk is well again.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "test/fakes/power_cut_vfs.h"
#include "test/torture/story.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche::torture {
namespace {

using fakes::DiskFault;
using fakes::PowerCutVfs;
using ledger::SqliteLedger;
namespace fs = std::filesystem;

constexpr int64_t kForLong = 1'000'000;
constexpr std::chrono::seconds kPatient{30};  // where nothing hangs, however busy the machine

enum class AtStart {
  kNothing,
  kMissing,
  kEmpty,
  kCut,
  kNoDatabase,
  kFlippedFile,
  kFlippedLog,
  kOlder,
  kFull,
  kReadOnly,
  kWriteError,
  kHung,
  kCount
};
enum class Running { kFull, kReadOnly, kWriteError, kShortWrite, kFailedSync, kHung, kCount };

void FlipOneBit(const std::string& path, std::mt19937_64& random) {
  std::error_code none;
  const uintmax_t size = fs::file_size(path, none);
  if (none || size == 0) return;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto at = static_cast<std::streamoff>(random() % size);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ (1 << (random() % 8))));
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class LedgerTrouble : public LiveServer {
 protected:
  void SetUp() override {}

  absl::Status Start() {
    runtime.reset();
    config_.port = 0;
    config_.manual_clock = true;
    config_.log_level = "off";
    runtime = std::make_unique<Runtime>(config_);
    if (absl::Status started = runtime->Start(); !started.ok()) return started;
    server = LoopbackServer(runtime->port());
    Apply(MakeNode("n", 8));
    return absl::OkStatus();
  }
  // Binds a pod that no quota counts, whatever becomes of its metering.
  void Place() {
    Json pod = MakePod(fmt::format("p{}", ++pods_), {{"nvidia.com/gpu", "1"}});
    Apply(pod);
    ASSERT_EQ(Schedule(pod, {"n"}), "n");
    last_ = pod["metadata"]["uid"];
  }
  bool Exports(const std::string& line) {
    return ("\n" + Call("GET", "/metrics").body).find("\n" + line + "\n") != std::string::npos;
  }
  // In metrics, and where one asks whether the server is ready.
  bool Told() {
    const kube::SingleAnswer ready = Call("GET", "/readyz");
    EXPECT_EQ(ready.status, 200) << ready.body;
    const bool noted = ready.body.find("ledger") != std::string::npos;
    EXPECT_EQ(noted, Call("GET", "/metrics").body.find("tranche_ledger_faults{kind=") !=
                             std::string::npos &&
                         AnyFault());
    return noted;
  }
  bool AnyFault() {
    std::istringstream lines(Call("GET", "/metrics").body);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("tranche_ledger_faults{") && line.ends_with(" 1")) return true;
    }
    return false;
  }
  void AwaitWritten() {
    for (int i = 0; i < 6'000; ++i) {
      if (Exports("tranche_ledger_queued 0") && Exports("tranche_ledger_writable 1")) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "expected the queue to be written, found it is not";
  }
  void AwaitFree() {
    while (SqliteLedger::InUse(config_.ledger)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  // A life in which all is well; it ends in order or is killed.
  void LiveWell(std::mt19937_64& random, const std::string& folder, const std::string& kept) {
    ASSERT_TRUE(Start().ok());
    const auto pods = static_cast<int>(1 + random() % 3);
    for (int i = 0; i < pods; ++i) {
      Place();
      promised_.insert(last_);
    }
    EXPECT_FALSE(Told());
    const bool killed = random() % 2 == 0;
    if (killed) CopyLedger(folder, kept);
    runtime.reset();
    if (killed) CopyLedger(kept, folder);
    fs::remove_all(kept);
    fs::create_directories(kept);
    CopyLedger(folder, kept);
  }
  void Damage(AtStart trouble, std::mt19937_64& random) {
    const std::string& path = config_.ledger;
    const auto size = fs::file_size(path);
    switch (trouble) {
      case AtStart::kMissing:
        fs::remove(path);
        break;
      case AtStart::kEmpty:
        fs::resize_file(path, 0);
        break;
      case AtStart::kCut:
        fs::resize_file(path, random() % size);
        break;
      case AtStart::kNoDatabase:
        std::ofstream(path, std::ios::trunc) << std::string(size, 'x');
        break;
      case AtStart::kFlippedFile:
        FlipOneBit(path, random);
        break;
      case AtStart::kFlippedLog:
        FlipOneBit(path + (fs::exists(path + "-wal") ? "-wal" : ".head"), random);
        break;
      case AtStart::kOlder:
        std::ofstream(path + ".head", std::ios::trunc) << "999 " << std::string(64, '0') << '\n';
        break;
      case AtStart::kFull:
        vfs_.Inject(DiskFault::kFull, 1, kForLong);
        break;
      case AtStart::kReadOnly:
        vfs_.Inject(DiskFault::kReadOnly, 1, kForLong);
        break;
      case AtStart::kWriteError:
        vfs_.Inject(DiskFault::kWriteError, 1, kForLong);
        break;
      case AtStart::kHung:
        config_.ledger_patience = std::chrono::milliseconds(300);
        hanging_ = true;
        break;
      case AtStart::kNothing:
      case AtStart::kCount:
        break;
    }
  }
  void Heal() {
    vfs_.Heal();
    hanging_ = false;
    hanging_.notify_all();
  }
  void Strike(Running trouble) {
    switch (trouble) {
      case Running::kFull:
        return vfs_.Inject(DiskFault::kFull, 1, kForLong);
      case Running::kReadOnly:
        return vfs_.Inject(DiskFault::kReadOnly, 1, kForLong);
      case Running::kWriteError:
        return vfs_.Inject(DiskFault::kWriteError, 1, kForLong);
      case Running::kShortWrite:
        return vfs_.Inject(DiskFault::kShortWrite, 1, kForLong);
      case Running::kFailedSync:
        return vfs_.Inject(DiskFault::kSyncUnsaid, 1, kForLong);
      case Running::kHung:
      case Running::kCount:
        hanging_ = true;
        return;
    }
  }
  // A file that was taken up, and a disk that goes wrong under it.
  void LiveOn(Running trouble) {
    Strike(trouble);
    Place();
    EXPECT_TRUE(Told()) << "while running: " << static_cast<int>(trouble);
    EXPECT_TRUE(Exports("tranche_ledger_writable 0"));
    const std::string during = last_;
    Heal();
    AwaitWritten();
    EXPECT_FALSE(Told());
    promised_.insert(during);
    runtime.reset();
    EXPECT_TRUE(Verified(config_.ledger));
  }
  void ExpectPromised() {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open_v2(config_.ledger.c_str(), &database, SQLITE_OPEN_READONLY, nullptr),
              SQLITE_OK);
    std::set<std::string> found;
    sqlite3_exec(
        database, "SELECT uid FROM interval",
        [](void* out, int, char** values, char**) {
          static_cast<std::set<std::string>*>(out)->insert(values[0]);
          return 0;
        },
        &found, nullptr);
    sqlite3_close(database);
    for (const std::string& uid : promised_) EXPECT_TRUE(found.contains(uid)) << uid;
  }
  // The file as it was before it was damaged is put back, as from a copy.
  void PutBack(const std::string& kept, const std::string& folder) {
    config_.ledger_patience = kPatient;
    for (const char* end : {"", "-wal", "-shm", ".head"}) fs::remove(config_.ledger + end);
    CopyLedger(kept, folder);
    ASSERT_TRUE(Start().ok());
    EXPECT_FALSE(Told());
    runtime.reset();
    EXPECT_TRUE(Verified(config_.ledger));
  }

  // Returns what became of the story, in a word.
  std::string TakeUpDamaged(AtStart trouble, Running running, const Folder& folder,
                            const Folder& kept) {
    const std::string damaged = BytesOf(config_.ledger);
    const absl::Status started = Start();
    const bool flipped = trouble == AtStart::kFlippedFile || trouble == AtStart::kFlippedLog;
    if (!started.ok()) {
      // A flip can make the version one of a later program.
      EXPECT_TRUE(flipped && absl::IsFailedPrecondition(started)) << started;
      PutBack(kept.path(), folder.path());
      return "refused";
    }
    Place();
    if (HasFatalFailure()) return "failed";
    if (!Exports("tranche_ledger_faults{kind=\"unopened\"} 1")) {
      // A bit that nobody reads at a start.
      if (flipped) return "unseen";
      EXPECT_EQ(trouble, AtStart::kNothing);
      LiveOn(running);
      ExpectPromised();
      return "lived on";
    }
    EXPECT_NE(trouble, AtStart::kNothing);
    EXPECT_TRUE(Told());
    runtime.reset();
    Heal();
    AwaitFree();
    if (trouble < AtStart::kFull) {
      EXPECT_EQ(BytesOf(config_.ledger), damaged);
    }
    PutBack(kept.path(), folder.path());
    ExpectPromised();
    return "without the ledger";
  }

  PowerCutVfs vfs_;
  std::atomic<bool> hanging_{false};
  ServeConfig config_;
  std::set<std::string> promised_;
  std::string last_;
  int pods_ = 0;
};

TEST_F(LedgerTrouble, PodsArePlacedItIsToldAndNothingPromisedIsLost) {
  vfs_.SetWatcher([this](int64_t) { hanging_.wait(/*old=*/true); });
  const uint64_t first = PrintedSeed();
  const int64_t seeds = Size(4, 40, 1'000);
  constexpr auto kRunning = static_cast<uint64_t>(Running::kCount);
  constexpr auto kKinds = kRunning + static_cast<uint64_t>(AtStart::kCount) - 1;
  std::map<std::string, int64_t> ends;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(seeds); ++seed) {
    std::mt19937_64 random(seed);
    const Folder folder;
    const Folder kept;
    config_.ledger = folder.ledger();
    config_.ledger_failure = random() % 2 == 0 ? LedgerFailure::kClosed : LedgerFailure::kOpen;
    config_.ledger_patience = kPatient;
    promised_.clear();
    LiveWell(random, folder.path(), kept.path());
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    // Each kind of trouble in turn: a start that finds nothing wrong is for what comes later.
    const uint64_t kind = seed % kKinds;
    const auto running = static_cast<Running>(kind % kRunning);
    const auto trouble =
        kind < kRunning ? AtStart::kNothing : static_cast<AtStart>(kind - kRunning + 1);
    SCOPED_TRACE(fmt::format("seed {}, at start {}, running {}", seed, static_cast<int>(trouble),
                             static_cast<int>(running)));
    Damage(trouble, random);
    ++ends[TakeUpDamaged(trouble, running, folder, kept)];
    runtime.reset();
    Heal();
    if (HasFailure()) return;
  }
  fmt::print("{} stories: {}\n", seeds, ends);
}

}  // namespace
}  // namespace tranche::torture
