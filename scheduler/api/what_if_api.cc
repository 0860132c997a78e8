#include "scheduler/api/what_if_api.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/api/api_json.h"
#include "scheduler/engine/what_if.h"
#include "scheduler/wire/protocol/what_if_pods.h"

namespace tranche {
namespace {

using Steady = std::chrono::steady_clock;

}  // namespace

WhatIfApi::~WhatIfApi() {
  stopping_ = true;
  pool_.join();
}

http::Response WhatIfApi::Answer(const http::Request& request) {
  const std::size_t most = request.verified ? limits_.verified_pods : limits_.open_pods;
  absl::StatusOr<std::vector<PodRequest>> pods = wire::ReadWhatIfPods(
      request.body, most, request.verified ? "" : " without a token or a client certificate");
  if (!pods.ok()) return ErrorResponse(pods.status());
  WhatIfCase question{*std::move(pods)};
  std::chrono::nanoseconds spent{0};
  while (!question.done()) {
    if (stopping_) return AskLater(503, "the server is stopping", 1);
    if (spent > limits_.whole) {
      return AskLater(
          503,
          fmt::format("given up after {} of {} pods, which took {} ms of decisions: "
                      "ask about fewer pods at a time",
                      question.results.size(), question.pods.size(),
                      std::chrono::duration_cast<std::chrono::milliseconds>(spent).count()),
          1);
    }
    host_.With(EngineCaller::kWhatIf, [this, &question, &spent](Engine& engine, Instant now) {
      const Steady::time_point began = Steady::now();
      engine.WhatIf(
          question, [&] { return Steady::now() - began < limits_.hold; }, now);
      spent += Steady::now() - began;
    });
  }
  return JsonResponse(EncodeWhatIf(question.results));
}

void WhatIfApi::Ask(http::Request request, http::Responder respond) {
  if (busy_.exchange(true)) return respond(AskLater(429, "another what-if is under way", 1));
  boost::asio::post(pool_, [this, asked = std::move(request), answer = std::move(respond)] {
    http::Response response = ErrorResponse(500, "the question could not be answered");
    try {
      response = Answer(asked);
    } catch (const std::exception& failure) {
      spdlog::error("{}: given up, {}", asked.path, failure.what());
    }
    busy_ = false;
    answer(std::move(response));
  });
}

void WhatIfApi::AddTo(Router& router) {
  router.Add("POST", "/api/v1/whatif", [this](http::Request request, http::Responder respond) {
    Ask(std::move(request), std::move(respond));
  });
}

}  // namespace tranche
