#include "scheduler/probe/grpc_call.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "scheduler/probe/file_handle.h"
#include "topology/base/status.h"

namespace tranche::probe {
namespace {

using Clock = std::chrono::steady_clock;

// A gRPC message comes behind one byte that says whether it is compressed and four of length.
constexpr std::size_t kPrefixBytes = 5;
constexpr std::size_t kMaxQuoted = 200;

std::string WithPrefix(const std::string& message) {
  std::string framed(1, '\0');
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    framed.push_back(static_cast<char>((message.size() >> shift) & 0xFFU));
  }
  return framed + message;
}

absl::StatusOr<std::string> WithoutPrefix(const std::string& framed) {
  std::size_t size = 0;
  for (std::size_t at = 1; at < kPrefixBytes && at < framed.size(); ++at) {
    size = (size << 8U) | static_cast<uint8_t>(framed[at]);
  }
  if (framed.size() < kPrefixBytes || framed[0] != '\0' || framed.size() - kPrefixBytes != size) {
    return absl::UnavailableError(fmt::format(
        "expected one message without compression, found {} bytes that are none", framed.size()));
  }
  return framed.substr(kPrefixBytes);
}

// What is fit to be quoted in one line of a log.
std::string Quotable(std::string_view text) {
  std::string out(text.substr(0, kMaxQuoted));
  std::replace_if(
      out.begin(), out.end(), [](char byte) { return byte < ' ' || byte == '\x7f'; }, '?');
  return out;
}

struct SessionDeleter {
  void operator()(nghttp2_session* session) const { nghttp2_session_del(session); }
};
struct CallbacksDeleter {
  void operator()(nghttp2_session_callbacks* callbacks) const {
    nghttp2_session_callbacks_del(callbacks);
  }
};

// The call as an HTTP/2 exchange, apart from the socket.
class Exchange {
 public:
  explicit Exchange(const UnaryCall& call) : call_(call), unsent_(WithPrefix(call.message)) {}

  absl::Status Begin();
  // Answered or given up: nghttp2 ends a connection that is not HTTP/2 by itself.
  bool done() const {
    return closed_ || !failure_.ok() ||
           (nghttp2_session_want_read(session_.get()) == 0 &&
            nghttp2_session_want_write(session_.get()) == 0);
  }
  // Bytes to be sent; empty when there are none now. Valid until the next call.
  absl::StatusOr<std::string_view> Outgoing();
  absl::Status Incoming(std::string_view bytes);
  // Once done.
  absl::StatusOr<std::string> Answer() const;

 private:
  static Exchange& Of(void* user) { return *static_cast<Exchange*>(user); }
  static ssize_t SendBody(nghttp2_session* session, int32_t stream, uint8_t* buffer,
                          std::size_t room, uint32_t* flags, nghttp2_data_source* source,
                          void* user);
  static int SeeHeader(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                       std::size_t name_size, const uint8_t* value, std::size_t value_size,
                       uint8_t flags, void* user);
  static int SeeBody(nghttp2_session* session, uint8_t flags, int32_t stream, const uint8_t* data,
                     std::size_t size, void* user);
  static int SeeEnd(nghttp2_session* session, int32_t stream, uint32_t error, void* user);

  const UnaryCall& call_;
  std::unique_ptr<nghttp2_session, SessionDeleter> session_;
  std::string unsent_;  // of the request's body
  std::string body_;
  std::string http_status_;
  std::string grpc_status_;
  std::string grpc_message_;
  uint32_t stream_error_ = 0;
  bool closed_ = false;
  absl::Status failure_;
};

absl::Status Http2Failure(ssize_t code) {
  return absl::UnavailableError(fmt::format("expected an HTTP/2 server, found: {}",
                                            nghttp2_strerror(static_cast<int>(code))));
}

ssize_t Exchange::SendBody(nghttp2_session*, int32_t, uint8_t* buffer, std::size_t room,
                           uint32_t* flags, nghttp2_data_source*, void* user) {
  std::string& unsent = Of(user).unsent_;
  const std::size_t size = std::min(room, unsent.size());
  std::copy_n(unsent.begin(), size, buffer);
  unsent.erase(0, size);
  if (unsent.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(size);
}

int Exchange::SeeHeader(nghttp2_session*, const nghttp2_frame*, const uint8_t* name,
                        std::size_t name_size, const uint8_t* value, std::size_t value_size,
                        uint8_t, void* user) {
  Exchange& self = Of(user);
  const std::string_view key(reinterpret_cast<const char*>(name), name_size);
  const std::string_view text(reinterpret_cast<const char*>(value), value_size);
  if (key == ":status") self.http_status_ = Quotable(text);
  if (key == "grpc-status") self.grpc_status_ = Quotable(text);
  if (key == "grpc-message") self.grpc_message_ = Quotable(text);
  return 0;
}

int Exchange::SeeBody(nghttp2_session*, uint8_t, int32_t, const uint8_t* data, std::size_t size,
                      void* user) {
  Exchange& self = Of(user);
  if (size > self.call_.answer_limit + kPrefixBytes - self.body_.size()) {
    self.failure_ = absl::ResourceExhaustedError(
        fmt::format("expected an answer of at most {} bytes, found more", self.call_.answer_limit));
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  self.body_.append(reinterpret_cast<const char*>(data), size);
  return 0;
}

int Exchange::SeeEnd(nghttp2_session*, int32_t, uint32_t error, void* user) {
  Of(user).closed_ = true;
  Of(user).stream_error_ = error;
  return 0;
}

absl::Status Exchange::Begin() {
  nghttp2_session_callbacks* made = nullptr;
  if (nghttp2_session_callbacks_new(&made) != 0) return Http2Failure(NGHTTP2_ERR_NOMEM);
  const std::unique_ptr<nghttp2_session_callbacks, CallbacksDeleter> callbacks(made);
  nghttp2_session_callbacks_set_on_header_callback(made, SeeHeader);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, SeeBody);
  nghttp2_session_callbacks_set_on_stream_close_callback(made, SeeEnd);
  nghttp2_session* session = nullptr;
  if (nghttp2_session_client_new(&session, made, this) != 0) {
    return Http2Failure(NGHTTP2_ERR_NOMEM);
  }
  session_.reset(session);
  // Only the answer that was asked for.
  const nghttp2_settings_entry no_push = {NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
  const int settings = nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, &no_push, 1);
  if (settings != 0) return Http2Failure(settings);

  std::array<std::pair<std::string, std::string>, 7> headers = {
      {{":method", "POST"},
       {":scheme", "http"},
       {":path", call_.method},
       {":authority", "localhost"},
       {"te", "trailers"},
       {"content-type", "application/grpc"},
       {"user-agent", "tranche"}}};
  std::array<nghttp2_nv, headers.size()> pairs{};
  for (std::size_t at = 0; at < headers.size(); ++at) {
    auto& [name, value] = headers[at];
    pairs[at] = {reinterpret_cast<uint8_t*>(name.data()), reinterpret_cast<uint8_t*>(value.data()),
                 name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
  }
  nghttp2_data_provider body{};
  body.read_callback = SendBody;
  const int32_t stream =
      nghttp2_submit_request(session, nullptr, pairs.data(), pairs.size(), &body, nullptr);
  return stream < 0 ? Http2Failure(stream) : absl::OkStatus();
}

absl::StatusOr<std::string_view> Exchange::Outgoing() {
  const uint8_t* bytes = nullptr;
  const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
  if (size < 0) return Http2Failure(size);
  return std::string_view(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

absl::Status Exchange::Incoming(std::string_view bytes) {
  const ssize_t taken = nghttp2_session_mem_recv(
      session_.get(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (!failure_.ok()) return failure_;
  return taken < 0 ? Http2Failure(taken) : absl::OkStatus();
}

absl::StatusOr<std::string> Exchange::Answer() const {
  if (!closed_) return absl::UnavailableError("expected HTTP/2, found something else");
  if (stream_error_ != 0) {
    return absl::UnavailableError(fmt::format("expected an answer, found the stream reset ({})",
                                              nghttp2_http2_strerror(stream_error_)));
  }
  if (http_status_ != "200") {
    return absl::UnavailableError(
        fmt::format("expected HTTP status 200, found \"{}\"", http_status_));
  }
  if (grpc_status_ != "0") {
    return absl::UnavailableError(
        fmt::format("expected gRPC status 0, found \"{}\": {}", grpc_status_, grpc_message_));
  }
  return WithoutPrefix(body_);
}

absl::Status SocketFailure(const char* step) {
  const int error = errno;
  const std::string text = fmt::format("{}: {}", step, std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(text) : absl::UnavailableError(text);
}

// Waits for `events`; what came of them.
absl::StatusOr<short> Wait(int socket, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waiting{socket, events, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready > 0) return waiting.revents;
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return SocketFailure("waiting");
    return absl::DeadlineExceededError("expected an answer in time, found none");
  }
}

absl::Status Connect(int socket, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::UnavailableError(fmt::format("expected a path of less than {} bytes, found {}",
                                              sizeof(address.sun_path), path.size()));
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  const auto* const target = reinterpret_cast<const sockaddr*>(&address);
  return connect(socket, target, sizeof(address)) == 0 ? absl::OkStatus()
                                                       : SocketFailure("connecting");
}

absl::Status Receive(int socket, Exchange& exchange) {
  std::array<char, 64 * 1024> piece{};
  const ssize_t got = recv(socket, piece.data(), piece.size(), 0);
  if (got > 0) return exchange.Incoming({piece.data(), static_cast<std::size_t>(got)});
  if (got == 0) return absl::UnavailableError("expected an answer, found the connection closed");
  const bool later = errno == EAGAIN || errno == EINTR;
  return later ? absl::OkStatus() : SocketFailure("receiving");
}

absl::Status Run(int socket, Exchange& exchange, Clock::time_point deadline) {
  std::string_view outgoing;
  while (!exchange.done()) {
    if (outgoing.empty()) {
      TRANCHE_ASSIGN_OR_RETURN(outgoing, exchange.Outgoing());
    }
    const short sending = outgoing.empty() ? short{0} : short{POLLOUT};
    TRANCHE_ASSIGN_OR_RETURN(const short ready,
                             Wait(socket, static_cast<short>(POLLIN | sending), deadline));
    if ((ready & POLLOUT) != 0) {
      const ssize_t sent = send(socket, outgoing.data(), outgoing.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        outgoing.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno != EAGAIN && errno != EINTR) {
        return SocketFailure("sending");
      }
      continue;  // what is incoming may change what is outgoing: one after the other
    }
    TRANCHE_RETURN_IF_ERROR(Receive(socket, exchange));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Call(const UnaryCall& call) {
  const Clock::time_point deadline = Clock::now() + call.timeout;
  const FileHandle handle(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (handle.get() < 0) return SocketFailure("opening a socket");
  absl::Status status = Connect(handle.get(), call.socket);
  if (!status.ok()) return status;
  Exchange exchange(call);
  status = exchange.Begin();
  if (!status.ok()) return status;
  status = Run(handle.get(), exchange, deadline);
  if (!status.ok()) return status;
  return exchange.Answer();
}

}  // namespace

absl::StatusOr<std::string> CallUnary(const UnaryCall& call) {
  absl::StatusOr<std::string> answer = Call(call);
  if (answer.ok()) return answer;
  return absl::Status(answer.status().code(), fmt::format("{}: {}: {}", call.socket, call.method,
                                                          std::string(answer.status().message())));
}

}  // namespace tranche::probe
