#include "scheduler/kube/transport/http_client.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>
#include <thread>
#include <utility>

#include "scheduler/kube/transport/server_url.h"
#include "topology/base/status.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr std::size_t kMaxErrorBytes = 256 * 1024;  // of an answer to a watch that was refused
constexpr std::size_t kMaxWarnings = 256;

ApiAnswer NoAnswer(ApiAnswer::Transport transport, const absl::Status& status) {
  ApiAnswer answer;
  answer.transport = transport;
  answer.error = CutMessage(std::string(status.message()));
  return answer;
}

Endpoint EndpointOf(const Options& options) {
  const Credentials& credentials = options.credentials;
  Endpoint endpoint;
  if (options.may_write) endpoint.undelivered_limit = options.bind_timeout;
  endpoint.host = credentials.host;
  endpoint.port = credentials.port;
  endpoint.server_name =
      credentials.tls_server_name.empty() ? credentials.host : credentials.tls_server_name;
  return endpoint;
}

class HttpWatch : public WatchStream {
 public:
  explicit HttpWatch(std::unique_ptr<HttpConnection> connection)
      : connection_(std::move(connection)) {}
  asio::awaitable<absl::StatusOr<std::string>> Read(TimePoint deadline) override {
    return connection_->ReadBody(deadline);
  }
  void Close() override { connection_->Close(); }

 private:
  std::unique_ptr<HttpConnection> connection_;
};

class ThreadRunner : public LoopRunner {
 public:
  explicit ThreadRunner(asio::io_context& context) : context_(context) {}
  void Start() override {
    thread_ = std::thread([this] { context_.run(); });
  }
  // The loop sees for itself what is posted and when a timer ends.
  void Wake(std::chrono::milliseconds) override {}
  void Join() override { thread_.join(); }

 private:
  asio::io_context& context_;
  std::thread thread_;
};

class ThisMachine : public Platform {
 public:
  std::unique_ptr<LoopRunner> RunnerOf(asio::io_context& context) override {
    return std::make_unique<ThreadRunner>(context);
  }
  std::unique_ptr<ApiClient> ClientOf(asio::io_context& context, StopSignal& stop, LoopRunner&,
                                      const Options& options) override {
    return std::make_unique<HttpClient>(context, stop, options);
  }
  uint64_t Seed() override {
    std::random_device device;
    return (uint64_t{device()} << 32) | device();
  }
  std::string HostName() override {
    std::array<char, 256> name{};
    const bool known = gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
    return known ? name.data() : "tranche";
  }
};

}  // namespace

Platform& PlatformOf(const Options& options) {
  static ThisMachine this_machine;  // has no state
  return options.platform == nullptr ? this_machine : *options.platform;
}

std::string TargetOf(const ApiRequest& request, bool guarded) {
  if (!guarded) return request.target;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(request.deadline - steady_clock::now());
  return fmt::format("{}{}timeout={}ms", request.target,
                     request.target.find('?') == std::string::npos ? '?' : '&',
                     std::max<int64_t>(left.count(), 1));
}

// Gives the place back however the call ends.
class HttpClient::Place {
 public:
  explicit Place(HttpClient& client) : client_(client) {}
  ~Place() { client_.GiveBackPlace(); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  HttpClient& client_;
};

HttpClient::HttpClient(asio::io_context& context, StopSignal& stop, const Options& options)
    : context_(context),
      stop_(stop),
      timing_(options.timing),
      user_agent_(options.user_agent),
      host_header_(
          HostHeader(options.credentials.host, options.credentials.port, options.credentials.tls)),
      path_prefix_(options.credentials.path_prefix),
      may_send_token_(options.credentials.tls || options.credentials.token_in_clear),
      may_write_(options.may_write),
      server_clock_(options.server_clock),
      endpoint_(EndpointOf(options)),
      token_(options.credentials, options.timing.token_reread),
      tls_(options.credentials) {}

absl::StatusOr<std::string> HttpClient::Render(const ApiRequest& request) {
  std::string text = fmt::format(
      "{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: application/json\r\n"
      "Accept-Encoding: identity\r\n",
      request.method, path_prefix_, TargetOf(request, IsGuarded(request)), host_header_,
      user_agent_);
  if (may_send_token_) {
    TRANCHE_ASSIGN_OR_RETURN(std::string token, token_.Get(steady_clock::now()));
    if (!token.empty()) text += fmt::format("Authorization: Bearer {}\r\n", token);
  }
  for (const auto& [name, value] : request.headers) {
    text += fmt::format("{}: {}\r\n", name, value);
  }
  if (!request.body.empty()) {
    text += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", request.content_type,
                        request.body.size());
  } else if (request.method == "POST") {
    text += "Content-Length: 0\r\n";
  }
  return text + "\r\n" + request.body;
}

asio::awaitable<absl::StatusOr<std::unique_ptr<HttpConnection>>> HttpClient::Connect(
    TimePoint deadline) {
  auto tls = tls_.Get();
  if (!tls.ok()) co_return tls.status();
  if (stop_.raised()) co_return absl::CancelledError("connecting: stopped");
  auto connection = std::make_unique<HttpConnection>(context_, stop_, endpoint_, std::move(*tls));
  const auto now = steady_clock::now();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now);
  const absl::Status status = co_await connection->Connect(std::min(deadline, now + timing_.dial),
                                                           std::min(timing_.handshake, left));
  if (!status.ok()) {
    away_ = true;
    co_return status;
  }
  co_return std::move(connection);
}

std::unique_ptr<HttpConnection> HttpClient::TakeIdle() {
  const auto oldest = steady_clock::now() - timing_.idle;
  while (!idle_.empty()) {
    std::unique_ptr<HttpConnection> connection = std::move(idle_.back());
    idle_.pop_back();
    if (connection->idle_since() >= oldest && connection->LooksAlive()) return connection;
  }
  return nullptr;
}

asio::awaitable<bool> HttpClient::WaitForPlace(TimePoint deadline) {
  if (places_taken_ < kMaxConnections) {
    ++places_taken_;
    co_return true;
  }
  // A call that gives its place back takes our timer out of the line and leaves the place to us.
  asio::steady_timer turn(context_, deadline);
  waiting_.push_back(&turn);
  const StopSignal::Registration wake(stop_, [&turn] { turn.cancel(); });
  co_await turn.async_wait(asio::as_tuple(asio::use_awaitable));
  const auto mine = std::find(waiting_.begin(), waiting_.end(), &turn);
  if (mine == waiting_.end()) co_return true;
  waiting_.erase(mine);
  co_return false;
}

void HttpClient::GiveBackPlace() {
  if (waiting_.empty()) {
    --places_taken_;
    return;
  }
  waiting_.front()->cancel();
  waiting_.pop_front();
}

void HttpClient::NoteWarnings(const ResponseHead& head) {
  for (const std::string& warning : head.warnings) {
    if (warnings_seen_.size() >= kMaxWarnings) return;
    const std::string text = CutMessage(warning);
    if (warnings_seen_.insert(text).second) spdlog::warn("the API server warns: {}", text);
  }
}

// A server that has just started refuses much of what it grants a moment later.
void HttpClient::NoteStatus(int http_status) {
  const bool granted = http_status >= 200 && http_status < 300;
  if (granted && std::exchange(away_, false)) NoteReturn();
}

void HttpClient::NoteDate(BootTime asked, const ResponseHead& head) {
  if (server_clock_ == nullptr || !head.date) return;
  server_clock_->Note(asked, ServerClock::Moment::Now(), *head.date);
}

asio::awaitable<ApiAnswer> HttpClient::ReadAnswer(HttpConnection& connection, ResponseHead head,
                                                  const ApiRequest& request) {
  NoteWarnings(head);
  NoteStatus(head.status);
  ApiAnswer answer;
  answer.transport = ApiAnswer::Transport::kAnswered;
  answer.status = head.status;
  answer.retry_after_seconds = head.retry_after_seconds;
  for (;;) {
    auto piece = co_await connection.ReadBody(request.deadline);
    if (!piece.ok()) co_return NoAnswer(ApiAnswer::Transport::kLost, piece.status());
    if (piece->empty()) co_return answer;
    if (request.read_body && answer.succeeded()) {
      const absl::Status status = request.read_body(*piece);
      if (!status.ok()) co_return NoAnswer(ApiAnswer::Transport::kLost, status);
      continue;
    }
    answer.body += *piece;
    if (answer.body.size() > request.answer_limit) {
      co_return NoAnswer(
          ApiAnswer::Transport::kLost,
          absl::ResourceExhaustedError(fmt::format(
              "expected an answer of at most {} bytes, found a larger one", request.answer_limit)));
    }
  }
}

asio::awaitable<ApiAnswer> HttpClient::Exchange(HttpConnection& connection,
                                                const ApiRequest& request,
                                                const std::string& text) {
  if (IsGuarded(request) && !may_write_()) {
    co_return NoAnswer(ApiAnswer::Transport::kNotSent,
                       absl::FailedPreconditionError("this process may not write any more"));
  }
  const BootTime asked = BootNow();
  const absl::Status sent = co_await connection.Send(text, request.deadline);
  if (!sent.ok()) {
    co_return NoAnswer(
        connection.sent() ? ApiAnswer::Transport::kLost : ApiAnswer::Transport::kNotSent, sent);
  }
  auto head = co_await connection.ReadHead(request.deadline);
  if (!head.ok()) co_return NoAnswer(ApiAnswer::Transport::kLost, head.status());
  NoteDate(asked, *head);
  ApiAnswer answer = co_await ReadAnswer(connection, std::move(*head), request);
  co_return answer;
}

asio::awaitable<ApiAnswer> HttpClient::CallOnce(const ApiRequest& request) {
  const auto text = Render(request);
  if (!text.ok()) co_return NoAnswer(ApiAnswer::Transport::kNotSent, text.status());
  const bool repeatable = request.method == "GET";
  for (;;) {
    std::unique_ptr<HttpConnection> connection = TakeIdle();
    const bool reused = connection != nullptr;
    if (!reused) {
      auto fresh = co_await Connect(request.deadline);
      if (!fresh.ok()) co_return NoAnswer(ApiAnswer::Transport::kNotSent, fresh.status());
      connection = std::move(*fresh);
    }
    ApiAnswer answer = co_await Exchange(*connection, request, *text);
    if (answer.transport == ApiAnswer::Transport::kAnswered) {
      if (connection->reusable() && !stop_.raised()) idle_.push_back(std::move(connection));
      co_return answer;
    }
    const bool stale = reused && !connection->got_answer() && !stop_.raised() &&
                       steady_clock::now() < request.deadline;
    const bool harmless = repeatable || answer.transport == ApiAnswer::Transport::kNotSent;
    if (!stale || !harmless) co_return answer;
  }
}

asio::awaitable<ApiAnswer> HttpClient::Call(const ApiRequest& request) {
  const bool admitted = co_await WaitForPlace(request.deadline);
  if (!admitted) {
    co_return NoAnswer(ApiAnswer::Transport::kNotSent,
                       absl::DeadlineExceededError("all connections were busy"));
  }
  const Place place(*this);
  ApiAnswer answer = co_await CallOnce(request);
  if (answer.status == 401 && token_.Expire()) answer = co_await CallOnce(request);
  co_return answer;
}

asio::awaitable<WatchOpening> HttpClient::OpenWatchOnce(const ApiRequest& request) {
  WatchOpening opening;
  const auto text = Render(request);
  if (!text.ok()) {
    opening.answer = NoAnswer(ApiAnswer::Transport::kNotSent, text.status());
    co_return opening;
  }
  auto connection = co_await Connect(request.deadline);
  if (!connection.ok()) {
    opening.answer = NoAnswer(ApiAnswer::Transport::kNotSent, connection.status());
    co_return opening;
  }
  const BootTime asked = BootNow();
  const absl::Status sent = co_await (*connection)->Send(*text, request.deadline);
  if (!sent.ok()) {
    opening.answer = NoAnswer(ApiAnswer::Transport::kLost, sent);
    co_return opening;
  }
  auto head = co_await (*connection)->ReadHead(request.deadline);
  if (!head.ok()) {
    opening.answer = NoAnswer(ApiAnswer::Transport::kLost, head.status());
    co_return opening;
  }
  NoteDate(asked, *head);
  if (head->status != 200) {
    opening.answer = co_await ReadAnswer(**connection, std::move(*head), request);
    co_return opening;
  }
  NoteWarnings(*head);
  NoteStatus(head->status);
  opening.answer.transport = ApiAnswer::Transport::kAnswered;
  opening.answer.status = 200;
  opening.stream = std::make_unique<HttpWatch>(std::move(*connection));
  co_return opening;
}

asio::awaitable<WatchOpening> HttpClient::OpenWatch(const std::string& target) {
  ApiRequest request;
  request.target = target;
  request.answer_limit = kMaxErrorBytes;
  request.deadline = steady_clock::now() + timing_.request;
  WatchOpening opening = co_await OpenWatchOnce(request);
  if (opening.answer.status == 401 && token_.Expire()) {
    opening = co_await OpenWatchOnce(request);
  }
  co_return opening;
}

}  // namespace tranche::kube
