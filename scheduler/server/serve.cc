#include "scheduler/server/serve.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "scheduler/host/free_memory.h"
#include "scheduler/server/end_guard.h"
#include "scheduler/server/log.h"
#include "scheduler/server/runtime.h"

namespace tranche {
namespace {

constexpr int kLostTheLead = 1;
constexpr int kEndHung = 1;
// From the signal to the end of the process in all, with a second for what comes after.
constexpr std::chrono::seconds kEndWithin{9};

// Blocks the signals that end the process, so that every thread made later leaves them to Wait.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
    // A peer that went away is an error of one write.
    pipe_before_ = std::signal(SIGPIPE, SIG_IGN);
  }
  ~EndSignals() {
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    if (pipe_before_ != SIG_ERR) std::signal(SIGPIPE, pipe_before_);
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  int Wait() const {
    int signal = 0;
    while (sigwait(&set_, &signal) != 0) {
    }
    return signal;
  }

 private:
  sigset_t set_;
  sigset_t before_;
  void (*pipe_before_)(int) = SIG_DFL;
};

// Files for as many connections as may be open, and for everything else; as many as the system
// allows, where that is less.
void AllowOpenFiles(int connections) {
  constexpr rlim_t kBeside = 512;
  const rlim_t wanted = static_cast<rlim_t>(connections) + kBeside;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted) {
    spdlog::warn("http.connections {}: expected {} open files to be allowed, found {}", connections,
                 wanted, limit.rlim_cur);
  }
}

}  // namespace

int Serve(const ServeConfig& config, std::ostream& err) {
  // A packaged Abseil may be one that ends the process where locks could be taken in a circle. The
  // unit tests run with that watch; whoever schedules for a cluster goes on.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  SettleLargeBlocks();
  const EndSignals signals;
  LogToStderr(config.log_level);
  AllowOpenFiles(config.limits.connections);
  RuntimeHooks hooks;
  // At once and without a further write, as a crash would: what is in memory belongs to a leader
  // that is none any more, and every file is made to survive this.
  hooks.lost = [](const std::string& why) {
    spdlog::critical("not the leader any more, ending: {}", why);
    spdlog::default_logger()->flush();
    std::_Exit(kLostTheLead);
  };
  hooks.restart = [](const std::string& why) {
    spdlog::warn("ending to be started again: {}", why);
    kill(getpid(), SIGTERM);
  };
  std::optional<EndGuard> guard;  // outlives all that may hang
  Runtime runtime(config, std::move(hooks));
  if (const absl::Status started = runtime.Start(); !started.ok()) {
    err << "tranche: " << std::string(started.message()) << '\n';
    return 2;
  }
  const int signal = signals.Wait();
  spdlog::info("signal {}: finishing requests in flight", signal);
  // What a hung disk holds up is as safe as in a crash: every file is made to survive one.
  guard.emplace(kEndWithin, [] {
    spdlog::critical("the end hangs, as on a disk that does not answer: ending at once");
    spdlog::default_logger()->flush();
    std::_Exit(kEndHung);
  });
  runtime.Stop();
  spdlog::info("stopped");
  return 0;
}

}  // namespace tranche
