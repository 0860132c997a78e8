// Work that has a thread to itself, as steps of which each says how long to rest after it. Whoever
// simulates time takes the steps by itself instead.
//
// Thread rule: Wake from any thread, also while holding what the steps lock; Join from the owner's.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace tranche::ledger {

class Worker {
 public:
  using Rest = std::chrono::milliseconds;
  static constexpr Rest kUntilWoken = Rest::max();
  // How long to rest, unless woken; nullopt: the work is over.
  using Step = std::function<std::optional<Rest>()>;

  virtual ~Worker() = default;
  // Ends the rest. Not lost where it comes during a step.
  virtual void Wake() = 0;
  // Waits until the work is over. Idempotent.
  virtual void Join() = 0;
};

enum class Work : uint8_t {
  kWrite,  // commits
  kGuard,  // watches over them
  kCheck,  // of the whole file
  kCare,   // copies, and trying to take up a ledger
};
// How long the writing thread may take for a commit, and rests after one that failed.
struct CommitTimes {
  std::chrono::milliseconds hang_after{2'000};      // what takes longer counts as failed
  std::chrono::milliseconds first_pause{100};       // doubles with each failure
  std::chrono::milliseconds nameless_pause{3'000};  // at least, where the file has lost its name
};

// Begins the steps, at once.
using Workers = std::function<std::unique_ptr<Worker>(Work work, Worker::Step step)>;

// On a thread of its own.
std::unique_ptr<Worker> ThreadWorker(Worker::Step step);
// By `workers`; null: ThreadWorker.
std::unique_ptr<Worker> StartWork(const Workers& workers, Work work, Worker::Step step);

}  // namespace tranche::ledger
