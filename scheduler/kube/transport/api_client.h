// What the client stands on: how requests reach the server and who runs its event loops. Sockets
// and threads (http_client.h), unless a simulation brings its own. Retries are only those that
// cannot repeat an effect: any read, and once after a 401 with the token read again. Redirects are
// never followed.
//
// Thread rule of a client: the thread of its loop. Source: kube-client-protocol 1, 3, 4.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/kube/transport/api_status.h"
#include "scheduler/kube/transport/options.h"
#include "scheduler/kube/transport/stop_signal.h"
#include "scheduler/kube/transport/timing.h"

namespace tranche::kube {

inline constexpr std::size_t kMaxAnswerBytes = 16 * 1024 * 1024;  // one object

struct ApiRequest {
  std::string method = "GET";
  std::string target;  // path and query below the server URL, percent-encoded
  std::string body;    // JSON; empty: none
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones; never logged
  std::size_t answer_limit = kMaxAnswerBytes;
  // Takes the body of a 2xx piece by piece instead of ApiAnswer::body and its limit; what it
  // returns ends the call (kLost).
  std::function<absl::Status(std::string_view)> read_body;
  TimePoint deadline;
};

// What is asked for: a guarded write has the server give up when nobody waits any more.
std::string TargetOf(const ApiRequest& request, bool guarded);

// A watch whose 200 has arrived. Destroying it ends it.
class WatchStream {
 public:
  virtual ~WatchStream() = default;
  // The next bytes; "" when the server ended the stream in order.
  virtual boost::asio::awaitable<absl::StatusOr<std::string>> Read(TimePoint deadline) = 0;
  // Read, also one under way, fails from now on.
  virtual void Close() = 0;
};

struct WatchOpening {
  ApiAnswer answer;                     // without a body on success
  std::unique_ptr<WatchStream> stream;  // null unless the answer is a 200
};

class ApiClient {
 public:
  virtual ~ApiClient() = default;
  virtual boost::asio::awaitable<ApiAnswer> Call(const ApiRequest& request) = 0;
  virtual boost::asio::awaitable<WatchOpening> OpenWatch(const std::string& target) = 0;
  // How often the server granted a request after it could not be connected to.
  uint64_t returns() const { return returns_; }
  // Rings each time that happens.
  Bell& returned() { return returned_; }

 protected:
  void NoteReturn() {
    ++returns_;
    returned_.Ring();
  }

 private:
  uint64_t returns_ = 0;
  Bell returned_;
};

// Runs one event loop from Start on.
//
// Thread rule: Start and Join from one thread, Wake from any.
class LoopRunner {
 public:
  virtual ~LoopRunner() = default;
  virtual void Start() = 0;
  // Something is to be run in so much time: now, where it was posted from outside the loop.
  virtual void Wake(std::chrono::milliseconds in) = 0;
  // Waits until the loop has nothing left to do.
  virtual void Join() = 0;
};

// Thread rule: any thread.
class Platform {
 public:
  virtual ~Platform() = default;
  // Of the event loops that RunnerOf runs, each on one thread. Others post to them.
  virtual int ConcurrencyHint() const { return 1; }
  virtual std::unique_ptr<LoopRunner> RunnerOf(boost::asio::io_context& context) = 0;
  // All references outlive the client.
  virtual std::unique_ptr<ApiClient> ClientOf(boost::asio::io_context& context, StopSignal& stop,
                                              LoopRunner& runner, const Options& options) = 0;
  // Of a random sequence.
  virtual uint64_t Seed() = 0;
  // In a pod, the pod's name.
  virtual std::string HostName() = 0;
};

// That of the options; sockets and threads where they name none.
Platform& PlatformOf(const Options& options);

}  // namespace tranche::kube
