#include "scheduler/ledger/worker.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace tranche::ledger {
namespace {

class Thread : public Worker {
 public:
  explicit Thread(Step step) : step_(std::move(step)) {
    thread_ = std::thread([this] { Run(); });
  }
  ~Thread() override { Join(); }

  void Wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }
  void Join() override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    while (const std::optional<Rest> rest = step_()) {
      std::unique_lock lock(mutex_);
      const auto woken = [this] { return woken_; };
      if (*rest == kUntilWoken) {
        changed_.wait(lock, woken);
      } else if (*rest > Rest::zero()) {
        changed_.wait_for(lock, *rest, woken);
      }
      woken_ = false;
    }
  }

  const Step step_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Worker> ThreadWorker(Worker::Step step) {
  return std::make_unique<Thread>(std::move(step));
}

std::unique_ptr<Worker> StartWork(const Workers& workers, Work work, Worker::Step step) {
  return workers ? workers(work, std::move(step)) : ThreadWorker(std::move(step));
}

}  // namespace tranche::ledger
