#include "scheduler/kube/transport/http_connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <cerrno>

#include "scheduler/kube/transport/tls.h"
#include "topology/base/check.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

// HTTP/1.1 has no ping: these two notice a half-open connection.
constexpr int kTcpUserTimeoutMs = 30'000;
constexpr int kKeepAliveSeconds = 30;

void SetOption(int socket, int level, int name, int value) {
  // Best effort: a refused option costs only the quicker notice.
  static_cast<void>(::setsockopt(socket, level, name, &value, sizeof(value)));
}

void TuneSocket(tcp::socket& socket, std::chrono::milliseconds undelivered_limit) {
  const int handle = socket.native_handle();
  SetOption(handle, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(handle, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(handle, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveSeconds);
  SetOption(handle, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveSeconds);
  if (undelivered_limit.count() == 0) {
    SetOption(handle, IPPROTO_TCP, TCP_USER_TIMEOUT, kTcpUserTimeoutMs);
    return;
  }
  SetOption(handle, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(undelivered_limit.count()));
  // Closing resets: the kernel does not go on to deliver behind our back.
  const linger at_once{1, 0};
  static_cast<void>(::setsockopt(handle, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
}

struct Resolving {
  explicit Resolving(asio::io_context& context) : resolver(context), wait(context) {}
  tcp::resolver resolver;
  asio::steady_timer wait;
  ErrorCode error = asio::error::timed_out;
  tcp::resolver::results_type found;
};

// The system's look-up cannot be interrupted; past the deadline it is left to end by itself.
asio::awaitable<std::shared_ptr<Resolving>> Resolve(asio::io_context& context, StopSignal& stop,
                                                    const Endpoint& endpoint, TimePoint deadline) {
  auto state = std::make_shared<Resolving>(context);
  ErrorCode not_an_address;
  const auto address = asio::ip::make_address(endpoint.host, not_an_address);
  if (!not_an_address) {
    state->error = {};
    state->found = tcp::resolver::results_type::create(
        tcp::endpoint(address, endpoint.port), endpoint.host, std::to_string(endpoint.port));
    co_return state;
  }
  const StopSignal::Registration wake(stop, [state] { state->wait.cancel(); });
  state->wait.expires_at(deadline);
  state->resolver.async_resolve(endpoint.host, std::to_string(endpoint.port),
                                [state](const ErrorCode& error, tcp::resolver::results_type found) {
                                  state->error = error;
                                  state->found = std::move(found);
                                  state->wait.cancel();
                                });
  co_await state->wait.async_wait(kTuple);
  state->resolver.cancel();
  co_return state;
}

}  // namespace

class HttpConnection::Stream {
 public:
  virtual ~Stream() = default;
  virtual beast::tcp_stream& lowest() = 0;
  virtual asio::awaitable<ErrorCode> Handshake(const Endpoint& endpoint) = 0;
  virtual asio::awaitable<std::tuple<ErrorCode, std::size_t>> Write(std::string_view bytes) = 0;
  virtual asio::awaitable<std::tuple<ErrorCode, std::size_t>> Read(asio::mutable_buffer into) = 0;
  virtual std::string VerifyProblem() { return ""; }
};

class HttpConnection::PlainStream : public Stream {
 public:
  explicit PlainStream(asio::io_context& context) : stream_(context.get_executor()) {}
  beast::tcp_stream& lowest() override { return stream_; }
  asio::awaitable<ErrorCode> Handshake(const Endpoint&) override { co_return ErrorCode(); }
  asio::awaitable<std::tuple<ErrorCode, std::size_t>> Write(std::string_view bytes) override {
    co_return co_await asio::async_write(stream_, asio::buffer(bytes), kTuple);
  }
  asio::awaitable<std::tuple<ErrorCode, std::size_t>> Read(asio::mutable_buffer into) override {
    co_return co_await stream_.async_read_some(into, kTuple);
  }

 private:
  beast::tcp_stream stream_;
};

class HttpConnection::TlsStream : public Stream {
 public:
  TlsStream(asio::io_context& context, asio::ssl::context& tls)
      : stream_(context.get_executor(), tls) {}
  beast::tcp_stream& lowest() override { return stream_.next_layer(); }
  asio::awaitable<ErrorCode> Handshake(const Endpoint& endpoint) override {
    const absl::Status named = ExpectServerName(stream_.native_handle(), endpoint.server_name);
    if (!named.ok()) co_return ErrorCode(asio::error::invalid_argument);
    const auto [error] = co_await stream_.async_handshake(asio::ssl::stream_base::client, kTuple);
    co_return error;
  }
  asio::awaitable<std::tuple<ErrorCode, std::size_t>> Write(std::string_view bytes) override {
    co_return co_await asio::async_write(stream_, asio::buffer(bytes), kTuple);
  }
  asio::awaitable<std::tuple<ErrorCode, std::size_t>> Read(asio::mutable_buffer into) override {
    co_return co_await stream_.async_read_some(into, kTuple);
  }
  std::string VerifyProblem() override { return kube::VerifyProblem(stream_.native_handle()); }

 private:
  asio::ssl::stream<beast::tcp_stream> stream_;
};

HttpConnection::HttpConnection(asio::io_context& context, StopSignal& stop, Endpoint endpoint,
                               std::shared_ptr<asio::ssl::context> tls)
    : context_(context),
      stop_(stop),
      endpoint_(std::move(endpoint)),
      tls_(std::move(tls)),
      registration_(stop, [this] { Close(); }) {
  if (tls_ == nullptr) {
    stream_ = std::make_unique<PlainStream>(context);
  } else {
    stream_ = std::make_unique<TlsStream>(context, *tls_);
  }
}

HttpConnection::~HttpConnection() = default;

absl::Status HttpConnection::Failure(const char* step, const ErrorCode& error) const {
  const std::string text = fmt::format(
      "{} {}: {}", step, endpoint_.host + ":" + std::to_string(endpoint_.port), error.message());
  if (closed_) return absl::CancelledError(fmt::format("{}: stopped", step));
  if (error == beast::error::timeout || error == asio::error::timed_out) {
    return absl::DeadlineExceededError(text);
  }
  return absl::UnavailableError(text);
}

asio::awaitable<absl::Status> HttpConnection::Connect(TimePoint dial_deadline,
                                                      std::chrono::milliseconds handshake) {
  const auto found = co_await Resolve(context_, stop_, endpoint_, dial_deadline);
  if (closed_ || found->error) co_return Failure("resolving", found->error);
  stream_->lowest().expires_at(dial_deadline);
  const auto [refused, peer] = co_await stream_->lowest().async_connect(found->found, kTuple);
  if (closed_ || refused) co_return Failure("connecting to", refused);
  TuneSocket(stream_->lowest().socket(), endpoint_.undelivered_limit);
  stream_->lowest().expires_after(handshake);
  const ErrorCode error = co_await stream_->Handshake(endpoint_);
  if (!closed_ && !error) co_return absl::OkStatus();
  const std::string problem = stream_->VerifyProblem();
  if (closed_ || problem.empty()) co_return Failure("TLS handshake with", error);
  co_return absl::FailedPreconditionError(
      fmt::format("expected a certificate for {} from the configured CA, found: {}",
                  endpoint_.server_name, problem));
}

asio::awaitable<absl::Status> HttpConnection::Send(const std::string& bytes, TimePoint deadline) {
  reader_ = std::make_unique<ResponseReader>();
  sent_ = false;
  if (closed_) co_return Failure("sending to", {});
  stream_->lowest().expires_at(deadline);
  const auto [error, count] = co_await stream_->Write(bytes);
  // A timeout can race with the last byte; only a write the kernel refused outright left nothing.
  sent_ = !error || count > 0 || error == beast::error::timeout || closed_;
  if (error) co_return Failure("sending to", error);
  co_return absl::OkStatus();
}

asio::awaitable<absl::Status> HttpConnection::ReadMore(TimePoint deadline) {
  if (closed_) co_return Failure("reading from", {});
  stream_->lowest().expires_at(deadline);
  const auto [error, count] = co_await stream_->Read(asio::buffer(input_));
  if (!closed_ && error == asio::error::eof) co_return reader_->FeedEnd();
  if (closed_ || error) co_return Failure("reading from", error);
  co_return reader_->Feed(std::string_view(input_.data(), count));
}

asio::awaitable<absl::StatusOr<ResponseHead>> HttpConnection::ReadHead(TimePoint deadline) {
  TRANCHE_CHECK(reader_ != nullptr);
  while (!reader_->head_done()) {
    const absl::Status status = co_await ReadMore(deadline);
    if (!status.ok()) co_return status;
  }
  co_return reader_->head();
}

asio::awaitable<absl::StatusOr<std::string>> HttpConnection::ReadBody(TimePoint deadline) {
  TRANCHE_CHECK(reader_ != nullptr && reader_->head_done());
  std::string piece = reader_->TakeBody();
  while (piece.empty() && !reader_->done()) {
    const absl::Status status = co_await ReadMore(deadline);
    if (!status.ok()) co_return status;
    piece = reader_->TakeBody();
  }
  if (piece.empty()) idle_since_ = std::chrono::steady_clock::now();
  co_return piece;
}

bool HttpConnection::got_answer() const { return reader_ != nullptr && reader_->got_some(); }

bool HttpConnection::reusable() const {
  return !closed_ && reader_ != nullptr && reader_->done() && !reader_->has_excess() &&
         reader_->head().keep_alive;
}

bool HttpConnection::LooksAlive() {
  if (closed_) return false;
  char byte = 0;
  const ssize_t seen =
      ::recv(stream_->lowest().socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  // Bytes nobody asked for (a TLS close, a 408) end a connection as surely as its close.
  return seen < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void HttpConnection::Close() {
  closed_ = true;
  stream_->lowest().close();
}

}  // namespace tranche::kube
