// Lets everything that waits on one I/O thread end at once.
//
// Thread rule: that one thread. A waiter registers how to be woken; Raise wakes all, and
// every later wait ends before it starts.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <list>
#include <utility>

namespace tranche::kube {

// For co_spawn. Coroutines here return errors as values; what still throws is out of memory or a
// mistake.
inline void Rethrow(const std::exception_ptr& thrown) {
  if (thrown) std::rethrow_exception(thrown);
}

class StopSignal {
 public:
  // Keeps `wake` registered for its own lifetime. `wake` must not register or raise.
  class Registration {
   public:
    Registration(StopSignal& signal, std::function<void()> wake)
        : signal_(signal), place_(signal.wakes_.insert(signal.wakes_.end(), std::move(wake))) {}
    ~Registration() { signal_.wakes_.erase(place_); }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    StopSignal& signal_;
    std::list<std::function<void()>>::iterator place_;
  };

  explicit StopSignal(boost::asio::io_context& context) : context_(context) {}

  // Hears at each Sleep for how long; whoever runs the loop by hand must come then.
  void OnSleep(std::function<void(std::chrono::milliseconds)> hear) { hear_ = std::move(hear); }

  bool raised() const { return raised_; }
  void Raise() {
    raised_ = true;
    for (const auto& wake : wakes_) wake();
  }
  // True when the whole time has passed, false when the signal was raised.
  boost::asio::awaitable<bool> Sleep(std::chrono::milliseconds time);

 private:
  boost::asio::io_context& context_;
  std::function<void(std::chrono::milliseconds)> hear_;
  bool raised_ = false;
  std::list<std::function<void()>> wakes_;
};

}  // namespace tranche::kube
