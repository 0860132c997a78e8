// Where this process spends its processor time, as `go tool pprof` and gperftools' `pprof` read it.
//
// For so many seconds the kernel interrupts whichever thread computes, a hundred times for each
// second of processor time, and its stack is written down; what waits is not seen. Names are found
// by the reader in the program, which has to be the same build. Form: the CPU profile of gperftools
// (64-bit words, then the process's map of memory).
//
// Thread rule: any thread; one profile at a time. Cost: below a hundredth of the time sampled, and
// eleven MiB while it is taken.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "scheduler/http/server.h"

namespace tranche {

class CpuProfile {
 public:
  static constexpr int kUsualSeconds = 10;
  static constexpr int kMostSeconds = 60;

  CpuProfile() = default;
  CpuProfile(const CpuProfile&) = delete;
  CpuProfile& operator=(const CpuProfile&) = delete;
  ~CpuProfile() { Stop(); }

  // GET /api/v1/profile?seconds: answers when they are over, 503 while another one is taken.
  void Answer(const http::Request& request, http::Responder respond);
  // Ends one that is being taken, which is answered with what it has. Idempotent.
  void Stop();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace tranche
