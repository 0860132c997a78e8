// Critical errors that the driver tells of while the agent runs: each closes its GPU for new work.
//
// NVML is held open meanwhile, for that is the only way to hear of them. What was heard is kept in
// memory alone: whoever has mended the GPU starts the agent anew.
//
// Thread rule: any thread; one of its own listens.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "topology/base/ids.h"

namespace tranche::agent {

class HealthWatch {
 public:
  explicit HealthWatch(std::string nvml_library);
  // Waits for the driver to answer: a second, if it does not hang.
  ~HealthWatch();
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;

  // Why GPUs are closed: the first error of each.
  std::map<GpuUuid, std::string> problems() const;

 private:
  void Watch();
  void ListenOnce();

  const std::string library_;
  std::atomic<bool> ending_ = false;
  mutable absl::Mutex mutex_;
  std::map<GpuUuid, std::string> problems_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// True for errors of a program that used the GPU, after which the GPU is as good as before.
bool IsOfAProgram(uint64_t xid);

}  // namespace tranche::agent
