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
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

using Steady = std::chrono::steady_clock;

http::Response AskLater(int status, std::string_view why) {
  http::Response response = ErrorResponse(status, why);
  response.headers["Retry-After"] = "1";
  return response;
}

// The requests of {"pods":[Pod...]}.
absl::StatusOr<std::vector<PodRequest>> ReadPods(std::string_view body, std::size_t most,
                                                 std::string_view of_whom) {
  thread_local wire::Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const wire::Element document, parser.Parse(body, wire::Padding::kThere));
  wire::Object object;
  if (document.get(object) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("expected {\"pods\":[...]}, found no object");
  }
  const std::optional<wire::Array> pods = wire::FindArray(object, "pods");
  if (!pods) return absl::InvalidArgumentError("pods: expected a list of Pod objects, found none");
  std::vector<PodRequest> requests;
  for (const wire::Element pod : *pods) {
    const std::size_t position = requests.size();
    if (position == most) {
      return absl::InvalidArgumentError(
          fmt::format("pods: expected at most {}{}, found more", most, of_whom));
    }
    absl::StatusOr<PodFacts> facts = wire::DecodePod(pod);
    if (!facts.ok()) {
      return absl::InvalidArgumentError(fmt::format(
          "pods[{}]: {}", position,
          std::string_view(facts.status().message().data(), facts.status().message().size())));
    }
    // The question is about one more pod of this kind, even where the object was copied from a
    // pod that exists.
    facts->request.uid = PodUid(fmt::format("what-if-{}", position));
    requests.push_back(std::move(facts->request));
  }
  return requests;
}

}  // namespace

WhatIfApi::~WhatIfApi() {
  stopping_ = true;
  pool_.join();
}

http::Response WhatIfApi::Answer(const http::Request& request) {
  const std::size_t most = request.verified ? limits_.verified_pods : limits_.open_pods;
  absl::StatusOr<std::vector<PodRequest>> pods = ReadPods(
      request.body, most, request.verified ? "" : " without a token or a client certificate");
  if (!pods.ok()) return ErrorResponse(pods.status());
  WhatIfCase question{*std::move(pods)};
  std::chrono::nanoseconds spent{0};
  while (!question.done()) {
    if (stopping_) return AskLater(503, "the server is stopping");
    if (spent > limits_.whole) {
      return AskLater(
          503, fmt::format("given up after {} of {} pods, which took {} ms of decisions: "
                           "ask about fewer pods at a time",
                           question.results.size(), question.pods.size(),
                           std::chrono::duration_cast<std::chrono::milliseconds>(spent).count()));
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
  if (busy_.exchange(true)) return respond(AskLater(429, "another what-if is under way"));
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
