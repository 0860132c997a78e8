// POST /api/v1/plan: what edits of quotas, budgets, classes, policies and nodes would do at once.
//
// The body and the answer: README.md. It changes nothing; the engine is held for the slices of a
// copy. 429 while another plan is made; 400 for what is wrong with the edits, with its place.
//
// Thread rule: any thread. Answers are worked out on a thread of their own.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "scheduler/api/router.h"
#include "scheduler/foresight/plan.h"
#include "scheduler/host/host.h"

namespace tranche {

// The answer to the edits of a body (README.md), at most `most` of them. Errors: InvalidArgument
// with what is wrong with the edits. Cost: as said above.
absl::StatusOr<PlanAnswer> AnswerPlan(Host& host, std::string_view body, std::size_t most,
                                      const std::function<bool()>& may_go_on);

struct PlanLimits {
  // Objects of one question: of everybody, and of callers who have shown who they are.
  std::size_t open_edits = 100;
  std::size_t verified_edits = 2'000;
};

class PlanApi {
 public:
  // The host outlives it.
  explicit PlanApi(Host& host, PlanLimits limits = {}) : host_(host), limits_(limits) {}
  // Gives up the answer in the making.
  ~PlanApi() {
    stopping_ = true;
    pool_.join();
  }
  PlanApi(const PlanApi&) = delete;
  PlanApi& operator=(const PlanApi&) = delete;
  void AddTo(Router& router);

 private:
  void Ask(http::Request request, http::Responder respond);
  http::Response Answer(const http::Request& request);

  Host& host_;
  const PlanLimits limits_;
  std::atomic<bool> busy_ = false;
  std::atomic<bool> stopping_ = false;
  boost::asio::thread_pool pool_{1};
};

}  // namespace tranche
