#include "test/sim/product/platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "scheduler/kube/transport/server_clock.h"
#include "topology/base/check.h"

namespace tranche::sim {
namespace {

namespace asio = boost::asio;
using kube::ApiAnswer;
using kube::ApiRequest;
using kube::TimePoint;
using std::chrono::steady_clock;

// A watch of which neither bytes nor an end came by then was granted.
constexpr std::chrono::milliseconds kGranted{20};
// Turns of an event loop that ends; far more than it needs.
constexpr int kLastTurns = 10'000;

class Runner : public kube::LoopRunner {
 public:
  Runner(Process& process, asio::io_context& context)
      : context_(context), turns_(process, [this] { context_.poll(); }) {}

  void Start() override {
    started_ = true;
    Wake({});
  }
  void Wake(std::chrono::milliseconds in) override {
    if (started_) turns_.In(in);
  }
  void Join() override {
    for (int turn = 0; turn < kLastTurns && !context_.stopped(); ++turn) context_.poll();
    TRANCHE_CHECK(context_.stopped());
  }

 private:
  asio::io_context& context_;
  bool started_ = false;
  Turns turns_;
};

// Something a coroutine waits for. Its coroutine owns it; who makes it come true may not.
class Awaited {
 public:
  Awaited(asio::io_context& context, kube::LoopRunner& runner)
      : timer_(context, TimePoint::max()), runner_(runner) {}

  void Come() {
    timer_.cancel();
    runner_.Wake({});
  }
  asio::awaitable<void> Wait(TimePoint deadline) {
    timer_.expires_at(deadline);
    co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }

 private:
  asio::steady_timer timer_;
  kube::LoopRunner& runner_;
};

ApiAnswer NoAnswer(ApiAnswer::Transport transport, std::string why) {
  ApiAnswer answer;
  answer.transport = transport;
  answer.error = std::move(why);
  return answer;
}

struct OpenWatch {
  OpenWatch(asio::io_context& context, kube::LoopRunner& runner) : news(context, runner) {}

  Awaited news;
  std::string bytes;  // not read yet
  std::optional<int> ended;
  std::string refusal;
  bool closed = false;
  bool timed = false;  // somebody comes at the end of a read

  bool HasNews() const { return !bytes.empty() || ended.has_value() || closed; }
};

class Stream : public kube::WatchStream {
 public:
  Stream(Process& process, ApiEndpoint& api, kube::StopSignal& stop, uint64_t id,
         std::shared_ptr<OpenWatch> watch)
      : process_(process),
        api_(api),
        id_(id),
        watch_(std::move(watch)),
        registration_(stop, [this] { Close(); }) {}
  ~Stream() override { api_.CloseWatch(id_); }

  asio::awaitable<absl::StatusOr<std::string>> Read(TimePoint deadline) override {
    deadline_ = deadline;
    if (!watch_->HasNews()) {
      ComeAtDeadline();
      co_await watch_->news.Wait(deadline);
    }
    if (watch_->closed) co_return absl::UnavailableError("closed");
    if (!watch_->bytes.empty()) co_return std::exchange(watch_->bytes, "");
    if (!watch_->ended) co_return absl::DeadlineExceededError("nothing came");
    if (*watch_->ended == 200) co_return "";
    // A refusal that was slow: the server says the same in the stream.
    if (!watch_->refusal.empty()) {
      co_return fmt::format("{{\"type\":\"ERROR\",\"object\":{}}}\n",
                            std::exchange(watch_->refusal, ""));
    }
    co_return absl::UnavailableError("the connection was lost");
  }
  void Close() override {
    watch_->closed = true;
    watch_->news.Come();
  }

 private:
  // One step for all reads: most of them end long before.
  void ComeAtDeadline() {
    if (std::exchange(watch_->timed, true)) return;
    process_.At(deadline_.time_since_epoch().count(),
                [this, open = std::weak_ptr<OpenWatch>(watch_)] {
                  const auto watch = open.lock();
                  if (!watch) return;
                  watch->timed = false;
                  if (deadline_ > steady_clock::now()) return ComeAtDeadline();
                  watch->news.Come();
                });
  }

  Process& process_;
  ApiEndpoint& api_;
  const uint64_t id_;
  TimePoint deadline_;
  const std::shared_ptr<OpenWatch> watch_;
  const kube::StopSignal::Registration registration_;
};

class Client : public kube::ApiClient {
 public:
  Client(Process& process, ApiEndpoint& api, asio::io_context& context, kube::StopSignal& stop,
         kube::LoopRunner& runner, const kube::Options& options)
      : process_(process),
        api_(api),
        context_(context),
        stop_(stop),
        runner_(runner),
        may_write_(options.may_write),
        server_clock_(options.server_clock),
        request_time_(options.timing.request) {}

  asio::awaitable<ApiAnswer> Call(const ApiRequest& request) override;
  asio::awaitable<kube::WatchOpening> OpenWatch(const std::string& target) override;

 private:
  struct Pending {
    Pending(asio::io_context& context, kube::LoopRunner& runner) : answer(context, runner) {}
    Awaited answer;
    std::optional<Reply> reply;
  };

  // As the real client notes it.
  void Note(const Reply& reply) {
    if (!reply.sent) away_ = true;
    if (reply.code >= 200 && reply.code < 300 && std::exchange(away_, false)) NoteReturn();
  }
  ApiAnswer Judge(Reply reply, const ApiRequest& request);
  absl::Status Feed(std::string_view body, const ApiRequest& request);

  Process& process_;
  ApiEndpoint& api_;
  asio::io_context& context_;
  kube::StopSignal& stop_;
  kube::LoopRunner& runner_;
  const std::function<bool()> may_write_;
  const std::shared_ptr<kube::ServerClock> server_clock_;
  const std::chrono::milliseconds request_time_;
  bool away_ = false;
};

absl::Status Client::Feed(std::string_view body, const ApiRequest& request) {
  // A body arrives in pieces, cut anywhere.
  const auto size = static_cast<int64_t>(body.size());
  const auto cut = static_cast<std::size_t>(process_.draws().Between(0, size));
  absl::Status status = request.read_body(body.substr(0, cut));
  if (status.ok()) status = request.read_body(body.substr(cut));
  return status;
}

ApiAnswer Client::Judge(Reply reply, const ApiRequest& request) {
  Note(reply);
  if (reply.code == 0) {
    return NoAnswer(reply.sent ? ApiAnswer::Transport::kLost : ApiAnswer::Transport::kNotSent,
                    "no answer came");
  }
  ApiAnswer answer;
  answer.transport = ApiAnswer::Transport::kAnswered;
  answer.status = reply.code;
  if (reply.retry_after) answer.retry_after_seconds = *reply.retry_after;
  if (!request.read_body || !answer.succeeded()) {
    answer.body = std::move(reply.body);
    return answer;
  }
  const absl::Status status = Feed(reply.body, request);
  if (status.ok()) return answer;
  return NoAnswer(ApiAnswer::Transport::kLost, std::string(status.message()));
}

asio::awaitable<ApiAnswer> Client::Call(const ApiRequest& request) {
  const bool guarded = may_write_ != nullptr && request.method != "GET";
  if (guarded && !may_write_()) {
    co_return NoAnswer(ApiAnswer::Transport::kNotSent, "this process may not write any more");
  }
  const auto left = std::chrono::duration_cast<SimTime>(request.deadline - steady_clock::now());
  if (stop_.raised() || process_.dead() || left <= SimTime{0}) {
    co_return NoAnswer(ApiAnswer::Transport::kNotSent, "the request was not begun in time");
  }
  const auto pending = std::make_shared<Pending>(context_, runner_);
  const std::function<void(Reply)> done = [open = std::weak_ptr<Pending>(pending)](Reply reply) {
    const auto asked = open.lock();
    if (!asked) return;
    asked->reply = std::move(reply);
    asked->answer.Come();
  };
  const std::string target = kube::TargetOf(request, guarded);
  const BootTime asked = BootNow();
  api_.Send(process_.actor(), {request.method, target, request.body, request.content_type}, left,
            process_.Wrap(done));
  const kube::StopSignal::Registration wake(stop_, [&pending] { pending->answer.Come(); });
  co_await pending->answer.Wait(TimePoint::max());
  if (!pending->reply) co_return NoAnswer(ApiAnswer::Transport::kLost, "stopped");
  const auto& date = pending->reply->date;
  if (date && server_clock_) server_clock_->Note(asked, kube::ServerClock::Moment::Now(), *date);
  co_return Judge(*std::move(pending->reply), request);
}

asio::awaitable<kube::WatchOpening> Client::OpenWatch(const std::string& target) {
  kube::WatchOpening opening;
  if (stop_.raised() || process_.dead()) {
    opening.answer = NoAnswer(ApiAnswer::Transport::kNotSent, "stopped");
    co_return opening;
  }
  const auto watch = std::make_shared<sim::OpenWatch>(context_, runner_);
  const std::weak_ptr<sim::OpenWatch> open = watch;
  const std::function<void(std::string_view)> bytes = [open](std::string_view piece) {
    const auto known = open.lock();
    if (!known) return;
    known->bytes += piece;
    known->news.Come();
  };
  const std::function<void(int, std::string)> ended = [open](int code, std::string body) {
    const auto known = open.lock();
    if (!known) return;
    known->ended = code;
    known->refusal = std::move(body);
    known->news.Come();
  };
  const uint64_t id =
      api_.Watch(process_.actor(), target, process_.Wrap(bytes), process_.Wrap(ended));
  const kube::StopSignal::Registration wake(stop_, [&watch] { watch->news.Come(); });
  runner_.Wake(kGranted);
  co_await watch->news.Wait(steady_clock::now() + kGranted);
  const bool refused = watch->ended && *watch->ended != 200 && watch->bytes.empty();
  if (refused || stop_.raised()) {
    const bool sent = !watch->ended || *watch->ended != 0;
    opening.answer = Judge({watch->ended.value_or(0), sent, watch->refusal, std::nullopt}, {});
    api_.CloseWatch(id);
    co_return opening;
  }
  Note({200});
  opening.answer.transport = ApiAnswer::Transport::kAnswered;
  opening.answer.status = 200;
  opening.stream = std::make_unique<Stream>(process_, api_, stop_, id, watch);
  co_return opening;
}

}  // namespace

std::unique_ptr<kube::LoopRunner> SimPlatform::RunnerOf(asio::io_context& context) {
  return std::make_unique<Runner>(process_, context);
}

std::unique_ptr<kube::ApiClient> SimPlatform::ClientOf(asio::io_context& context,
                                                       kube::StopSignal& stop,
                                                       kube::LoopRunner& runner,
                                                       const kube::Options& options) {
  return std::make_unique<Client>(process_, api_, context, stop, runner, options);
}

std::string SimPlatform::HostName() { return process_.name().substr(0, process_.name().find('/')); }

}  // namespace tranche::sim
