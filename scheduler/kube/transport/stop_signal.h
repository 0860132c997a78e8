// Lets what waits on one I/O thread end early: all of it at once, or what listens to a bell.
//
// Thread rule: that one thread. A waiter registers how to be woken. Raise wakes all, and every
// later wait ends before it starts; a bell wakes those who listen while it rings.
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

class Bell {
 public:
  // Keeps `wake` registered for its own lifetime. `wake` must not register with the same bell, nor
  // ring it.
  class Registration {
   public:
    Registration(Bell& bell, std::function<void()> wake)
        : bell_(bell), place_(bell.wakes_.insert(bell.wakes_.end(), std::move(wake))) {}
    ~Registration() { bell_.wakes_.erase(place_); }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    Bell& bell_;
    std::list<std::function<void()>>::iterator place_;
  };

  void Ring() {
    for (const auto& wake : wakes_) wake();
  }

 private:
  std::list<std::function<void()>> wakes_;
};

class StopSignal {
 public:
  // As a bell's; `wake` must not raise.
  class Registration : public Bell::Registration {
   public:
    Registration(StopSignal& signal, std::function<void()> wake)
        : Bell::Registration(signal.bell_, std::move(wake)) {}
  };

  explicit StopSignal(boost::asio::io_context& context) : context_(context) {}

  // Hears at each Sleep for how long; whoever runs the loop by hand must come then.
  void OnSleep(std::function<void(std::chrono::milliseconds)> hear) { hear_ = std::move(hear); }

  bool raised() const { return raised_; }
  void Raise() {
    raised_ = true;
    bell_.Ring();
  }
  // True when the whole time has passed, false when the signal was raised.
  boost::asio::awaitable<bool> Sleep(std::chrono::milliseconds time);
  // Likewise; a ring of `bell`, too, ends it, with true.
  boost::asio::awaitable<bool> Sleep(std::chrono::milliseconds time, Bell& bell);

 private:
  boost::asio::io_context& context_;
  std::function<void(std::chrono::milliseconds)> hear_;
  bool raised_ = false;
  Bell bell_;
};

}  // namespace tranche::kube
