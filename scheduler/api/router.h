// From method and path to the piece that answers, with 404 and 405 for everything else. What is
// there for GET answers HEAD as well.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/http/server.h"
#include "topology/base/units.h"

namespace tranche {

// The HTTP status of an error: 400 for what the request got wrong (InvalidArgument), 404 for what
// is not there (NotFound). All else is the server's trouble and may pass, so that it is 503: a
// ledger that is damaged (DataLoss), of a later version (FailedPrecondition) or busy (Unavailable).
int CodeOf(const absl::Status& status);

// {"error":"..."}: the form of every refusal outside the extender verbs.
http::Response ErrorResponse(const absl::Status& status);
http::Response ErrorResponse(int status, std::string_view message);

// The same of a question that may be put again so many seconds later.
http::Response AskLater(int status, std::string_view message, int seconds);

// 200 with a JSON text.
http::Response JsonResponse(std::string body);

// A parameter of the request's query; "" where it has none of that name.
std::string Parameter(const http::Request& request, const std::string& name);
// The moment of a parameter; nullopt where there is none. Errors: InvalidArgument naming it.
absl::StatusOr<std::optional<Instant>> TimeParameter(const http::Request& request,
                                                     const std::string& name);

// Built before the server starts, read-only after: any thread may call Route.
class Router {
 public:
  // A path that ends in '/' takes everything below it that has no longer entry.
  void Add(std::string method, std::string path, http::Handler handler);
  // A path that is answered at once, on the thread of the call.
  using Answer = std::function<http::Response(const http::Request& request)>;
  void AddAnswer(std::string method, std::string path, Answer answer);
  void Route(http::Request request, http::Responder respond) const;

 private:
  // path -> method -> handler
  std::map<std::string, std::map<std::string, http::Handler>, std::less<>> exact_;
  std::map<std::string, std::map<std::string, http::Handler>, std::less<>> below_;
};

}  // namespace tranche
