#include "scheduler/kube/reviews/reviewer.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/kube/reviews/review_requests.h"
#include "scheduler/kube/transport/api_client.h"
#include "scheduler/kube/transport/stop_signal.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

// The right to write is asked for before writes; a review is none, though it is sent as one.
Options ForReviews(Options options) {
  options.may_write = nullptr;
  return options;
}

}  // namespace

struct Reviewer::Impl {
  Impl(Options given, std::vector<std::string> wanted)
      : options(ForReviews(std::move(given))),
        audiences(std::move(wanted)),
        context(PlatformOf(options).ConcurrencyHint()),
        runner(PlatformOf(options).RunnerOf(context)),
        client(PlatformOf(options).ClientOf(context, stop, *runner, options)) {
    stop.OnSleep([this](std::chrono::milliseconds time) { runner->Wake(time); });
  }

  using Done = std::function<void(const ApiAnswer&)>;
  asio::awaitable<void> Ask(ApiRequest request, Done done);
  void Post(ApiRequest request, Done done);

  const Options options;
  const std::vector<std::string> audiences;
  asio::io_context context;
  StopSignal stop{context};
  std::unique_ptr<LoopRunner> runner;
  std::unique_ptr<ApiClient> client;
  // Keeps the loop there while nothing is asked.
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  absl::Mutex mutex;
  bool running ABSL_GUARDED_BY(mutex) = false;
};

asio::awaitable<void> Reviewer::Impl::Ask(ApiRequest request, Done done) {
  const ApiAnswer answer = co_await client->Call(request);
  done(answer);
}

void Reviewer::Impl::Post(ApiRequest request, Done done) {
  {
    const absl::MutexLock lock(&mutex);
    if (running) {
      asio::post(context, [this, request = std::move(request), done = std::move(done)]() mutable {
        asio::co_spawn(context, Ask(std::move(request), std::move(done)), Rethrow);
      });
      runner->Wake({});
      return;
    }
  }
  ApiAnswer none;
  none.error = "stopping";
  done(none);
}

Reviewer::Reviewer(Options client, std::vector<std::string> audiences)
    : impl_(std::make_unique<Impl>(std::move(client), std::move(audiences))) {}

Reviewer::~Reviewer() { Stop(); }

void Reviewer::Start() {
  impl_->runner->Start();
  const absl::MutexLock lock(&impl_->mutex);
  impl_->running = true;
}

void Reviewer::Stop() {
  {
    const absl::MutexLock lock(&impl_->mutex);
    if (!std::exchange(impl_->running, false)) return;
  }
  asio::post(impl_->context, [impl = impl_.get()] { impl->stop.Raise(); });
  impl_->work.reset();
  impl_->runner->Wake({});
  impl_->runner->Join();
}

void Reviewer::WhoIs(std::string token, TokenDone done) {
  ApiRequest request = TokenReviewRequest(token, impl_->audiences, steady_clock::now() + kPatience);
  impl_->Post(std::move(request),
              [impl = impl_.get(), done = std::move(done)](const ApiAnswer& answer) {
                done(ReadTokenReview(answer, impl->audiences));
              });
}

void Reviewer::May(const ReviewedUser& user, const AccessQuestion& question, AccessDone done) {
  impl_->Post(
      AccessReviewRequest(user, question, steady_clock::now() + kPatience),
      [done = std::move(done)](const ApiAnswer& answer) { done(ReadAccessReview(answer)); });
}

}  // namespace tranche::kube
