#include "scheduler/server/viewers/page_gate.h"

#include <fmt/format.h>

#include <utility>

#include "scheduler/api/router.h"

namespace tranche {
namespace {

constexpr const char* kMetricsPath = "/metrics";

// No store between us and its caller keeps one caller's answer for another.
http::Responder OfOneCaller(http::Responder respond) {
  return [respond = std::move(respond)](http::Response response) {
    response.headers["Cache-Control"] = "private, no-cache";
    std::string& vary = response.headers["Vary"];
    if (!vary.empty()) vary += ", ";
    vary += fmt::format("Authorization, {}", http::kOwnAuthorization);
    respond(std::move(response));
  };
}

}  // namespace

void PageGate::Answer(http::Request request, http::Responder respond) {
  const Viewers::For what =
      request.path == kMetricsPath ? Viewers::For::kMetrics : Viewers::For::kApi;
  const std::string authorization = std::move(request.authorization);
  request.authorization.clear();
  viewers_.Who(authorization, what,
               [this, request = std::move(request),
                respond = OfOneCaller(std::move(respond))](Viewers::Answer answer) mutable {
                 if (answer.refusal) return respond(*std::move(answer.refusal));
                 const Viewers::Known& caller = answer.known;
                 const bool all =
                     caller.everything || (caller.metrics && request.path == kMetricsPath);
                 if (!all) return Limited(std::move(request), caller, std::move(respond));
                 request.verified = true;
                 hooks_.all(std::move(request), std::move(respond));
               });
}

void PageGate::Limited(http::Request request, const Viewers::Known& caller,
                       http::Responder respond) {
  if (!LimitedApi::Answers(request)) return respond(LimitedApi::Refused());
  LimitedApi* const api = hooks_.limited();
  if (api == nullptr) {
    return respond(AskLater(503, "this replica does not lead and answers nothing of that", 2));
  }
  Work find = [this, api, caller](http::Request asked, http::Responder answer) {
    LimitedApi::Scope scope = api->ScopeOf(asked, caller.likely);
    viewers_.Which(
        caller.who, std::move(scope.namespaces),
        [this, api, asked = std::move(asked),
         answer = std::move(answer)](Viewers::Seen seen) mutable {
          if (seen.refusal) return answer(*std::move(seen.refusal));
          Sight sight;
          sight.namespaces.insert(seen.namespaces.begin(), seen.namespaces.end());
          hooks_.desk(std::move(asked), std::move(answer),
                      [api, sight = std::move(sight)](http::Request last, http::Responder tell_it) {
                        api->Answer(std::move(last), sight, std::move(tell_it));
                      });
        });
  };
  hooks_.desk(std::move(request), std::move(respond), std::move(find));
}

}  // namespace tranche
