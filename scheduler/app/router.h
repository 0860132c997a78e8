// From method and path to the piece that answers, with 404 and 405 for everything else.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "scheduler/http/server.h"

namespace tranche::app {

// {"error":"..."}: the form of every refusal outside the extender verbs.
http::Response ErrorResponse(int status, std::string_view message);

// Built before the server starts, read-only after: any thread may call Route.
class Router {
 public:
  // A path that ends in '/' takes everything below it that has no longer entry.
  void Add(std::string method, std::string path, http::Handler handler);
  void Route(http::Request request, http::Responder respond) const;

 private:
  // path -> method -> handler
  std::map<std::string, std::map<std::string, http::Handler>, std::less<>> exact_;
  std::map<std::string, std::map<std::string, http::Handler>, std::less<>> below_;
};

}  // namespace tranche::app
