// From a request for metrics or API to an answer for its caller, where `pages.auth` is
// `Kubernetes`: whoever sees all is answered by the usual routes, others through the filter of
// their namespaces, and whoever sees nothing not at all.
//
// Thread rule: any thread; nothing waits for the API server. What asks the engine runs at the desk.
#pragma once

#include <functional>
#include <string>

#include "scheduler/api/sight/limited_api.h"
#include "scheduler/http/server.h"
#include "scheduler/server/viewers/viewers.h"

namespace tranche {

class PageGate {
 public:
  using Work = std::function<void(http::Request, http::Responder)>;
  struct Hooks {
    Work all;  // answers without a filter
    // Does the work on another thread, soon, or refuses.
    std::function<void(http::Request, http::Responder, Work)> desk;
    // Null: this process does not lead.
    std::function<LimitedApi*()> limited;
  };

  PageGate(Viewers& viewers, Hooks hooks) : viewers_(viewers), hooks_(std::move(hooks)) {}

  void Answer(http::Request request, http::Responder respond);

 private:
  void Limited(http::Request request, const Viewers::Known& caller, http::Responder respond);

  Viewers& viewers_;
  const Hooks hooks_;
};

}  // namespace tranche
