// A thread of its own for questions that take longer than a verb may wait, with a bounded number of
// them before it: who asks when it is full is told to come back, and waits for nobody.
//
// Thread rule: Ask from any thread; Join once.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <functional>

#include "scheduler/api/router.h"
#include "scheduler/http/server.h"

namespace tranche {

class QuestionDesk {
 public:
  // Questions that may wait or be answered at one time.
  static constexpr int kMostWaiting = 64;

  using Work = std::function<void(http::Request, http::Responder)>;

  // The router outlives the answer. A handler that throws is logged and answered 500.
  void Ask(const Router& router, http::Request request, http::Responder respond);
  // The same with other work.
  void Do(http::Request request, http::Responder respond, Work work);
  // Waits for what was asked.
  void Join() { pool_.join(); }

 private:
  std::atomic<int> waiting_ = 0;
  boost::asio::thread_pool pool_{1};
};

}  // namespace tranche
