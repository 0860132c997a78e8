#include "scheduler/api/pages.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/api/conditional.h"
#include "scheduler/ui/assets.h"
#include "scheduler/wire/json/json_value.h"
#include "scheduler/wire/json/yaml_to_json.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

http::Response Text(int status, std::string_view body) {
  http::Response response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = body;
  return response;
}

http::Response ToPage(const http::Request& /*request*/) {
  http::Response response = Text(302, "see /ui/");
  response.headers["Location"] = "/ui/";
  return response;
}

// Each file of the page is compressed once.
class AssetVersions {
 public:
  SharedText& Of(const ui::Asset& asset) {
    const absl::MutexLock lock(&mutex_);
    return versions_[&asset];
  }

 private:
  absl::Mutex mutex_;
  std::map<const ui::Asset*, SharedText> versions_ ABSL_GUARDED_BY(mutex_);
};

http::Response UiFile(AssetVersions& versions, const http::Request& request) {
  const ui::Asset* const asset = ui::FindAsset(request.path);
  if (asset == nullptr) return ErrorResponse(404, "the page has no such file");
  http::Response response;
  response.content_type = asset->content_type;
  response.body = asset->body;
  response.headers["ETag"] = asset->etag;
  // The page needs nothing but its own files, runs no inline script, and goes into no frame.
  response.headers["Content-Security-Policy"] =
      "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  response.headers["X-Content-Type-Options"] = "nosniff";
  response.headers["Referrer-Policy"] = "no-referrer";
  return versions.Of(*asset).Respond(request, std::move(response));
}

// As JSON, which most programs ask for. Made once: it takes milliseconds, and the router is made
// anew when a replica becomes the leader.
const std::string& OpenApiJson() {
  static const std::string json = [] {
    const absl::StatusOr<std::string> documents = embedded::YamlToJson(OpenApiText());
    TRANCHE_CHECK(documents.ok());
    // An array of one document.
    return documents->substr(1, documents->size() - 2);
  }();
  return json;
}

}  // namespace

const char* Version() { return TRANCHE_VERSION; }

void AddPages(std::function<Readiness()> ready, std::function<std::string()> note,
              const metrics::Metrics& metrics, std::function<metrics::Scrape()> scrape,
              Router& router) {
  const auto alive = [](const http::Request&) { return Text(200, "ok"); };
  router.AddAnswer("GET", "/healthz", alive);
  router.AddAnswer("GET", "/livez", alive);
  router.AddAnswer(
      "GET", "/readyz", [ready = std::move(ready), note = std::move(note)](const http::Request&) {
        const Readiness readiness = ready();
        const bool yes = readiness == Readiness::kReady;
        http::Response response = Text(yes ? 200 : 503, yes ? "ok" : Describe(readiness));
        const std::string more = note ? note() : "";
        if (!more.empty()) response.body.append("\n").append(more);
        return response;
      });
  router.AddAnswer("GET", "/version", [](const http::Request&) {
    return JsonResponse(wire::Dump({{"version", Version()}}));
  });
  OpenApiJson();  // not with the first request
  router.AddAnswer("GET", "/api/openapi.json",
                   [](const http::Request&) { return JsonResponse(OpenApiJson()); });
  router.AddAnswer("GET", "/metrics", [&metrics, scrape = std::move(scrape)](const http::Request&) {
    http::Response response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics.Render(scrape());
    return response;
  });
  router.AddAnswer("GET", "/", ToPage);
  router.AddAnswer("GET", "/ui", ToPage);
  router.AddAnswer("GET", "/ui/",
                   [versions = std::make_shared<AssetVersions>()](const http::Request& request) {
                     return UiFile(*versions, request);
                   });
}

}  // namespace tranche
