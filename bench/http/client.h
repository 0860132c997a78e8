// A keep-alive HTTP/1.1 connection that costs as little as possible, as kube-scheduler's would:
// one write a request, reads until Content-Length bytes are there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/http/process.h"

namespace tranche::bench {

class Client {
 public:
  explicit Client(uint16_t port) : port_(port) {}
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  absl::Status Connect();
  // POSTs the pieces joined. The view is the body, valid until the next call. Errors: Unavailable,
  // also for any status but 200.
  absl::StatusOr<std::string_view> Post(std::string_view path,
                                        std::span<const std::string_view> pieces);
  absl::StatusOr<std::string_view> Get(std::string_view path);
  // A GET whose answer is left unread.
  absl::Status AskOnly(std::string_view path);

 private:
  absl::Status Send(std::string_view head, std::span<const std::string_view> pieces);
  absl::StatusOr<std::string_view> Receive();

  uint16_t port_;
  int fd_ = -1;
  std::string buffer_;
};

// Waits until the process answers its /readyz with 200. Errors: it ended; 60 s went by.
absl::Status WaitReady(uint16_t port, Process& process);

}  // namespace tranche::bench
