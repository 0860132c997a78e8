#include "scheduler/agent/mps_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/probe/program.h"
#include "scheduler/turns/look.h"

namespace tranche::agent {
namespace {

constexpr std::chrono::seconds kDaemonRest{5};     // before it is started again
constexpr std::chrono::seconds kInquiryPeriod{5};  // between questions while all is well
constexpr std::chrono::milliseconds kAnswerTime{2'000};
constexpr std::chrono::milliseconds kEndingNap{20};
constexpr int kNapsToEnd = 150;
constexpr int kNoProgram = 127;

std::vector<std::string> EnvironmentOf(const std::string& pipe) {
  std::vector<std::string> variables = probe::SmallEnvironment();
  variables.push_back(fmt::format("{}={}", kMpsPipeVariable, pipe));
  return variables;
}

// Of the new process: becomes the daemon, and ends with the thread that made it. What is called
// here is safe after a fork of a process with threads.
[[noreturn]] void Become(char* const* arguments, char* const* environment, bool verbose) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  if (!verbose) {
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
  }
  execvpe(arguments[0], arguments, environment);
  _exit(kNoProgram);
}

}  // namespace

MpsDaemon::~MpsDaemon() {
  if (pid_ == 0) return;
  std::string answer;
  Ask("quit -t 1", answer);
  for (int nap = 0; nap < kNapsToEnd && pid_ != 0; ++nap) {
    NoteEnd();
    if (pid_ != 0) std::this_thread::sleep_for(kEndingNap);
  }
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void MpsDaemon::Step(Time now) {
  if (pid_ != 0) {
    NoteEnd();
    if (pid_ == 0) spdlog::warn("{}", problem_);
  }
  if (pid_ == 0) {
    // It is asked from the next step on.
    if (!started_at_ || now - *started_at_ >= kDaemonRest) Start(now);
    return;
  }
  const bool due = !asked_at_ || !problem_.empty() || now - *asked_at_ >= kInquiryPeriod;
  if (!due) return;
  asked_at_ = now;
  std::string problem = Inquire();
  if (problem != problem_) {
    if (problem.empty()) {
      spdlog::info("the MPS control daemon is ready");
    } else {
      spdlog::warn("{}", problem);
    }
  }
  problem_ = std::move(problem);
}

void MpsDaemon::Start(Time now) {
  started_at_ = now;
  asked_at_.reset();
  std::error_code made;
  std::filesystem::create_directories(options_.pipe, made);
  if (made) {
    problem_ =
        fmt::format("expected a folder {} for MPS, found: {}", options_.pipe, made.message());
    return;
  }
  std::vector<std::string> words = {options_.control, "-f", "-multiuser-server"};
  std::vector<std::string> variables = EnvironmentOf(options_.pipe);
  const std::vector<char*> arguments = probe::ExecPointers(words);
  const std::vector<char*> environment = probe::ExecPointers(variables);
  const pid_t pid = fork();
  if (pid == 0) Become(arguments.data(), environment.data(), options_.verbose);
  if (pid < 0) {
    problem_ =
        fmt::format("expected to start {}, found: {}", options_.control, std::strerror(errno));
    return;
  }
  pid_ = pid;
  problem_ = "the MPS control daemon is starting";
}

void MpsDaemon::NoteEnd() {
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return;
  pid_ = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoProgram) {
    problem_ =
        fmt::format("expected the program {} of NVIDIA's driver, found none", options_.control);
  } else if (WIFEXITED(status)) {
    problem_ = fmt::format("the MPS control daemon ended with code {}", WEXITSTATUS(status));
  } else {
    problem_ = fmt::format("the MPS control daemon was ended by signal {}", WTERMSIG(status));
  }
}

// The error, or nothing and what it answered.
std::string MpsDaemon::Ask(const std::string& question, std::string& answer) const {
  probe::Program program{options_.control, {}, kAnswerTime};
  program.input = question + "\n";
  auto output = probe::OutputOf(program, {EnvironmentOf(options_.pipe)});
  if (!output.ok()) {
    return fmt::format("the MPS control daemon does not answer: {}",
                       std::string(output.status().message()));
  }
  answer = *std::move(output);
  return "";
}

std::string MpsDaemon::Inquire() const {
  std::string list;
  if (std::string error = Ask("get_server_list", list); !error.empty()) return error;
  std::istringstream servers(list);
  for (std::string server; servers >> server;) {
    std::string status;
    if (std::string error = Ask("get_server_status " + server, status); !error.empty()) {
      return error;
    }
    if (status.find("FAULT") == std::string::npos) continue;
    return "its MPS server had a fault and takes no new programs until those that run have ended";
  }
  return "";
}

}  // namespace tranche::agent
