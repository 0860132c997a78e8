#include "scheduler/embedded/event_queue.h"

#include <utility>

namespace tranche::embedded {

EventQueue::EventQueue(ClusterEvents& events) : events_(events) {}

void EventQueue::Push(Step step) {
  const absl::MutexLock lock(&mutex_);
  steps_.push_back(std::move(step));
  ++queued_;
}

void EventQueue::Flush() {
  const absl::MutexLock lock(&mutex_);
  if (delivering_ && deliverer_ == std::this_thread::get_id()) return;
  const uint64_t target = queued_;
  while (delivered_ < target) {
    if (delivering_) {
      delivered_changed_.Wait(&mutex_);
    } else {
      Deliver();
    }
  }
}

void EventQueue::Start() {
  const absl::MutexLock lock(&mutex_);
  if (!delivering_) Deliver();
}

void EventQueue::Run(Step step) {
  if (auto* const event = std::get_if<ClusterEvent>(&step)) {
    events_.Receive(std::move(*event));
  } else {
    std::get<std::function<void()>>(step)();
  }
}

void EventQueue::Deliver() {
  delivering_ = true;
  deliverer_ = std::this_thread::get_id();
  while (!steps_.empty()) {
    Step step = std::move(steps_.front());
    steps_.pop_front();
    mutex_.Unlock();
    Run(std::move(step));
    mutex_.Lock();
    ++delivered_;
    delivered_changed_.SignalAll();
  }
  delivering_ = false;
}

}  // namespace tranche::embedded
