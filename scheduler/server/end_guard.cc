#include "scheduler/server/end_guard.h"

#include <utility>

namespace tranche {

EndGuard::EndGuard(std::chrono::milliseconds limit, std::function<void()> overdue)
    : thread_([this, limit, overdue = std::move(overdue)] {
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, limit, [this] { return ended_; })) return;
        overdue();
      }) {}

EndGuard::~EndGuard() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace tranche
