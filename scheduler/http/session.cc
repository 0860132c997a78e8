#include "scheduler/http/session.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream_base.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <exception>
#include <utility>

#include "scheduler/http/reply.h"
#include "scheduler/http/tls.h"

namespace tranche::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 64 * 1024;
// First piece of a body's memory. It doubles as bytes arrive, so that a peer which claims much and
// sends little gets little.
constexpr std::size_t kBodyStep = 256 * 1024;
constexpr std::chrono::milliseconds kLingerTime{2'000};
// A spare connection must ask at once.
constexpr std::chrono::milliseconds kSpareTime{1'000};
constexpr std::string_view kRetryAfter = "2";  // seconds
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

int64_t Count(steady_clock::time_point time) { return time.time_since_epoch().count(); }

asio::ip::address AddressOf(const Session::Socket& socket) {
  error_code error;
  const asio::ip::tcp::endpoint peer = socket.remote_endpoint(error);
  return error ? asio::ip::address() : peer.address();
}

// An IPv4 address as such, also where it came in by an IPv6 socket.
std::string TextOf(const asio::ip::address& address) {
  if (address.is_unspecified()) return "";
  const bool mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  return mapped ? asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string()
                : address.to_string();
}

// What is answered also where all connections are in use.
bool IsHealth(std::string_view path) {
  return path == "/healthz" || path == "/livez" || path == "/readyz";
}

}  // namespace

Session::Session(Socket socket, std::shared_ptr<asio::ssl::context> tls, ServerState& server)
    : socket_(std::move(socket)),
      address_(AddressOf(socket_)),
      context_(std::move(tls)),
      server_(server),
      idle_since_(Count(steady_clock::now())),
      deadline_(kActive),
      capacity_(std::max(kReadBytes, server.limits.header_bytes + 1)),
      scanner_(server.limits.header_bytes) {
  if (context_ == nullptr) return;
  tls_.emplace(socket_, *context_);
  state_ = State::kHandshake;
  SetIdle(false);
}

void Session::Start(Place place) {
  asio::post(socket_.get_executor(), [this, place, self = shared_from_this()] {
    if (state_ == State::kClosed) return;
    place_ = place;
    buffer_.reset(new char[capacity_]);
    if (tls_) return Handshake();
    AwaitRequest();
  });
}

void Session::Handshake() {
  state_ = State::kHandshake;
  SetIdle(false);
  const auto patience = place_ == Place::kSpare ? std::min(kSpareTime, server_.limits.header_time)
                                                : server_.limits.header_time;
  SetDeadline(steady_clock::now() + patience);
  tls_->async_handshake(asio::ssl::stream_base::server,
                        [this, self = shared_from_this()](const error_code& error) {
                          if (state_ != State::kHandshake) return;
                          if (!error) return EndHandshake();
                          server_.table.CountFailedHandshake();
                          Close();
                        });
}

void Session::EndHandshake() {
  client_names_ = ClientNames(tls_->native_handle());
  if (client_names_ != nullptr) {
    const auto places = static_cast<std::size_t>(server_.limits.connections);
    const ConnectionTable::Verified verified = server_.table.Verify(this, places);
    place_ = verified.place;
    if (verified.leaves != nullptr) {
      server_.table.CountEviction();
      verified.leaves->Abort();
    }
  }
  AwaitRequest();
}

void Session::WhenSettled(std::function<void()> look) {
  asio::post(socket_.get_executor(), [this, look = std::move(look), self = shared_from_this()] {
    if (state_ != State::kIdle) return look();
    // A read that took its bytes has put its word into the context's queue before us, from where it
    // goes to the strand.
    asio::post(socket_.get_executor().get_inner_executor(),
               [this, look, self] { asio::post(socket_.get_executor(), look); });
  });
}

void Session::GiveWay(Pressure pressure, std::function<void(bool)> done) {
  WhenSettled([this, pressure, done = std::move(done), self = shared_from_this()] {
    const State state = state_;
    const bool idle = state == State::kLingering || (state == State::kIdle && NothingArrived());
    const bool waits = state != State::kHandling && state != State::kClosed;
    const bool gives_way = pressure == Pressure::kGreed ? waits : idle;
    if (gives_way) Close();
    done(gives_way);
  });
}

void Session::CheckDeadline(TimePoint now) {
  if (deadline_.load(std::memory_order_relaxed) > Count(now)) return;
  asio::post(socket_.get_executor(), [this, self = shared_from_this()] { OnDeadline(); });
}

void Session::Drain() {
  WhenSettled([this, self = shared_from_this()] {
    if (state_ == State::kIdle && NothingArrived()) Close();
  });
}

void Session::Abort() {
  asio::post(socket_.get_executor(), [this, self = shared_from_this()] { Close(); });
}

void Session::Answer(Response response, AnswerBy by) {
  asio::dispatch(socket_.get_executor(),
                 [this, by, response = std::move(response), self = shared_from_this()]() mutable {
                   if (state_ != State::kHandling) return;
                   if (by == AnswerBy::kServer) server_.table.CountRefusal(response.status);
                   Reply(std::move(response));
                 });
}

// ---- reading ----------------------------------------------------------------------------------

void Session::AwaitRequest() {
  scanner_ = HeadScanner(server_.limits.header_bytes);
  if (begin_ < end_) {
    BeginHead();
    return ScanHead();
  }
  state_ = State::kIdle;
  SetIdle(true);
  const auto patience = place_ == Place::kSpare ? std::min(kSpareTime, server_.limits.header_time)
                                                : server_.limits.idle_time;
  SetDeadline(steady_clock::now() + patience);
  ReadHeadBytes();
}

void Session::BeginHead() {
  state_ = State::kHead;
  SetIdle(false);
  request_began_ = steady_clock::now();
  const auto patience = place_ == Place::kSpare
                            ? std::min(kSpareTime, server_.limits.header_time)
                            : std::min(server_.limits.header_time, server_.limits.request_time);
  SetDeadline(request_began_ + patience);
}

void Session::ReadHeadBytes() {
  // The head must lie in one piece; what is left of pipelined bytes moves to the front.
  std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  ReadSome(asio::buffer(buffer_.get() + end_, capacity_ - end_),
           [this, self = shared_from_this()](const error_code& error, std::size_t bytes) {
             if (state_ != State::kIdle && state_ != State::kHead) return;
             if (late_) return RefuseLate();
             if (error) return Close();
             end_ += bytes;
             if (state_ == State::kIdle) BeginHead();
             ScanHead();
           });
}

void Session::ScanHead() {
  switch (scanner_.Scan(Unread())) {
    case HeadScanner::Outcome::kMore:
      return ReadHeadBytes();
    case HeadScanner::Outcome::kTooLarge:
      return Refuse(431, "the request header is larger than the server takes");
    case HeadScanner::Outcome::kMalformed:
      return Refuse(400, "header: expected lines that end in CR LF, found something else");
    case HeadScanner::Outcome::kComplete:
      break;
  }
  const std::string_view text =
      Unread().substr(scanner_.begin(), scanner_.end() - scanner_.begin());
  begin_ += scanner_.end();
  BeginRequest(text);
}

void Session::BeginRequest(std::string_view text) {
  if (std::optional<Refusal> refusal = ReadHead(text, head_)) {
    return Refuse(refusal->status, std::move(refusal->why));
  }
  const uint64_t length = head_.content_length.value_or(0);
  is_head_ = head_.request.method == "HEAD";
  keep_alive_ = head_.keep_alive;
  if (place_ == Place::kSpare) {
    const bool probe = head_.request.method == "GET" || is_head_;
    if (!probe || !IsHealth(head_.request.path) || length > 0) {
      return Refuse(503, "all connections are in use");
    }
    keep_alive_ = false;
  }
  head_.request.client_names = client_names_;
  head_.request.peer = TextOf(address_);
  terms_ = server_.admit ? server_.admit(head_.request) : Terms();
  if (terms_.refusal) {
    // Nothing of a body is read, so nothing behind it can be.
    keep_alive_ = keep_alive_ && length == 0;
    return Reply(*std::move(terms_.refusal));
  }
  head_.request.verified = terms_.verified;
  if (length > terms_.body_bytes.value_or(server_.limits.body_bytes)) {
    return Refuse(413, "the request body is larger than the server takes");
  }
  BeginBody();
}

void Session::BeginBody() {
  std::string& body = head_.request.body;
  const auto length = static_cast<std::size_t>(head_.content_length.value_or(0));
  const std::string_view arrived = Unread().substr(0, length);
  const std::size_t first = std::min(length, std::max(kBodyStep, arrived.size()));
  body_held_.Begin(terms_.bodies);
  if (!body_held_.GrowTo(first)) return RefuseForNow();
  body.reserve(first + kBodyPadding);
  body.append(arrived);
  begin_ += arrived.size();
  body_received_ = arrived.size();
  if (body_received_ == length) return Dispatch();
  state_ = State::kBody;
  SetDeadline(request_began_ + server_.limits.request_time);
  if (head_.expects_continue && arrived.empty()) return InviteBody();
  ReadBodyBytes();
}

void Session::InviteBody() {
  const auto invited = [this, self = shared_from_this()](const error_code& error, std::size_t) {
    if (state_ != State::kBody) return;
    if (late_) return RefuseLate();
    if (error) return Close();
    ReadBodyBytes();
  };
  if (tls_) return asio::async_write(*tls_, asio::buffer(kContinue), invited);
  asio::async_write(socket_, asio::buffer(kContinue), invited);
}

void Session::ReadBodyBytes() {
  std::string& body = head_.request.body;
  const auto length = static_cast<std::size_t>(head_.content_length.value_or(0));
  if (body_received_ == body.size()) {
    const std::size_t size = std::min(length, std::max(kBodyStep, 2 * body_received_));
    if (!body_held_.GrowTo(size)) return RefuseForNow();
    body.reserve(size + kBodyPadding);
    body.resize(size);
  }
  ReadSome(asio::buffer(body.data() + body_received_, body.size() - body_received_),
           [this, length, self = shared_from_this()](const error_code& error, std::size_t bytes) {
             if (state_ != State::kBody) return;
             if (late_) return RefuseLate();
             if (error) return Close();
             body_received_ += bytes;
             if (body_received_ == length) return Dispatch();
             ReadBodyBytes();
           });
}

void Session::Dispatch() {
  state_ = State::kHandling;
  deadline_.store(kActive, std::memory_order_relaxed);
  auto slot = std::make_shared<ReplySlot>(server_.gate, weak_from_this());
  const std::string path = server_.warn ? head_.request.path : std::string();
  try {
    server_.handler(std::move(head_.request), [slot = std::move(slot)](Response response) {
      slot->Answer(std::move(response));
    });
  } catch (const std::exception& failure) {
    // The responder has gone down with it, which answers 500.
    if (server_.warn) server_.warn(path + ": " + failure.what());
  }
}

// ---- answering --------------------------------------------------------------------------------

void Session::Refuse(int status, std::string why) {
  server_.table.CountRefusal(status);
  keep_alive_ = false;
  head_ = Head();
  Reply(Response{status, "text/plain; charset=utf-8", std::move(why), {}});
}

void Session::RefuseForNow() {
  server_.table.CountRefusal(503);
  keep_alive_ = false;
  head_ = Head();
  Reply(Response{503,
                 "text/plain; charset=utf-8",
                 "too many bytes are under way, ask again later",
                 {{"Retry-After", std::string(kRetryAfter)}}});
}

void Session::Reply(Response response) {
  state_ = State::kWriting;
  body_held_.End();
  if (server_.draining.load(std::memory_order_relaxed)) keep_alive_ = false;
  const bool carries = !is_head_ && CarriesBody(response.status);
  reply_head_ = EncodeHead(response, keep_alive_, std::chrono::system_clock::now());
  if (carries) {
    if (!response.shared) {
      response.shared = std::make_shared<const std::string>(std::move(response.body));
    }
    if (!reply_body_.Take(terms_.answers, std::move(response.shared))) return RefuseForNow();
  }
  reply_sent_ = 0;
  reply_began_ = steady_clock::now();
  SetDeadline(ReplyDeadline());
  WriteReply();
}

// A peer that reads something now and then holds our memory no longer than a slow line would.
Session::TimePoint Session::ReplyDeadline() const {
  const std::chrono::seconds whole(reply_body_.text().size() / server_.limits.slowest_reader);
  return std::min(steady_clock::now(), reply_began_ + whole) + server_.limits.reply_time;
}

void Session::WriteReply() {
  const std::size_t head_sent = std::min(reply_sent_, reply_head_.size());
  const std::array<asio::const_buffer, 2> pieces = {
      asio::buffer(reply_head_) + head_sent,
      asio::buffer(reply_body_.text()) + (reply_sent_ - head_sent)};
  WriteSome(pieces, [this, self = shared_from_this()](const error_code& error, std::size_t bytes) {
    if (state_ != State::kWriting) return;
    if (error) return Close();
    reply_sent_ += bytes;
    if (reply_sent_ < reply_head_.size() + reply_body_.text().size()) {
      SetDeadline(ReplyDeadline());
      return WriteReply();
    }
    reply_body_.End();
    is_head_ = false;
    if (!keep_alive_ || server_.draining.load(std::memory_order_relaxed)) return Linger();
    AwaitRequest();
  });
}

void Session::Linger() {
  state_ = State::kLingering;
  SetIdle(true);
  SetDeadline(steady_clock::now() + kLingerTime);
  if (!tls_) return StopSending();
  // Our last word, so that the peer knows the answer whole. What it says to that matters no more.
  tls_->async_shutdown([this, self = shared_from_this()](const error_code&) {
    if (state_ == State::kLingering) StopSending();
  });
}

void Session::StopSending() {
  error_code ignored;
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  Discard();
}

void Session::Discard() {
  socket_.async_read_some(asio::buffer(buffer_.get(), capacity_),
                          [this, self = shared_from_this()](const error_code& error, std::size_t) {
                            if (state_ != State::kLingering) return;
                            if (error) return Close();
                            Discard();
                          });
}

void Session::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  body_held_.End();
  deadline_.store(kActive, std::memory_order_relaxed);
  SetIdle(false);
  error_code ignored;
  socket_.close(ignored);
  server_.table.Remove(this);
}

// ---- time -------------------------------------------------------------------------------------

void Session::OnDeadline() {
  // The state may have moved on between the sweep and now.
  if (deadline_.load(std::memory_order_relaxed) > Count(steady_clock::now())) return;
  const bool reading = state_ == State::kHead || state_ == State::kBody;
  const bool spare = place_ == Place::kSpare && (state_ == State::kIdle || reading);
  if ((!reading && !spare) || late_) return Close();
  // Refusing frees what the read under way fills. One whose bytes have come goes on all the same:
  // TLS takes them apart later, and then into that memory.
  late_ = true;
  SetIdle(false);
  SetDeadline(steady_clock::now() + kLingerTime);
  error_code ignored;
  socket_.cancel(ignored);
}

void Session::RefuseLate() {
  if (place_ == Place::kSpare) return Refuse(503, "all connections are in use");
  Refuse(408, "the request did not arrive in time");
}

void Session::SetDeadline(TimePoint deadline) {
  deadline_.store(Count(deadline), std::memory_order_relaxed);
}

void Session::SetIdle(bool idle) {
  idle_since_.store(idle ? Count(steady_clock::now()) : kActive, std::memory_order_relaxed);
}

bool Session::NothingArrived() {
  error_code error;
  return socket_.available(error) == 0 || error;
}

}  // namespace tranche::http
