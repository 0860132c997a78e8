// The bearer token, read again as the kubelet renews it.
//
// Thread rule: one thread at a time. The value goes into the Authorization header and nowhere
// else. Source: kube-client-protocol section 1 (token rotation).
#pragma once

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/kube/transport/credentials.h"

namespace tranche::kube {

class TokenSource {
 public:
  // A token file wins over a token given as text, which then serves until the file can be read.
  TokenSource(const Credentials& credentials, std::chrono::milliseconds reread);

  // The token, "" when there is none by configuration. A file that cannot be read, is empty or
  // holds control characters leaves the last good token in use.
  // Errors: FailedPrecondition while there is no good token yet.
  absl::StatusOr<std::string> Get(std::chrono::steady_clock::time_point now);

  // After a 401: the next Get reads the file. False when there is no file to read again.
  bool Expire();

 private:
  std::string file_;
  std::string last_good_;
  std::chrono::milliseconds reread_;
  std::chrono::steady_clock::time_point read_at_;
  bool fresh_ = false;
};

// Why `token` cannot go into a header; OK when it can.
absl::Status CheckToken(const std::string& token, const std::string& where);

}  // namespace tranche::kube
