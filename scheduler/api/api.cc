#include "scheduler/api/api.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/api/api_json.h"
#include "scheduler/api/conditional.h"
#include "scheduler/api/quota_json.h"
#include "scheduler/api/reclaim_api.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/pods/pod_decode.h"

namespace tranche {
namespace {

http::Response Json(std::string body) {
  http::Response response;
  response.body = std::move(body);
  return response;
}

http::Response Explain(EngineHost& host, std::string_view path) {
  constexpr std::string_view kPrefix = "/api/v1/explain/";
  path.remove_prefix(kPrefix.size());
  const std::size_t slash = path.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == path.size() ||
      path.find('/', slash + 1) != std::string_view::npos) {
    return ErrorResponse(
        404, fmt::format("expected {}NAMESPACE/POD, found {}", kPrefix, wire::Quoted(path)));
  }
  const PodName pod{std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
  const std::optional<Explanation> explanation =
      host.With([&pod](Engine& engine, Instant now) { return engine.Explain(pod, now); });
  if (!explanation) {
    return ErrorResponse(404, fmt::format("no pod {} is known", wire::Quoted(pod.str())));
  }
  return Json(EncodeExplanation(*explanation));
}

// The requests of {"pods":[Pod...]}.
absl::StatusOr<std::vector<PodRequest>> ReadPods(std::string_view body) {
  thread_local wire::Parser parser;
  const absl::StatusOr<wire::Element> document = parser.Parse(body, true);
  if (!document.ok()) return document.status();
  wire::Object object;
  if (document->get(object) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("expected {\"pods\":[...]}, found no object");
  }
  const std::optional<wire::Array> pods = wire::FindArray(object, "pods");
  if (!pods) return absl::InvalidArgumentError("pods: expected a list of Pod objects, found none");
  std::vector<PodRequest> requests;
  for (const wire::Element pod : *pods) {
    const std::size_t position = requests.size();
    if (position == kMaxWhatIfPods) {
      return absl::InvalidArgumentError(
          fmt::format("pods: expected at most {}, found more", kMaxWhatIfPods));
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

http::Response WhatIf(EngineHost& host, std::string_view body) {
  const absl::StatusOr<std::vector<PodRequest>> requests = ReadPods(body);
  if (!requests.ok()) {
    const auto message = requests.status().message();
    return ErrorResponse(400, std::string_view(message.data(), message.size()));
  }
  const std::vector<WhatIfResult> results =
      host.With([&requests](Engine& engine, Instant now) { return engine.WhatIf(*requests, now); });
  return Json(EncodeWhatIf(results));
}

}  // namespace

void AddApi(EngineHost& host, Router& router) {
  router.Add("GET", "/api/v1/nodes",
             [&host](const http::Request& request, const http::Responder& respond) {
               respond(Conditional(request, Json(EncodeNodes(host.Nodes()))));
             });
  router.Add("GET", "/api/v1/pods",
             [&host](const http::Request& request, const http::Responder& respond) {
               respond(Conditional(request, Json(EncodePods(host.Pods()))));
             });
  router.Add("GET", "/api/v1/explain/",
             [&host](const http::Request& request, const http::Responder& respond) {
               respond(Explain(host, request.path));
             });
  router.Add("GET", "/api/v1/quotas",
             [&host](const http::Request&, const http::Responder& respond) {
               respond(Json(EncodeQuotas(
                   host.With([](Engine& engine, Instant now) { return engine.Quotas(now); }))));
             });
  router.Add("GET", "/api/v1/budgets",
             [&host](const http::Request&, const http::Responder& respond) {
               respond(Json(EncodeBudgets(
                   host.With([](Engine& engine, Instant now) { return engine.Budgets(now); }))));
             });
  router.Add(
      "GET", "/api/v1/reclaims", [&host](const http::Request&, const http::Responder& respond) {
        Instant asked;
        const std::vector<Reclaim> reclaims = host.With([&asked](Engine& engine, Instant now) {
          asked = now;
          return engine.Reclaims();
        });
        respond(Json(EncodeReclaims(reclaims, asked)));
      });
  router.Add("POST", "/api/v1/whatif",
             [&host](const http::Request& request, const http::Responder& respond) {
               respond(WhatIf(host, request.body));
             });
}

}  // namespace tranche
