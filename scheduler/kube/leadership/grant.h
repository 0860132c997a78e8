// The right to write to the cluster: held up to a moment, and never longer than it was given for.
//
// Measured by the boot-time clock, which goes on while a machine is suspended: a process that was
// paused finds, before its next write, that its time is over. A pause between that look and the
// write itself is caught by the API server, see docs/adr/0023-one-leader.md.
//
// Thread rule: any thread. Cost: a call of the clock, 30 ns.
#pragma once

#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tranche::kube {

using BootTime = std::chrono::nanoseconds;  // since the machine started

inline BootTime BootNow() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

class Grant {
 public:
  bool holds() const { return BootNow().count() < until_.load(std::memory_order_acquire); }
  void GiveUntil(BootTime until) { until_.store(until.count(), std::memory_order_release); }
  void End() { until_.store(0, std::memory_order_release); }

 private:
  std::atomic<int64_t> until_ = 0;  // BootTime; 0: not held
};

}  // namespace tranche::kube
