// POST /api/v1/whatif {"pods":[Pod...]}: where pods would go that do not exist.
//
// Jobs and other objects that stand for pods may be among them (wire/protocol/what_if_pods). The
// answers of the pods in their order. It changes no decision, and delays none: the engine is
// held for one pod, or for 5 ms, and whoever waits for it comes in between. 429 while another
// question is under way; 400 for more pods than the caller may ask about; 503 with what to do when
// an answer costs too much.
//
// Thread rule: any thread. Answers are worked out on a thread of their own.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <string_view>

#include "scheduler/api/router.h"
#include "scheduler/host/engine_host.h"

namespace tranche {

struct WhatIfLimits {
  // Pods of one question: of everybody, and of callers who have shown who they are.
  std::size_t open_pods = 50;
  std::size_t verified_pods = 1'000;
  std::chrono::nanoseconds hold = std::chrono::milliseconds(5);
  // Of the engine's time, for the whole answer.
  std::chrono::nanoseconds whole = std::chrono::seconds(10);
};

class WhatIfApi {
 public:
  // The host outlives it.
  explicit WhatIfApi(EngineHost& host, WhatIfLimits limits = {}) : host_(host), limits_(limits) {}
  // Gives up the answer in the making.
  ~WhatIfApi();
  WhatIfApi(const WhatIfApi&) = delete;
  WhatIfApi& operator=(const WhatIfApi&) = delete;
  void AddTo(Router& router);

 private:
  void Ask(http::Request request, http::Responder respond);
  http::Response Answer(const http::Request& request);

  EngineHost& host_;
  const WhatIfLimits limits_;
  std::atomic<bool> busy_ = false;
  std::atomic<bool> stopping_ = false;
  boost::asio::thread_pool pool_{1};
};

}  // namespace tranche
