#include "bench/http/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <thread>
#include <utility>

namespace tranche::bench {

absl::StatusOr<Process> Process::Start(const std::vector<std::string>& arguments,
                                       const std::string& log, int core) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) {
    return absl::UnavailableError(
        fmt::format("expected to start {}, found: {}", arguments[0], std::strerror(errno)));
  }
  if (pid > 0) return Process(pid);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (core >= 0) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<unsigned>(core), &cores);
    sched_setaffinity(0, sizeof(cores), &cores);
  }
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0) {
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
  }
  execv(argv[0], argv.data());
  _exit(127);
}

Process::Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

Process::~Process() {
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  for (int i = 0; i < 100; ++i) {
    if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Process::running() { return kill(pid_, 0) == 0 && waitpid(pid_, nullptr, WNOHANG) == 0; }

std::chrono::nanoseconds Process::CpuTime() const {
  clockid_t clock = 0;
  timespec time{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

int64_t Process::StatusMib(std::string_view line) const {
  std::ifstream status(fmt::format("/proc/{}/status", pid_));
  std::string word;
  while (status >> word) {
    if (word != line) continue;
    int64_t kib = 0;
    status >> kib;
    return kib / 1024;
  }
  return 0;
}

uint16_t FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  uint16_t port = 0;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    port = ntohs(address.sin_port);
  }
  close(fd);
  return port;
}

}  // namespace tranche::bench
