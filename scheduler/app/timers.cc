#include "scheduler/app/timers.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace tranche::app {

struct ThreadTimers::Impl {
  std::mutex mutex;
  std::condition_variable changed;
  std::multimap<Clock::time_point, std::function<void()>> calls;  // guarded by mutex
  bool stopping = false;                                          // guarded by mutex
  std::thread thread;

  void Run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      if (calls.empty()) {
        changed.wait(lock);
        continue;
      }
      const auto first = calls.begin();
      if (first->first > Clock::now()) {
        // A copy: the entry may be gone when the wait looks at the time again.
        const Clock::time_point due = first->first;
        changed.wait_until(lock, due);
        continue;
      }
      const std::function<void()> call = std::move(first->second);
      calls.erase(first);
      lock.unlock();
      call();
      lock.lock();
    }
  }
};

ThreadTimers::ThreadTimers() : impl_(std::make_unique<Impl>()) {
  impl_->thread = std::thread([this] { impl_->Run(); });
}

ThreadTimers::~ThreadTimers() { Stop(); }

void ThreadTimers::After(std::chrono::milliseconds delay, std::function<void()> call) {
  const Clock::time_point due = Clock::now() + delay;
  bool earliest = false;
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->stopping) return;
    const auto added = impl_->calls.emplace(due, std::move(call));
    earliest = added == impl_->calls.begin();
  }
  if (earliest) impl_->changed.notify_one();
}

void ThreadTimers::Stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_one();
  if (impl_->thread.joinable()) impl_->thread.join();
  const std::lock_guard lock(impl_->mutex);
  impl_->calls.clear();
}

}  // namespace tranche::app
