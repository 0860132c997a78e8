#include "scheduler/host/timers.h"

#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tranche {

struct ThreadTimers::Impl {
  absl::Mutex mutex;
  absl::CondVar changed;
  std::multimap<Clock::time_point, std::function<void()>> calls ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::thread thread;

  void Run() {
    const absl::MutexLock lock(&mutex);
    while (!stopping) {
      if (calls.empty()) {
        changed.Wait(&mutex);
        continue;
      }
      const auto first = calls.begin();
      if (first->first > Clock::now()) {
        changed.WaitWithTimeout(&mutex, absl::FromChrono(first->first - Clock::now()));
        continue;
      }
      const std::function<void()> call = std::move(first->second);
      calls.erase(first);
      mutex.Unlock();
      call();
      mutex.Lock();
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
    const absl::MutexLock lock(&impl_->mutex);
    if (impl_->stopping) return;
    const auto added = impl_->calls.emplace(due, std::move(call));
    earliest = added == impl_->calls.begin();
  }
  if (earliest) impl_->changed.Signal();
}

void ThreadTimers::Stop() {
  {
    const absl::MutexLock lock(&impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.Signal();
  if (impl_->thread.joinable()) impl_->thread.join();
  const absl::MutexLock lock(&impl_->mutex);
  impl_->calls.clear();
}

}  // namespace tranche
