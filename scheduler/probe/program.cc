#include "scheduler/probe/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "scheduler/probe/file_handle.h"
#include "topology/base/status.h"

namespace tranche::probe {
namespace {

using Clock = std::chrono::steady_clock;

// Starts it in a process group of its own, standard output into `output`.
absl::StatusOr<pid_t> Start(const Program& program, const Surroundings& around, int input,
                            int output) {
  std::vector<std::string> words = {program.path};
  words.insert(words.end(), program.arguments.begin(), program.arguments.end());
  std::vector<std::string> variables =
      around.environment.empty() ? SmallEnvironment() : around.environment;
  const std::vector<char*> arguments = ExecPointers(words);
  const std::vector<char*> environment = ExecPointers(variables);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (input >= 0) {
    posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  } else if (!around.interactive) {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  if (!around.shows_errors) {
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (!around.interactive) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, program.path.c_str(), &files, &attributes, arguments.data(),
                                 environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return pid;
  const std::string text =
      fmt::format("expected the program {}, found: {}", program.path, std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(text) : absl::UnavailableError(text);
}

// The status it ended with; false when it has not by then.
bool WaitFor(pid_t pid, Clock::time_point deadline, int& status) {
  constexpr auto kNap = std::chrono::milliseconds(1);
  while (waitpid(pid, &status, WNOHANG) != pid) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

absl::Status TooLate(const Program& program) {
  return absl::DeadlineExceededError(
      fmt::format("{}: expected it to end within {} ms, found it running", program.path,
                  program.timeout.count()));
}

// What the program is to read, written into a pipe, which has room for it; -1: nothing. Error: the
// system gave no pipe.
absl::StatusOr<int> InputOf(const Program& program) {
  if (program.input.empty()) return -1;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return absl::UnavailableError(fmt::format("expected a pipe, found: {}", std::strerror(errno)));
  }
  const FileHandle writing(ends[1]);
  const ssize_t size = write(writing.get(), program.input.data(), program.input.size());
  if (size == static_cast<ssize_t>(program.input.size())) return ends[0];
  close(ends[0]);
  return absl::UnavailableError(
      fmt::format("expected a pipe with room for {} bytes, found {}", program.input.size(), size));
}

// Reads to the end.
absl::StatusOr<std::string> ReadAll(const Program& program, int input, Clock::time_point deadline) {
  std::string text;
  std::array<char, 16 * 1024> piece{};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waiting{input, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return TooLate(program);
    const ssize_t got = read(input, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (ready < 0 || got < 0) {
      return absl::UnavailableError(
          fmt::format("{}: expected its output, found: {}", program.path, std::strerror(errno)));
    }
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > program.output_limit) {
      return absl::ResourceExhaustedError(
          fmt::format("{}: expected at most {} bytes of output, found more", program.path,
                      program.output_limit));
    }
  }
}

}  // namespace

std::vector<std::string> SmallEnvironment() {
  std::vector<std::string> variables = {"LC_ALL=C"};
  for (const char* const name : {"PATH", "LD_LIBRARY_PATH"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr) variables.push_back(fmt::format("{}={}", name, value));
  }
  return variables;
}

std::vector<char*> ExecPointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<std::string> OutputOf(const Program& program, const Surroundings& around) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError(fmt::format("expected a pipe, found: {}", std::strerror(errno)));
  }
  const FileHandle input(ends[0]);
  const Clock::time_point deadline = Clock::now() + program.timeout;
  absl::StatusOr<pid_t> pid = absl::UnknownError("");
  {
    // Closed here once the program has it, or the end of the output would never come.
    const FileHandle output(ends[1]);
    TRANCHE_ASSIGN_OR_RETURN(const int reads, InputOf(program));
    const FileHandle given(reads);
    pid = Start(program, around, reads, output.get());
  }
  if (!pid.ok()) return pid.status();
  absl::StatusOr<std::string> text = ReadAll(program, input.get(), deadline);
  int status = 0;
  // It may have closed its output and go on.
  if (text.ok() && !WaitFor(*pid, deadline, status)) text = TooLate(program);
  if (!text.ok()) {
    kill(around.interactive ? *pid : -*pid, SIGKILL);
    waitpid(*pid, &status, 0);
    return text;
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::UnavailableError(
        fmt::format("{}: expected exit code 0, found {}", program.path,
                    WIFEXITED(status) ? fmt::format("{}", WEXITSTATUS(status)) : "a signal"));
  }
  return text;
}

}  // namespace tranche::probe
