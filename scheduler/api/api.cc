#include "scheduler/api/api.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/api/api_json.h"
#include "scheduler/api/conditional.h"
#include "scheduler/api/quota_json.h"
#include "scheduler/api/reclaim_api.h"
#include "scheduler/wire/json/json.h"

namespace tranche {
namespace {

http::Response Explain(EngineHost& host, const http::Request& request) {
  constexpr std::string_view kPrefix = "/api/v1/explain/";
  std::string_view path = request.path;
  path.remove_prefix(kPrefix.size());
  const std::size_t slash = path.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == path.size() ||
      path.find('/', slash + 1) != std::string_view::npos) {
    return ErrorResponse(
        404, fmt::format("expected {}NAMESPACE/POD, found {}", kPrefix, wire::Quoted(path)));
  }
  const PodName pod{std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
  const std::optional<Explanation> explanation =
      host.With(EngineCaller::kPages,
                [&pod](Engine& engine, Instant now) { return engine.Explain(pod, now); });
  if (!explanation) {
    return ErrorResponse(404, fmt::format("no pod {} is known", wire::Quoted(pod.str())));
  }
  return Conditional(request, JsonResponse(EncodeExplanation(*explanation)));
}

}  // namespace

void AddApi(EngineHost& host, Router& router) {
  // The two that reach megabytes.
  router.AddAnswer("GET", "/api/v1/nodes",
                   [&host, text = std::make_shared<SharedText>()](const http::Request& request) {
                     return text->Respond(request, JsonResponse(EncodeNodes(host.Nodes())));
                   });
  router.AddAnswer("GET", "/api/v1/pods",
                   [&host, text = std::make_shared<SharedText>()](const http::Request& request) {
                     return text->Respond(request, JsonResponse(EncodePods(host.Pods())));
                   });
  router.AddAnswer("GET", "/api/v1/gangs", [&host](const http::Request&) {
    return JsonResponse(EncodeGangs(host.Gangs()));
  });
  router.AddAnswer("GET", "/api/v1/explain/",
                   [&host](const http::Request& request) { return Explain(host, request); });
  router.AddAnswer("GET", "/api/v1/quotas",
                   [&host, text = std::make_shared<SharedText>()](const http::Request& request) {
                     return text->Respond(
                         request, JsonResponse(EncodeQuotas(host.Quotas(EngineCaller::kPages))));
                   });
  router.AddAnswer("GET", "/api/v1/budgets", [&host](const http::Request& request) {
    return Conditional(
        request,
        JsonResponse(EncodeBudgets(host.With(EngineCaller::kPages, [](Engine& engine, Instant now) {
          return engine.Budgets(now);
        }))));
  });
  router.AddAnswer("GET", "/api/v1/reclaims", [&host](const http::Request& request) {
    Instant asked;
    const std::vector<Reclaim> reclaims =
        host.With(EngineCaller::kPages, [&asked](Engine& engine, Instant now) {
          asked = now;
          return engine.Reclaims();
        });
    return Conditional(request, JsonResponse(EncodeReclaims(reclaims, asked)));
  });
}

}  // namespace tranche
