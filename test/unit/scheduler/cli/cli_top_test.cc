// `tranche top` on a terminal: it stays, follows keys, and gives the terminal back however it ends.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>

#include "test/fakes/places.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

constexpr const char* kTaken = "\x1b[?1049h";
constexpr const char* kGivenBack = "\x1b[?1049l";

// The program with a terminal of its own.
class OnTerminal {
 public:
  explicit OnTerminal(const std::string& url) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = 100;
    int terminal = -1;
    EXPECT_EQ(::openpty(&ours_, &terminal, nullptr, nullptr, &size), 0);
    EXPECT_EQ(::tcgetattr(terminal, &before_), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::login_tty(terminal);
      // Shells have what they run in the background ignore these.
      for (const int number : {SIGINT, SIGQUIT}) ::signal(number, SIG_DFL);
      ::closefrom(3);  // the server's sockets, which would keep its port open
      ::execl(fakes::TrancheBinary(), "tranche", "top", "--server", url.c_str(), nullptr);
      ::_exit(127);
    }
    // Open, so that its settings outlive the program.
    theirs_ = terminal;
  }
  ~OnTerminal() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(theirs_);
    ::close(ours_);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  void Press(const std::string& keys) const {
    EXPECT_EQ(::write(ours_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  void Send(int number) const { ::kill(child_, number); }
  void Resize(unsigned short rows) const {
    winsize size{};
    size.ws_row = rows;
    size.ws_col = 100;
    EXPECT_EQ(::ioctl(ours_, TIOCSWINSZ, &size), 0);
  }
  // Whether it comes within some seconds, in what was written since the last time it was asked for.
  bool Shows(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      const std::size_t found = seen_.find(text);
      if (found != std::string::npos) {
        seen_.erase(0, found + text.size());
        return true;
      }
      if (!Read(100)) break;
    }
    ADD_FAILURE() << "expected " << text << ", found " << seen_;
    return false;
  }
  // The status that waitpid tells.
  int End() {
    int status = -1;
    for (int i = 0; i < 200 && ::waitpid(child_, &status, WNOHANG) == 0; ++i) Read(100);
    child_ = -1;
    while (Read(0)) {
    }
    return status;
  }
  void ExpectGivenBack() {
    EXPECT_NE(seen_.find(kGivenBack), std::string::npos) << seen_;
    EXPECT_NE(seen_.find("\x1b[?25h"), std::string::npos) << "the cursor is seen";
    termios after{};
    EXPECT_EQ(::tcgetattr(theirs_, &after), 0);
    EXPECT_EQ(after.c_lflag, before_.c_lflag);
    EXPECT_EQ(after.c_iflag, before_.c_iflag);
    EXPECT_EQ(after.c_oflag, before_.c_oflag);
  }

 private:
  bool Read(int milliseconds) {
    pollfd watched{ours_, POLLIN, 0};
    if (::poll(&watched, 1, milliseconds) == 0) return milliseconds > 0;
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(ours_, bytes.data(), bytes.size());
    if (count <= 0) return false;
    seen_.append(bytes.data(), static_cast<std::size_t>(count));
    return true;
  }

  int ours_ = -1;
  int theirs_ = -1;
  pid_t child_ = -1;
  termios before_{};
  std::string seen_;
};

class TopOnTerminal : public LiveServer {
 protected:
  void SetUp() override {
    LiveServer::SetUp();
    Apply(MakeNode("gpu-1", 2));
    const Json pod = MakePod("first", {{"nvidia.com/gpu", "1"}});
    Apply(pod);
    ASSERT_EQ(Schedule(pod, {"gpu-1"}), "gpu-1");
  }
};

TEST_F(TopOnTerminal, StaysAndTellsAnewUntilItIsQuit) {
  OnTerminal terminal(url());
  ASSERT_TRUE(terminal.Shows(kTaken));
  EXPECT_TRUE(terminal.Shows("first"));
  const Json pod = MakePod("second", {{"nvidia.com/gpu", "1"}});
  Apply(pod);
  EXPECT_TRUE(terminal.Shows("second")) << "told without a key";
  terminal.Press("/first");
  EXPECT_TRUE(terminal.Shows("/first_"));
  terminal.Press("\r");
  EXPECT_TRUE(terminal.Shows("/first: 1 of 2 pods"));
  terminal.Resize(10);
  EXPECT_TRUE(terminal.Shows("/first: 1 of 2 pods")) << "drawn anew";
  terminal.Press("q");
  const int status = terminal.End();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  terminal.ExpectGivenBack();
}

TEST_F(TopOnTerminal, EverySignalGivesTheTerminalBack) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV}) {
    SCOPED_TRACE(strsignal(number));
    OnTerminal terminal(url());
    ASSERT_TRUE(terminal.Shows(kTaken));
    ASSERT_TRUE(terminal.Shows("first"));
    terminal.Send(number);
    const int status = terminal.End();
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), number);
    terminal.ExpectGivenBack();
  }
}

TEST_F(TopOnTerminal, CtrlCIsAKey) {
  OnTerminal terminal(url());
  ASSERT_TRUE(terminal.Shows("first"));
  terminal.Press("\x03");
  EXPECT_TRUE(WIFEXITED(terminal.End()));
  terminal.ExpectGivenBack();
}

TEST_F(TopOnTerminal, AServerThatGoesAwayIsSaidAndTheViewStays) {
  OnTerminal terminal(url());
  ASSERT_TRUE(terminal.Shows("first"));
  runtime.reset();
  EXPECT_TRUE(terminal.Shows("expected a tranche server"));
  terminal.Press("q");
  EXPECT_TRUE(WIFEXITED(terminal.End()));
  terminal.ExpectGivenBack();
}

}  // namespace THIS_FILE
}  // namespace tranche
