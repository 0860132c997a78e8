// One connection: reads requests, hands them to the handler one at a time, writes the answers in
// order, and keeps every limit.
//
//   handshake (TLS) -> idle -> head -> body -> handling -> writing -> idle again, or lingering ->
//   closed
//
// While lingering, our side is closed and what the peer still sends is thrown away for a bounded
// time: closing at once would reset the connection, and the answer could be lost on the way.
//
// Thread rule: public functions from any thread; the rest runs on the connection's strand. One
// asynchronous read or write is under way at a time. Deadlines are values that the server's sweep
// compares with the clock, so that a request costs no timer call.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/http/byte_budget.h"
#include "scheduler/http/head.h"
#include "scheduler/http/reply_slot.h"
#include "scheduler/http/server.h"
#include "scheduler/http/table.h"

namespace tranche::http {

// What the connections of a server share. Outlives them.
struct ServerState {
  Limits limits;
  Handler handler;
  Admit admit;                                   // null: everybody
  std::function<void(const std::string&)> warn;  // may be null
  ConnectionTable table;
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::atomic<bool> draining{false};
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Strand>;
  using TimePoint = std::chrono::steady_clock::time_point;

  // idle_since() of a connection with a request under way; later than any time.
  static constexpr int64_t kActive = std::numeric_limits<int64_t>::max();

  // `tls` null: in plain text.
  Session(Socket socket, std::shared_ptr<boost::asio::ssl::context> tls, ServerState& server);

  // Starts reading. Called once, after the session is in the table.
  void Start(Place place);
  // Steady clock count since when no request is under way, or kActive.
  int64_t idle_since() const { return idle_since_.load(std::memory_order_relaxed); }
  // Where the peer is; unspecified when it was gone before it was looked at.
  const boost::asio::ip::address& address() const { return address_; }
  bool in_handshake() const { return state_.load() == State::kHandshake; }
  // A request is with the handler: its connection gives way to nobody.
  bool is_served() const { return state_.load() == State::kHandling; }
  // Closes where the pressure allows it; `done` hears on the strand if so.
  void GiveWay(Pressure pressure, std::function<void(bool gone)> done);
  // Starts what is due when the deadline has passed.
  void CheckDeadline(TimePoint now);
  // Closes now if idle, else after the request under way.
  void Drain();
  // Closes without further words.
  void Abort();
  // Sends the answer to the request under way.
  void Answer(Response response, AnswerBy by);

 private:
  enum class State : uint8_t {
    kHandshake,
    kIdle,
    kHead,
    kBody,
    kHandling,
    kWriting,
    kLingering,
    kClosed
  };

  // Some bytes in or out, through TLS where the connection has it.
  template <typename Buffers, typename Done>
  void ReadSome(const Buffers& buffers, Done done) {
    if (tls_) return tls_->async_read_some(buffers, std::move(done));
    socket_.async_read_some(buffers, std::move(done));
  }
  template <typename Buffers, typename Done>
  void WriteSome(const Buffers& buffers, Done done) {
    if (tls_) return tls_->async_write_some(buffers, std::move(done));
    socket_.async_write_some(buffers, std::move(done));
  }

  void Handshake();

  void AwaitRequest();
  void BeginHead();
  void ReadHeadBytes();
  void ScanHead();
  void BeginRequest(std::string_view text);
  void BeginBody();
  void InviteBody();
  void ReadBodyBytes();
  void Dispatch();

  void Refuse(int status, std::string why);
  // There is no room in a budget.
  void RefuseForNow();
  void EndHandshake();
  // Calls it on the strand, after what reads have already taken from the socket was noticed: else a
  // request that has just arrived could pass for none.
  void WhenSettled(std::function<void()> look);
  void Reply(Response response);
  TimePoint ReplyDeadline() const;
  void WriteReply();
  void Linger();
  void StopSending();
  void Discard();
  void Close();

  // What came late is answered so.
  void RefuseLate();
  void OnDeadline();
  void SetDeadline(TimePoint deadline);
  void SetIdle(bool idle);
  bool NothingArrived();
  std::string_view Unread() const { return {buffer_.get() + begin_, end_ - begin_}; }

  Socket socket_;
  const boost::asio::ip::address address_;
  std::shared_ptr<boost::asio::ssl::context> context_;            // outlives tls_
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;          // over socket_
  std::shared_ptr<const std::vector<std::string>> client_names_;  // as in Request
  ServerState& server_;
  Place place_ = Place::kOrdinary;
  std::atomic<State> state_ = State::kIdle;  // written on the strand

  std::atomic<int64_t> idle_since_;
  std::atomic<int64_t> deadline_;

  std::size_t capacity_;
  std::unique_ptr<char[]> buffer_;  // bytes [begin_, end_) arrived and are not used up
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  HeadScanner scanner_;
  Head head_;
  Terms terms_;  // of the request under way
  HeldBody body_held_;
  std::size_t body_received_ = 0;
  TimePoint request_began_;

  bool keep_alive_ = true;
  bool is_head_ = false;  // answer without body
  bool late_ = false;     // the deadline has passed, and a read under way has yet to end
  std::string reply_head_;
  HeldText reply_body_;
  std::size_t reply_sent_ = 0;  // of head and body together
  TimePoint reply_began_;
};

}  // namespace tranche::http
