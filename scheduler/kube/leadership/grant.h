// The right to write to the cluster: held up to a moment, and never longer than it was given for.
//
// Measured by the boot-time clock, which goes on while a machine is suspended: a process that was
// paused finds, before its next write, that its time is over. A pause between that look and the
// write itself is caught by the API server, see docs/adr/0023-one-leader.md.
//
// Thread rule: any thread. Cost: a call of the clock, 30 ns.
#pragma once

#include <atomic>
#include <cstdint>

#include "scheduler/ports/boot_time.h"

namespace tranche::kube {

class Grant {
 public:
  bool holds() const { return BootNow().count() < until_.load(std::memory_order_acquire); }
  void GiveUntil(BootTime until) { until_.store(until.count(), std::memory_order_release); }
  void End() { until_.store(0, std::memory_order_release); }

 private:
  std::atomic<int64_t> until_ = 0;  // BootTime; 0: not held
};

}  // namespace tranche::kube
