// Ends the process when its orderly end takes too long: a disk that hangs holds up whoever waits
// for it, and nobody can call such a wait back.
//
// Thread rule: one thread; `overdue` is called on another.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tranche {

class EndGuard {
 public:
  // Calls `overdue` unless this is gone within `limit`.
  EndGuard(std::chrono::milliseconds limit, std::function<void()> overdue);
  ~EndGuard();
  EndGuard(const EndGuard&) = delete;
  EndGuard& operator=(const EndGuard&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace tranche
