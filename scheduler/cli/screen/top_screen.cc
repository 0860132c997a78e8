#include "scheduler/cli/screen/top_screen.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "scheduler/cli/screen/raw_terminal.h"

namespace tranche {
namespace {

// Asks again and again, so that keys never wait for a server.
class Asker {
 public:
  Asker(const TopQuestion& ask, std::chrono::milliseconds pace)
      : ask_(ask), pace_(pace), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Asker() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    if (bell_ >= 0) ::close(bell_);
  }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  // Can be read when there is an answer.
  int bell() const { return bell_; }
  void Take(TopView& view) {
    uint64_t rings = 0;
    [[maybe_unused]] const ssize_t read = ::read(bell_, &rings, sizeof rings);
    const std::lock_guard lock(mutex_);
    if (answer_) answer_(view);
    answer_ = nullptr;
  }

 private:
  void Run() {
    for (;;) {
      std::function<void(TopView&)> answer = ask_();
      std::unique_lock lock(mutex_);
      answer_ = std::move(answer);
      const uint64_t once = 1;
      [[maybe_unused]] const ssize_t rung = ::write(bell_, &once, sizeof once);
      if (changed_.wait_for(lock, pace_, [this] { return ending_; })) return;
    }
  }

  const TopQuestion& ask_;
  const std::chrono::milliseconds pace_;
  const int bell_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;                   // guarded by mutex_
  std::function<void(TopView&)> answer_;  // likewise
  std::thread thread_;
};

}  // namespace

absl::Status StayOnTop(TopView& view, const TopQuestion& ask, std::chrono::milliseconds pace,
                       bool colour) {
  // Joined when the terminal is given back already: a question may take long to
  // end.
  Asker asker(ask, pace);
  RawTerminal terminal;
  if (!terminal.status().ok()) return terminal.status();
  asker.Start();
  constexpr int kEscapeMilliseconds = 50;
  std::string bytes;
  for (;;) {
    const RawTerminal::Size size = terminal.size();
    terminal.Show(view.Page(size.rows, {.columns = size.columns, .colour = colour}));
    const int patience = bytes.empty() ? -1 : kEscapeMilliseconds;
    switch (terminal.Wait(patience, asker.bell(), bytes)) {
      case RawTerminal::Woken::kEnd:
        return absl::OkStatus();
      case RawTerminal::Woken::kOther:
        asker.Take(view);
        continue;
      case RawTerminal::Woken::kResized:
        continue;
      case RawTerminal::Woken::kTime:
        // Nothing follows: an escape alone is a key, a sequence that never ended is none.
        if (bytes == "\x1b") view.Press({Key::Kind::kEscape});
        bytes.clear();
        continue;
      case RawTerminal::Woken::kKeys:
        break;
    }
    std::string rest;
    for (const Key& key : ReadKeys(bytes, rest)) {
      if (!view.Press(key)) return absl::OkStatus();
    }
    bytes = std::move(rest);
  }
}

}  // namespace tranche
