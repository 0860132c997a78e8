// ApiClient over sockets: a small pool of keep-alive connections for calls, a connection of its own
// for every watch. A stale pooled connection is replaced before anything was sent.
//
// Thread rule: the thread of its io_context. Source: kube-client-protocol 1, 3, 4.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "scheduler/kube/transport/api_client.h"
#include "scheduler/kube/transport/http_connection.h"
#include "scheduler/kube/transport/options.h"
#include "scheduler/kube/transport/server_clock.h"
#include "scheduler/kube/transport/stop_signal.h"
#include "scheduler/kube/transport/tls.h"
#include "scheduler/kube/transport/token.h"

namespace tranche::kube {

class HttpClient : public ApiClient {
 public:
  static constexpr std::size_t kMaxConnections = 16;

  HttpClient(boost::asio::io_context& context, StopSignal& stop, const Options& options);

  boost::asio::awaitable<ApiAnswer> Call(const ApiRequest& request) override;
  boost::asio::awaitable<WatchOpening> OpenWatch(const std::string& target) override;

 private:
  class Place;  // one of kMaxConnections, held while a call runs

  absl::StatusOr<std::string> Render(const ApiRequest& request);
  // Writes are guarded where the options say who may write.
  bool IsGuarded(const ApiRequest& request) const {
    return may_write_ != nullptr && request.method != "GET";
  }
  boost::asio::awaitable<absl::StatusOr<std::unique_ptr<HttpConnection>>> Connect(
      TimePoint deadline);
  std::unique_ptr<HttpConnection> TakeIdle();
  boost::asio::awaitable<bool> WaitForPlace(TimePoint deadline);
  void GiveBackPlace();
  boost::asio::awaitable<ApiAnswer> CallOnce(const ApiRequest& request);
  // One exchange on an open connection; the body up to the request's limit.
  boost::asio::awaitable<ApiAnswer> Exchange(HttpConnection& connection, const ApiRequest& request,
                                             const std::string& text);
  boost::asio::awaitable<ApiAnswer> ReadAnswer(HttpConnection& connection, ResponseHead head,
                                               const ApiRequest& request);
  boost::asio::awaitable<WatchOpening> OpenWatchOnce(const ApiRequest& request);
  void NoteWarnings(const ResponseHead& head);
  void NoteStatus(int http_status);
  void NoteDate(BootTime asked, const ResponseHead& head);

  boost::asio::io_context& context_;
  StopSignal& stop_;
  const Timing timing_;
  const std::string user_agent_;
  const std::string host_header_;
  const std::string path_prefix_;
  const bool may_send_token_;
  const std::function<bool()> may_write_;
  const std::shared_ptr<ServerClock> server_clock_;
  Endpoint endpoint_;
  TokenSource token_;
  TlsContexts tls_;
  std::vector<std::unique_ptr<HttpConnection>> idle_;  // the last one used last
  std::size_t places_taken_ = 0;
  std::deque<boost::asio::steady_timer*> waiting_;  // for a place, first come first served
  std::set<std::string> warnings_seen_;
  bool away_ = false;  // the last connection could not be made, and nothing was granted since
};

}  // namespace tranche::kube
