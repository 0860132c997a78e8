#include "scheduler/kube/transport/stop_signal.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tranche::kube {

boost::asio::awaitable<bool> StopSignal::Sleep(std::chrono::milliseconds time) {
  Bell silent;
  const bool passed = co_await Sleep(time, silent);
  co_return passed;
}

boost::asio::awaitable<bool> StopSignal::Sleep(std::chrono::milliseconds time, Bell& bell) {
  if (raised_) co_return false;
  boost::asio::steady_timer timer(context_, time);
  if (hear_) hear_(time);
  const Registration registration(*this, [&timer] { timer.cancel(); });
  const Bell::Registration listening(bell, [&timer] { timer.cancel(); });
  co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  co_return !raised_;
}

}  // namespace tranche::kube
