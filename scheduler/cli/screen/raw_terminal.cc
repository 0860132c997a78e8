#include "scheduler/cli/screen/raw_terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tranche {
namespace {

// The other screen, no cursor, no line breaks of the terminal's own; and back.
constexpr std::string_view kTake = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kGiveBack = "\x1b[?7h\x1b[?25h\x1b[0m\x1b[?1049l";

// Those that end a process and can be waited for, and one that tells of another
// size.
constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array kCrashes = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// For the handler of crashes, which can reach nothing else.
termios saved;

void WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::write(STDOUT_FILENO, text.data(), text.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Functions that a handler may call (signal-safety(7)).
void GiveBackNow() {
  WriteAll(kGiveBack);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &saved);
}

void OnCrash(int number) {
  GiveBackNow();
  // SA_RESETHAND has put the usual end back.
  ::raise(number);
}

void HandleCrashes(bool handle) {
  for (const int number : kCrashes) {
    struct sigaction action {};
    action.sa_handler = handle ? OnCrash : SIG_DFL;
    action.sa_flags = SA_RESETHAND | SA_NODEFER;
    ::sigaction(number, &action, nullptr);
  }
}

}  // namespace

bool RawTerminal::IsThere() { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1; }

RawTerminal::RawTerminal() : status_(TakeOver()) {}

absl::Status RawTerminal::TakeOver() {
  if (::tcgetattr(STDIN_FILENO, &saved) != 0) {
    return absl::FailedPreconditionError(
        fmt::format("expected a terminal, found none: {}", std::strerror(errno)));
  }
  sigset_t waited;
  sigemptyset(&waited);
  for (const int number : kEnding) sigaddset(&waited, number);
  sigaddset(&waited, SIGWINCH);
  // Threads that begin later inherit it.
  ::pthread_sigmask(SIG_BLOCK, &waited, &mask_);
  signals_ = ::signalfd(-1, &waited, SFD_CLOEXEC | SFD_NONBLOCK);
  taken_ = true;
  HandleCrashes(/*handle=*/true);
  termios raw = saved;
  raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG | IEXTEN);
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL | BRKINT | INPCK | ISTRIP);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  if (signals_ < 0 || ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0) {
    return absl::FailedPreconditionError(
        fmt::format("the terminal cannot be taken over: {}", std::strerror(errno)));
  }
  WriteAll(kTake);
  return absl::OkStatus();
}

RawTerminal::~RawTerminal() {
  if (!taken_) return;
  GiveBackNow();
  HandleCrashes(/*handle=*/false);
  if (signals_ >= 0) ::close(signals_);
  ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  if (ended_by_ != 0) ::raise(ended_by_);
}

RawTerminal::Size RawTerminal::size() const {
  winsize window{};
  Size size;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) return size;
  if (window.ws_row > 0) size.rows = window.ws_row;
  if (window.ws_col > 0) size.columns = window.ws_col;
  return size;
}

void RawTerminal::Show(std::string_view page) const {
  std::string text = "\x1b[H";
  for (const char c : page) {
    if (c == '\n') text += "\x1b[K\r";
    text += c;
  }
  WriteAll(text + "\x1b[J");
}

RawTerminal::Woken RawTerminal::Wait(int milliseconds, int other, std::string& bytes) {
  std::array<pollfd, 3> watched = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals_, POLLIN, 0},
                                   pollfd{other, POLLIN, 0}};
  const int ready = ::poll(watched.data(), watched.size(), milliseconds);
  if (ready == 0) return Woken::kTime;
  if (ready < 0) return errno == EINTR ? Woken::kTime : Woken::kEnd;
  if (watched[1].revents != 0) {
    signalfd_siginfo told{};
    if (::read(signals_, &told, sizeof told) == sizeof told) {
      if (told.ssi_signo == SIGWINCH) return Woken::kResized;
      ended_by_ = static_cast<int>(told.ssi_signo);
      return Woken::kEnd;
    }
  }
  if (watched[0].revents != 0) {
    std::array<char, 256> read{};
    const ssize_t count = ::read(STDIN_FILENO, read.data(), read.size());
    if (count <= 0) return Woken::kEnd;
    bytes.append(read.data(), static_cast<std::size_t>(count));
    return Woken::kKeys;
  }
  return Woken::kOther;
}

}  // namespace tranche
