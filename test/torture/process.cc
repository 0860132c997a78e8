#include "test/torture/process.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <random>

#include "scheduler/ledger/sqlite_ledger.h"
#include "test/torture/load.h"
#include "topology/base/check.h"

namespace tranche::torture {
namespace {

// Prints acknowledgements, and lets the writer wait until few are missing.
class Acknowledgements {
 public:
  void Arrived(std::size_t batches) {
    const std::string line = fmt::format("{}\n", batches);
    TRANCHE_CHECK(write(STDOUT_FILENO, line.data(), line.size()) ==
                  static_cast<ssize_t>(line.size()));
    const std::lock_guard lock(mutex_);
    arrived_ = batches;
    changed_.notify_all();
  }
  void WaitFor(std::size_t batches) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= batches; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t arrived_ = 0;
};

}  // namespace

int WriteUntilKilled(int argc, char** argv) {
  TRANCHE_CHECK(argc == 6);
  ledger::Options options;
  options.path = argv[2];
  const int life = std::atoi(argv[3]);
  options.epoch = life;
  const uint64_t seed = std::strtoull(argv[4], nullptr, 10);
  options.now = Instant(Millis(std::atoll(argv[5])));
  options.group_delay = std::chrono::milliseconds(1);
  const absl::StatusOr<std::unique_ptr<ledger::SqliteLedger>> ledger =
      ledger::SqliteLedger::Open(options);
  if (!ledger.ok()) {
    fmt::print("{}\n", ledger.status().ToString());
    return 1;
  }
  Load load(seed, life, options.now, (*ledger)->history().open);
  std::mt19937_64 random(seed + 1);
  Acknowledgements acknowledgements;
  for (std::size_t appended = 0;;) {
    const std::size_t until = appended + 1 + random() % 4;
    for (; appended < until; ++appended) {
      Batch batch = load.Next();
      (*ledger)->Append(std::move(batch.events), std::move(batch.closings));
    }
    (*ledger)->WhenCommitted([&acknowledgements, appended](bool done) {
      if (done) acknowledgements.Arrived(appended);
    });
    if (random() % 16 == 0) (*ledger)->Heartbeat(load.now(), {});
    // Now it runs ahead, now it waits for every commit.
    const std::size_t ahead = random() % 8 == 0 ? 0 : kMostUnacknowledged - 8;
    if (appended > ahead) acknowledgements.WaitFor(appended - ahead);
  }
}

WriterProcess::WriterProcess(const WriterJob& job) {
  std::array<int, 2> ends{};
  TRANCHE_CHECK(pipe(ends.data()) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::array<std::string, 6> words = {"torture_tests",
                                      kWriterFlag,
                                      job.path,
                                      std::to_string(job.life),
                                      std::to_string(job.seed),
                                      std::to_string(job.now.time_since_epoch().count())};
  std::array<char*, 7> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  TRANCHE_CHECK(
      posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, arguments.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  output_ = ends[0];
}

WriterProcess::~WriterProcess() {
  Kill();
  close(output_);
}

std::string WriterProcess::ReadLine() {
  std::string line;
  char byte = 0;
  while (read(output_, &byte, 1) == 1) {
    if (byte == '\n') return line;
    line.push_back(byte);
  }
  return "";
}

void WriterProcess::Kill() {
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

}  // namespace tranche::torture
