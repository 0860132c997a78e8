#include "bench/http/client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>

namespace tranche::bench {
namespace {

constexpr std::size_t kChunk = 256 * 1024;

absl::Status SystemError(const char* what) {
  return absl::UnavailableError(
      fmt::format("expected to {}, found: {}", what, std::strerror(errno)));
}

}  // namespace

Client::~Client() {
  if (fd_ >= 0) close(fd_);
}

absl::Status Client::Connect() {
  if (fd_ >= 0) close(fd_);
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port_);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return SystemError("connect");
  }
  return absl::OkStatus();
}

absl::Status Client::Send(std::string_view head, std::span<const std::string_view> pieces) {
  std::array<iovec, 8> parts{};
  std::size_t count = 0;
  const auto add = [&](std::string_view text) {
    parts[count++] = {const_cast<char*>(text.data()), text.size()};
  };
  add(head);
  for (const std::string_view piece : pieces) add(piece);
  std::size_t at = 0;
  while (at < count) {
    const ssize_t sent = writev(fd_, parts.data() + at, static_cast<int>(count - at));
    if (sent < 0) return SystemError("send");
    auto left = static_cast<std::size_t>(sent);
    while (at < count && left >= parts[at].iov_len) left -= parts[at++].iov_len;
    if (at < count) {
      parts[at].iov_base = static_cast<char*>(parts[at].iov_base) + left;
      parts[at].iov_len -= left;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> Client::Receive() {
  std::size_t have = 0;
  std::size_t want = std::string::npos;
  std::size_t body = 0;
  bool ok = false;
  while (have < want) {
    if (buffer_.size() < have + kChunk) buffer_.resize(have + kChunk);
    const ssize_t got = recv(fd_, buffer_.data() + have, buffer_.size() - have, 0);
    if (got <= 0) return SystemError("receive");
    have += static_cast<std::size_t>(got);
    if (want != std::string::npos) continue;
    const std::string_view text(buffer_.data(), have);
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string_view::npos) continue;
    ok = text.starts_with("HTTP/1.1 200");
    const std::size_t length = text.find("Content-Length: ");
    if (length == std::string_view::npos || length > end) {
      return absl::UnavailableError("expected a Content-Length, found none");
    }
    std::size_t bytes = 0;
    std::from_chars(text.data() + length + 16, text.data() + end, bytes);
    body = end + 4;
    want = body + bytes;
  }
  const std::string_view answer(buffer_.data() + body, want - body);
  if (!ok) {
    return absl::UnavailableError(fmt::format("expected status 200, found {} with {}",
                                              buffer_.substr(9, 3), answer.substr(0, 200)));
  }
  return answer;
}

absl::StatusOr<std::string_view> Client::Post(std::string_view path,
                                              std::span<const std::string_view> pieces) {
  std::size_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  const std::string head = fmt::format(
      "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Go-http-client/1.1\r\n"
      "Content-Length: {}\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n",
      path, bytes);
  if (const absl::Status sent = Send(head, pieces); !sent.ok()) return sent;
  return Receive();
}

absl::Status Client::AskOnly(std::string_view path) {
  return Send(fmt::format("GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path), {});
}

absl::StatusOr<std::string_view> Client::Get(std::string_view path) {
  if (const absl::Status sent = AskOnly(path); !sent.ok()) return sent;
  return Receive();
}

absl::Status WaitReady(uint16_t port, Process& process) {
  for (int i = 0; i < 6000; ++i) {
    Client client(port);
    if (client.Connect().ok() && client.Get("/readyz").ok()) return absl::OkStatus();
    if (!process.running()) return absl::UnavailableError("expected a running server, it ended");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return absl::DeadlineExceededError("expected the server to be ready within 60 s, it was not");
}

}  // namespace tranche::bench
