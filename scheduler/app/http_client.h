// One HTTP/1.1 request to a Tranche server, for the command line. Blocks.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tranche::app {

struct HttpReply {
  int status = 0;
  std::string body;
};

struct ServerUrl {
  std::string host;
  std::string port;  // digits
};
// "http://HOST[:PORT][/]". Errors: InvalidArgument with the text.
absl::StatusOr<ServerUrl> ParseServerUrl(std::string_view url);

// `target` is path and query as they go on the wire. `body` empty: no body.
// Errors: Unavailable naming the server when it cannot be reached or its answer is cut off.
absl::StatusOr<HttpReply> CallServer(const ServerUrl& server, std::string_view method,
                                     std::string_view target, std::string_view body,
                                     std::chrono::seconds timeout = std::chrono::seconds(30));

}  // namespace tranche::app
