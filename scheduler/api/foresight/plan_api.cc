#include "scheduler/api/foresight/plan_api.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/api/foresight/plan_edits.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

void AppendNames(std::string& out, std::string_view key, const std::vector<PodName>& pods) {
  out += fmt::format("\"{}\":[", key);
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (i > 0) out += ',';
    wire::AppendQuoted(out, pods[i].str());
  }
  out += ']';
}

std::string EncodePlan(const PlanAnswer& answer) {
  std::string out = "{";
  AppendNames(out, "starts", answer.starts);
  out += ',';
  AppendNames(out, "evicted", answer.evicted);
  out += ',';
  AppendNames(out, "borrowed", answer.borrowed);
  out += ',';
  AppendNames(out, "waits", answer.waits);
  return out + "}";
}

}  // namespace

absl::StatusOr<PlanAnswer> AnswerPlan(Host& host, std::string_view body, std::size_t most,
                                      const std::function<bool()>& may_go_on) {
  PlanGround ground{host.policies.Store(), host.policies.defaults(), {}};
  for (const auto& [object, version] : host.policies.objects()->objects) {
    ground.objects.insert(object);
  }
  TRANCHE_ASSIGN_OR_RETURN(const PlanEdits edits, ReadPlanEdits(body, most, std::move(ground)));
  const ClusterCopy copy = host.engine.Copy();
  for (const NodeName& node : edits.gone) {
    const bool there = std::ranges::any_of(
        copy.nodes, [&node](const NodeCopy& known) { return known.facts.name == node; });
    if (there) continue;
    return absl::InvalidArgumentError(
        fmt::format("delete: expected a Node that is there, found {}", wire::Quoted(node.str())));
  }
  return PlanEdit(copy, edits, may_go_on);
}

http::Response PlanApi::Answer(const http::Request& request) {
  const std::size_t most = request.verified ? limits_.verified_edits : limits_.open_edits;
  const absl::StatusOr<PlanAnswer> answer =
      AnswerPlan(host_, request.body, most, [this] { return !stopping_; });
  if (!answer.ok()) return ErrorResponse(answer.status());
  if (!answer->complete) {
    return ErrorResponse(
        503, stopping_ ? "the server is stopping" : "given up: more pods wait than could be tried");
  }
  return JsonResponse(EncodePlan(*answer));
}

void PlanApi::Ask(http::Request request, http::Responder respond) {
  if (busy_.exchange(true)) return respond(AskLater(429, "another plan is being made", 1));
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

void PlanApi::AddTo(Router& router) {
  router.Add("POST", "/api/v1/plan", [this](http::Request request, http::Responder respond) {
    Ask(std::move(request), std::move(respond));
  });
}

}  // namespace tranche
