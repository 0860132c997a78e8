// One HTTP/1.1 connection to the API server, plain or TLS: one request at a time, each step with a
// deadline.
//
// Thread rule: the thread of its io_context. After an error the connection is of no use. Errors:
// Unavailable and DeadlineExceeded from the network, FailedPrecondition from TLS verification,
// InvalidArgument and DataLoss from what the server sent.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/kube/transport/response_reader.h"
#include "scheduler/kube/transport/stop_signal.h"
#include "scheduler/kube/transport/timing.h"

namespace tranche::kube {

struct Endpoint {
  std::string host;
  uint16_t port = 443;
  std::string server_name;  // for TLS: SNI and the name in the certificate
  // Not zero: bytes the server has not taken in that time are given up, and those not taken when
  // the connection ends are thrown away, also by a kill.
  std::chrono::milliseconds undelivered_limit{0};
};

class HttpConnection {
 public:
  // `tls` null: plain TCP.
  HttpConnection(boost::asio::io_context& context, StopSignal& stop, Endpoint endpoint,
                 std::shared_ptr<boost::asio::ssl::context> tls);
  ~HttpConnection();

  boost::asio::awaitable<absl::Status> Connect(TimePoint dial_deadline,
                                               std::chrono::milliseconds handshake);
  boost::asio::awaitable<absl::Status> Send(const std::string& bytes, TimePoint deadline);
  boost::asio::awaitable<absl::StatusOr<ResponseHead>> ReadHead(TimePoint deadline);
  // The next piece of the body; "" once, when it is complete.
  boost::asio::awaitable<absl::StatusOr<std::string>> ReadBody(TimePoint deadline);

  // False as long as no byte of the current request can have reached the server complete.
  bool sent() const { return sent_; }
  // Some byte of the current response has arrived.
  bool got_answer() const;
  // The response is complete and the server keeps the connection.
  bool reusable() const;
  // An idle connection the server has not closed, as far as can be seen without writing.
  bool LooksAlive();
  TimePoint idle_since() const { return idle_since_; }
  void Close();

 private:
  class Stream;
  class PlainStream;
  class TlsStream;

  boost::asio::awaitable<absl::Status> ReadMore(TimePoint deadline);
  absl::Status Failure(const char* step, const boost::system::error_code& error) const;

  boost::asio::io_context& context_;
  StopSignal& stop_;
  Endpoint endpoint_;
  std::shared_ptr<boost::asio::ssl::context> tls_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<ResponseReader> reader_;
  std::array<char, 64 * 1024> input_;
  TimePoint idle_since_;
  bool sent_ = false;
  bool closed_ = false;
  StopSignal::Registration registration_;
};

}  // namespace tranche::kube
