// One gRPC call with one answer, over a Unix socket.
//
// A connection for each call, without TLS, compression or retries: the kubelet is asked twice a
// minute. Thread rule: any thread. Source: gRPC over HTTP/2 (grpc/doc/PROTOCOL-HTTP2.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace tranche::probe {

struct UnaryCall {
  std::string socket;   // path
  std::string method;   // "/package.Service/Method"
  std::string message;  // encoded; empty is a message without fields
  std::size_t answer_limit = 1024 * 1024;
  std::chrono::milliseconds timeout{5'000};  // connecting, asking and answering together
};

// The encoded answer. Errors, with socket and method: NotFound when there is no socket;
// DeadlineExceeded, ResourceExhausted for the limits; Unavailable when the server cannot be spoken
// to, or answers with a gRPC status other than 0, which is quoted.
absl::StatusOr<std::string> CallUnary(const UnaryCall& call);

}  // namespace tranche::probe
