// One request to a server and its answer, for programs that ask and end.
//
// Thread rule: any thread, which the call blocks for at most its timeout. The rules of ApiClient
// hold: certificates are verified, no redirect is followed, a token goes over TLS.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/kube/transport/credentials.h"

namespace tranche::kube {

struct SingleRequest {
  std::string method = "GET";
  std::string target;  // path and query below the server's prefix, percent-encoded
  std::string body;    // JSON; empty: none
  std::string content_type = "application/json";
  std::chrono::milliseconds timeout{30'000};
  // Further headers, of printable ASCII. They may be secrets.
  std::vector<std::pair<std::string, std::string>> headers = {};
};

struct SingleAnswer {
  int status = 0;
  std::string body;
};

// Errors: Unavailable with what kept the answer away, FailedPrecondition where nothing was sent
// because a file or certificate is not as it must be.
absl::StatusOr<SingleAnswer> CallOnce(const Credentials& credentials, const SingleRequest& request);

}  // namespace tranche::kube
