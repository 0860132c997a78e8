// Calls that happen later: what the shell uses instead of sleeping.
//
// Thread rule: After from any thread. Calls come one at a time on the implementation's thread and
// must be short; they must not throw.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace tranche {

class Timers {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~Timers() = default;
  virtual Clock::time_point Now() const = 0;
  virtual void After(std::chrono::milliseconds delay, std::function<void()> call) = 0;
};

// Timers on a thread of their own. Calls still waiting at Stop are dropped.
class ThreadTimers : public Timers {
 public:
  ThreadTimers();
  ~ThreadTimers() override;
  ThreadTimers(const ThreadTimers&) = delete;
  ThreadTimers& operator=(const ThreadTimers&) = delete;

  Clock::time_point Now() const override { return Clock::now(); }
  void After(std::chrono::milliseconds delay, std::function<void()> call) override;
  // Waits for the call that is running. Idempotent; not from a call.
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche
