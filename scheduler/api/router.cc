#include "scheduler/api/router.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche {

int CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    default:
      return 503;
  }
}

http::Response ErrorResponse(const absl::Status& status) {
  return ErrorResponse(CodeOf(status), std::string(status.message()));
}

http::Response ErrorResponse(int status, std::string_view message) {
  http::Response response = JsonResponse(wire::Dump({{"error", message}}));
  response.status = status;
  return response;
}

http::Response AskLater(int status, std::string_view message, int seconds) {
  http::Response response = ErrorResponse(status, message);
  response.headers["Retry-After"] = std::to_string(seconds);
  return response;
}

http::Response JsonResponse(std::string body) {
  http::Response response;
  response.body = std::move(body);
  return response;
}

std::string Parameter(const http::Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string() : found->second;
}

absl::StatusOr<std::optional<Instant>> TimeParameter(const http::Request& request,
                                                     const std::string& name) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return std::optional<Instant>();
  const std::optional<Instant> time = wire::ParseTime(found->second);
  if (time) return time;
  return absl::InvalidArgumentError(
      fmt::format("{}: expected an RFC 3339 time, found {}", name, wire::Quoted(found->second)));
}

void Router::AddAnswer(std::string method, std::string path, Answer answer) {
  Add(std::move(method), std::move(path),
      [answer = std::move(answer)](const http::Request& request, const http::Responder& respond) {
        respond(answer(request));
      });
}

void Router::Add(std::string method, std::string path, http::Handler handler) {
  auto& table = path.size() > 1 && path.back() == '/' ? below_ : exact_;
  table[std::move(path)][std::move(method)] = std::move(handler);
}

void Router::Route(http::Request request, http::Responder respond) const {
  const std::map<std::string, http::Handler>* methods = nullptr;
  if (const auto found = exact_.find(request.path); found != exact_.end()) {
    methods = &found->second;
  } else {
    // A prefix sorts before what it is a prefix of, longer ones later.
    for (const auto& [prefix, handlers] : below_) {
      if (request.path.compare(0, prefix.size(), prefix) == 0) methods = &handlers;
    }
  }
  if (methods == nullptr) {
    respond(ErrorResponse(404, fmt::format("there is nothing at {}", wire::Quoted(request.path))));
    return;
  }
  // RFC 9110 section 9.3.2: HEAD is GET without the body, which the server leaves out.
  const bool head = request.method == "HEAD" && methods->contains("GET");
  if (const auto found = methods->find(head ? "GET" : request.method); found != methods->end()) {
    found->second(std::move(request), std::move(respond));
    return;
  }
  std::string allowed;
  for (const auto& [method, handler] : *methods) {
    allowed += (allowed.empty() ? "" : ", ") + method;
    if (method == "GET") allowed += ", HEAD";
  }
  http::Response response =
      ErrorResponse(405, fmt::format("expected {} for {}, found {}", allowed,
                                     wire::Quoted(request.path), wire::Quoted(request.method)));
  response.headers["Allow"] = allowed;
  respond(std::move(response));
}

}  // namespace tranche
