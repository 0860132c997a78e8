// A child process on a loopback port, ended with its owner.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tranche::bench {

class Process {
 public:
  // Starts `arguments[0]`; output goes to `log`. Pinned to one core when `core` >= 0.
  static absl::StatusOr<Process> Start(const std::vector<std::string>& arguments,
                                       const std::string& log, int core);
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();  // SIGTERM, and SIGKILL after 10 s

  // Resident memory now, in MiB; 0 when the process is gone.
  int64_t ResidentMib() const { return StatusMib("VmRSS:"); }
  // The most it ever was; likewise.
  int64_t PeakMib() const { return StatusMib("VmHWM:"); }
  // User and system time of all its threads so far; zero when the process is gone.
  std::chrono::nanoseconds CpuTime() const;
  bool running();

 private:
  explicit Process(pid_t pid) : pid_(pid) {}
  int64_t StatusMib(std::string_view line) const;
  pid_t pid_ = -1;
};

// A loopback port nobody listens on at this moment.
uint16_t FreePort();

}  // namespace tranche::bench
