// A client that sends exactly the bytes a test says, over a blocking socket with time-outs.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tranche::http {

struct RawReply {
  int status = 0;  // 0: the connection ended, or nothing came in time
  std::string head;
  std::string body;
};

class RawClient {
 public:
  // `from`: the last part of our own address 127.0.0.x; 0: whichever.
  explicit RawClient(uint16_t port, int receive_buffer = 0, uint32_t from = 0) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    if (from != 0) {
      sockaddr_in own{};
      own.sin_family = AF_INET;
      own.sin_addr.s_addr = htonl((INADDR_LOOPBACK & 0xffffff00U) | from);
      ::bind(socket_, reinterpret_cast<sockaddr*>(&own), sizeof own);
    }
    if (receive_buffer > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  void Close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  void ShutdownSend() { ::shutdown(socket_, SHUT_WR); }

  // False when the peer has closed.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // One reply, framed by its Content-Length; `has_body` false for answers to HEAD.
  RawReply Read(bool has_body = true, std::chrono::milliseconds patience = kPatience) {
    RawReply reply;
    std::size_t end = 0;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
      if (!Receive(patience)) return reply;
    }
    reply.head = received_.substr(0, end + 4);
    received_.erase(0, end + 4);
    const std::size_t length = has_body ? Number("Content-Length: ", reply.head) : 0;
    while (received_.size() < length) {
      if (!Receive(patience)) return reply;
    }
    reply.body = received_.substr(0, length);
    received_.erase(0, length);
    reply.status = static_cast<int>(Number("HTTP/1.1 ", reply.head));
    return reply;
  }

  // Up to so many bytes, which are thrown away.
  void ReadSome(std::size_t bytes) {
    std::string sink(bytes, '\0');
    (void)::recv(socket_, sink.data(), sink.size(), MSG_DONTWAIT);
  }

  RawReply Ask(std::string_view request) {
    Send(request);
    return Read();
  }

  // True when the peer has closed and sent nothing more.
  bool Ended(std::chrono::milliseconds patience = kPatience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (Receive(std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now()))) {
    }
    return ended_ && received_.empty();
  }

 private:
  static constexpr std::chrono::milliseconds kPatience{5'000};

  static std::size_t Number(std::string_view label, std::string_view text) {
    std::size_t number = 0;
    const std::size_t at = text.find(label);
    if (at == std::string_view::npos) return 0;
    std::from_chars(text.data() + at + label.size(), text.data() + text.size(), number);
    return number;
  }

  bool Receive(std::chrono::milliseconds patience) {
    pollfd waiting{socket_, POLLIN, 0};
    const int timeout = static_cast<int>(std::max<int64_t>(0, patience.count()));
    if (ended_ || ::poll(&waiting, 1, timeout) <= 0) return false;
    char bytes[16 * 1024];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    if (got <= 0) {
      ended_ = true;
      return false;
    }
    received_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  int socket_ = -1;
  bool connected_ = false;
  bool ended_ = false;
  std::string received_;
};

}  // namespace tranche::http
