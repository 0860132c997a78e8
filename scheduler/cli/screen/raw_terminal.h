// The terminal of this process, taken over for a view that stays: the other
// screen, no cursor, keys as they are pressed. It is given back however that
// ends: by the destructor, by a signal that ends the process, or by a crash.
//
// One at a time, one thread; other threads may run.
#pragma once

#include <termios.h>

#include <csignal>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tranche {

class RawTerminal {
 public:
  struct Size {
    std::size_t rows = 24;
    std::size_t columns = 80;
  };

  // Standard input and output are a terminal.
  static bool IsThere();

  RawTerminal();
  // Gives it back, and ends the process by the signal that came, if one did.
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  // Why it cannot be taken over; OK: it is.
  const absl::Status& status() const { return status_; }
  Size size() const;
  // In place of what is shown.
  void Show(std::string_view page) const;

  enum class Woken : uint8_t { kKeys, kResized, kOther, kTime, kEnd };
  // Until there are bytes of keys, which are added to `bytes`, the window has
  // another size, `other` can be read, or the time is over. kEnd: a signal
  // came, or the terminal is gone.
  Woken Wait(int milliseconds, int other, std::string& bytes);

 private:
  absl::Status TakeOver();

  bool taken_ = false;
  int signals_ = -1;
  int ended_by_ = 0;
  sigset_t mask_{};  // before
  // Of TakeOver, which sets the others: made after them.
  absl::Status status_;
};

}  // namespace tranche
