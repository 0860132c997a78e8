#include "scheduler/embedded/event_queue.h"

#include <utility>

namespace tranche::embedded {

EventQueue::EventQueue(ClusterEvents& events) : events_(events) {}

void EventQueue::Push(Step step) {
  const std::lock_guard lock(mutex_);
  steps_.push_back(std::move(step));
  ++queued_;
}

void EventQueue::Flush() {
  std::unique_lock lock(mutex_);
  if (delivering_ && deliverer_ == std::this_thread::get_id()) return;
  const uint64_t target = queued_;
  while (delivered_ < target) {
    if (delivering_) {
      delivered_changed_.wait(lock);
    } else {
      Deliver(lock);
    }
  }
}

void EventQueue::Start() {
  std::unique_lock lock(mutex_);
  if (!delivering_) Deliver(lock);
}

void EventQueue::Deliver(std::unique_lock<std::mutex>& lock) {
  delivering_ = true;
  deliverer_ = std::this_thread::get_id();
  while (!steps_.empty()) {
    Step step = std::move(steps_.front());
    steps_.pop_front();
    lock.unlock();
    step(events_);
    step = nullptr;
    lock.lock();
    ++delivered_;
    delivered_changed_.notify_all();
  }
  delivering_ = false;
}

}  // namespace tranche::embedded
