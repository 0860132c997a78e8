// Hazards 50, 52, 53 and 55 on whole servers: whatever is wrong with the ledger at a start or while
// pods come, pods are placed as the policy says, it is told in log, metrics and /readyz, and
// nothing promised is missing once the disk is well again. One kind of trouble is one test.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "test/fakes/power_cut_vfs.h"
#include "test/torture/ledger_bytes.h"
#include "test/torture/log_lines.h"
#include "test/torture/story.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche::torture {
namespace {

using test::Json;

using fakes::DiskFault;
using fakes::PowerCutVfs;
using ledger::SqliteLedger;
namespace fs = std::filesystem;

constexpr int64_t kForLong = 1'000'000;
constexpr std::chrono::milliseconds kOften{20};  // checks of the whole file
constexpr std::chrono::seconds kPatient{30};     // where nothing hangs, however busy the machine
// A tenth or less of what a server has, so that stories are many.
constexpr std::chrono::milliseconds kLook{10};
constexpr ledger::CommitTimes kTimes{
    .hang_after = kPatient,
    .first_pause = std::chrono::milliseconds(5),
    .nameless_pause = std::chrono::milliseconds(200),
};
constexpr std::chrono::milliseconds kHangs{200};

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
enum class Running {
  kFull,
  kReadOnly,
  kWriteError,
  kShortWrite,
  kFailedSync,
  kHung,
  kMissing,
  kMissingLog,
  kFlipped,
  kCount
};

struct Trouble {
  const char* name;
  AtStart at_start = AtStart::kNothing;
  Running running = Running::kCount;  // of a start that found nothing wrong
};
const Trouble kTroubles[] = {
    {"AtStartMissing", AtStart::kMissing},
    {"AtStartEmpty", AtStart::kEmpty},
    {"AtStartCut", AtStart::kCut},
    {"AtStartNoDatabase", AtStart::kNoDatabase},
    {"AtStartFlipped", AtStart::kFlippedFile},
    {"AtStartFlippedLog", AtStart::kFlippedLog},
    {"AtStartOlder", AtStart::kOlder},
    {"AtStartFull", AtStart::kFull},
    {"AtStartReadOnly", AtStart::kReadOnly},
    {"AtStartWriteError", AtStart::kWriteError},
    {"AtStartHung", AtStart::kHung},
    {"RunningFull", AtStart::kNothing, Running::kFull},
    {"RunningReadOnly", AtStart::kNothing, Running::kReadOnly},
    {"RunningWriteError", AtStart::kNothing, Running::kWriteError},
    {"RunningShortWrite", AtStart::kNothing, Running::kShortWrite},
    {"RunningFailedSync", AtStart::kNothing, Running::kFailedSync},
    {"RunningHung", AtStart::kNothing, Running::kHung},
    {"RunningMissing", AtStart::kNothing, Running::kMissing},
    {"RunningMissingLog", AtStart::kNothing, Running::kMissingLog},
    {"RunningFlipped", AtStart::kNothing, Running::kFlipped},
};

class LedgerTrouble : public LiveServer, public testing::WithParamInterface<Trouble> {
 protected:
  void SetUp() override {
    before_ = spdlog::default_logger();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("story", log_));
  }
  void TearDown() override {
    LiveServer::TearDown();
    spdlog::set_default_logger(before_);
  }

  absl::Status Start() {
    runtime.reset();
    config_.port = 0;
    config_.manual_clock = true;
    runtime = std::make_unique<Runtime>(config_);
    if (absl::Status started = runtime->Start(); !started.ok()) return started;
    server = LoopbackServer(runtime->port());
    Json objects = {{"apiVersion", "v1"}, {"kind", "List"}};
    objects["items"] = {Json::parse(R"({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "team-a", "labels": {"team": "a"}}})"),
                        Json::parse(R"({"apiVersion": "tranche.dev/v1alpha1", "kind": "GPUQuota",
            "metadata": {"name": "a", "uid": "uid-a"},
            "spec": {"namespaceSelector": {"matchLabels": {"team": "a"}},
                     "lines": [{"model": "h100", "nominal": {"gpus": 8}}]}})"),
                        MakeNode("n", 8)};
    Apply(objects);
    return absl::OkStatus();
  }
  std::string PlaceIn(const std::string& ns) {
    Json pod = MakePod(fmt::format("p{}", ++pods_), {{"nvidia.com/gpu", "1"}});
    pod["metadata"]["namespace"] = ns;
    Apply(pod);
    last_ = pod["metadata"]["uid"];
    return Schedule(pod, {"n"});
  }
  // Binds a pod that no quota counts, whatever becomes of its metering.
  void Place() { ASSERT_EQ(PlaceIn("other"), "n"); }
  // One that a quota counts waits where nobody could trust the count.
  void ExpectCountedByPolicy(bool trusted) {
    const bool goes_on = trusted || config_.ledger_failure == LedgerFailure::kOpen;
    EXPECT_EQ(PlaceIn("team-a"), goes_on ? "n" : "");
  }
  template <typename Holds>
  bool Await(Holds holds) {
    for (int i = 0; i < 6'000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  void ExpectLogged(const std::string& text) {
    EXPECT_TRUE(Await([&] { return log_->Contains(text); })) << text;
  }
  std::string Metrics() { return "\n" + Call("GET", "/metrics").body; }
  static bool Has(const std::string& metrics, const std::string& line) {
    return metrics.find("\n" + line + "\n") != std::string::npos;
  }
  bool Exports(const std::string& line) { return Has(Metrics(), line); }
  // In metrics, and where one asks whether the server is ready.
  bool Told() {
    const kube::SingleAnswer ready = Call("GET", "/readyz");
    EXPECT_EQ(ready.status, 200) << ready.body;
    const bool noted = ready.body.find("ledger") != std::string::npos;
    EXPECT_EQ(noted, AnyFault(Metrics()));
    return noted;
  }
  static bool AnyFault(const std::string& metrics) {
    std::istringstream lines(metrics);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("tranche_ledger_faults{") && line.ends_with(" 1")) return true;
    }
    return false;
  }
  void AwaitWritten() {
    EXPECT_TRUE(Await([this] {
      const std::string metrics = Metrics();
      return Has(metrics, "tranche_ledger_queued 0") && Has(metrics, "tranche_ledger_writable 1");
    })) << "expected the queue to be written, found it is not";
  }
  void AwaitFree() {
    while (SqliteLedger::InUse(config_.ledger)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  // A life in which all is well; it ends in order or is killed. One of each kind is lived.
  struct Life {
    const Folder files;
    std::set<std::string> promised;
  };
  void LiveWell(int pods, bool killed, Life& life) {
    const Folder folder;
    config_.ledger = folder.ledger();
    ASSERT_TRUE(Start().ok());
    for (int i = 0; i < pods; ++i) {
      Place();
      life.promised.insert(last_);
    }
    EXPECT_FALSE(Told());
    if (killed) CopyLedger(folder.path(), life.files.path());
    runtime.reset();
    if (!killed) CopyLedger(folder.path(), life.files.path());
  }
  const Life& AnyLife(std::mt19937_64& random) {
    const auto pods = static_cast<int>(1 + random() % 3);
    const bool killed = random() % 2 == 0;
    std::unique_ptr<Life>& life = lives_[{pods, killed}];
    if (life == nullptr) {
      life = std::make_unique<Life>();
      LiveWell(pods, killed, *life);
    }
    return *life;
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
        FlipInUse(path, random);
        config_.ledger_check = kOften;
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
        config_.ledger_patience = kHangs;
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
        hanging_ = true;
        return;
      case Running::kMissing:
        fs::remove(config_.ledger);
        return;
      case Running::kMissingLog:
        fs::remove(config_.ledger + "-wal");
        return;
      case Running::kFlipped:
      case Running::kCount:
        break;
    }
  }
  // A file that was taken up, and a disk that goes wrong under it.
  void LiveOn(Running trouble, std::mt19937_64& random) {
    AwaitWritten();
    promised_.insert(last_);
    log_->Clear();
    Strike(trouble);
    Place();
    // What has lost its name gets it back by itself after a while: that it was told stays.
    const bool nameless = trouble == Running::kMissing || trouble == Running::kMissingLog;
    if (nameless) {
      EXPECT_FALSE(Exports("tranche_ledger_commit_failures_total 0"));
    } else {
      EXPECT_TRUE(Told()) << "while running: " << static_cast<int>(trouble);
      EXPECT_TRUE(Exports("tranche_ledger_writable 0"));
    }
    promised_.insert(last_);
    // Some stop before anything is well again.
    if (!nameless || random() % 2 == 0) {
      ExpectLogged("ledger, ");
      if (trouble != Running::kHung) ExpectCountedByPolicy(/*trusted=*/true);
      Heal();
      AwaitWritten();
      EXPECT_FALSE(Told());
    }
    runtime.reset();
    EXPECT_TRUE(Verified(config_.ledger));
  }
  // A bit of a live file. Returns whether that was damage.
  bool LiveOnFlipped(std::mt19937_64& random, const std::string& folder) {
    AwaitWritten();
    promised_.insert(last_);
    const Folder kept;
    CopyLedger(folder, kept.path());
    log_->Clear();
    FlipInUse(config_.ledger, random);
    const bool seen = DamageIsTold();
    runtime.reset();
    PutBack(kept.path(), folder);
    ExpectPromised();
    return seen;
  }
  // A server checks a file that is damaged. Returns whether there was anything to be seen of it.
  bool DamageIsTold() {
    const auto told = [this] { return Exports("tranche_ledger_faults{kind=\"file\"} 1"); };
    // A bit that nobody reads is no damage.
    const bool seen = Await([&] { return told() || Verified(config_.ledger); }) && told();
    if (seen) {
      ExpectLogged("ledger, file");
      // The heartbeat's commit may have written the page anew since: then it is over, or will be.
      if (!Verified(config_.ledger)) {
        EXPECT_TRUE(Told());
        ExpectCountedByPolicy(/*trusted=*/false);
      }
    }
    // Only now: a commit may write the page anew.
    Place();
    return seen;
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
    // A server has more threads than a ledger, and they cost more than the rest of a story.
    if (put_back_++ % 8 == 0) {
      ASSERT_TRUE(Start().ok());
      EXPECT_FALSE(Told());
      runtime.reset();
    } else {
      ledger::Options options;
      options.path = config_.ledger;
      options.continue_epoch = true;
      const auto opened = SqliteLedger::Open(options);
      ASSERT_TRUE(opened.ok()) << opened.status();
      EXPECT_TRUE(WaitCommitted(**opened));
      EXPECT_TRUE((*opened)->health().problems.empty());
    }
    EXPECT_TRUE(Verified(config_.ledger));
  }

  // Returns what became of the story, in a word.
  std::string TakeUpDamaged(AtStart trouble, Running running, const Folder& folder,
                            const Folder& kept, std::mt19937_64& random) {
    const std::string damaged = BytesOf(config_.ledger);
    // What is cut off a file may all be in its log.
    const bool whole = trouble == AtStart::kCut && Verified(config_.ledger);
    const absl::Status started = Start();
    const bool flipped = trouble == AtStart::kFlippedFile || trouble == AtStart::kFlippedLog;
    if (!started.ok()) {
      // A flip can make the version one of a later program.
      EXPECT_TRUE(flipped && absl::IsFailedPrecondition(started)) << started;
      PutBack(kept.path(), folder.path());
      return "refused";
    }
    const bool opened = !Exports("tranche_ledger_faults{kind=\"unopened\"} 1");
    // A bit that nobody reads at a start is looked at soon after.
    if (opened && trouble == AtStart::kFlippedFile) {
      return DamageIsTold() ? "told later" : "no damage";
    }
    Place();
    if (HasFatalFailure()) return "failed";
    if (opened) {
      if (flipped) return "unseen";
      if (whole) return "no damage";
      EXPECT_EQ(trouble, AtStart::kNothing);
      if (running == Running::kFlipped) {
        return LiveOnFlipped(random, folder.path()) ? "damage told" : "no damage";
      }
      LiveOn(running, random);
      ExpectPromised();
      return "lived on";
    }
    EXPECT_NE(trouble, AtStart::kNothing);
    EXPECT_TRUE(Told());
    ExpectLogged("ledger, unopened");
    ExpectCountedByPolicy(/*trusted=*/false);
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

  const std::shared_ptr<LogLines> log_ = std::make_shared<LogLines>();
  std::shared_ptr<spdlog::logger> before_;
  PowerCutVfs vfs_;
  std::atomic<bool> hanging_{false};
  ServeConfig config_;
  std::map<std::pair<int, bool>, std::unique_ptr<Life>> lives_;  // by pods, and whether killed
  int put_back_ = 0;
  std::set<std::string> promised_;
  std::string last_;
  int pods_ = 0;
};

TEST_P(LedgerTrouble, PodsArePlacedItIsToldAndNothingPromisedIsLost) {
  vfs_.SetWatcher([this](int64_t) { hanging_.wait(/*old=*/true); });
  const uint64_t first = PrintedSeed();
  const int64_t seeds = Size(1, 2, 1'000);
  const Trouble& trouble = GetParam();
  std::map<std::string, int64_t> ends;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(seeds); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    config_.ledger_failure = random() % 2 == 0 ? LedgerFailure::kClosed : LedgerFailure::kOpen;
    config_.ledger_patience = kPatient;
    config_.ledger_check = std::chrono::hours(24);
    config_.ledger_look = kLook;
    config_.ledger_times = kTimes;
    const Life& life = AnyLife(random);
    ASSERT_FALSE(HasFailure());
    promised_ = life.promised;
    const Folder folder;
    CopyLedger(life.files.path(), folder.path());
    config_.ledger = folder.ledger();
    if (trouble.running == Running::kHung) config_.ledger_times.hang_after = kHangs;
    if (trouble.running == Running::kFlipped) config_.ledger_check = kOften;
    log_->Clear();
    Damage(trouble.at_start, random);
    ++ends[TakeUpDamaged(trouble.at_start, trouble.running, folder, life.files, random)];
    runtime.reset();
    Heal();
    vfs_.Forget(folder.path());
    if (HasFailure()) return;
    const auto told = static_cast<int64_t>(seed - first + 1);
    if (told % 100 != 0 && told != seeds) continue;
    fmt::print("{} stories of {}: {}\n", told, trouble.name, ends);
    std::fflush(stdout);
  }
  if (trouble.running == Running::kFlipped && seeds > 100) {
    EXPECT_GE(2 * ends["damage told"], seeds) << "expected most bits to be of rows in use";
  }
}

INSTANTIATE_TEST_SUITE_P(, LedgerTrouble, testing::ValuesIn(kTroubles),
                         [](const auto& trouble) { return std::string(trouble.param.name); });

}  // namespace
}  // namespace tranche::torture
