#include "scheduler/kube/transport/single_call.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <utility>

#include "scheduler/kube/transport/http_client.h"
#include "scheduler/kube/transport/stop_signal.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;

// Every node and GPU of a large fleet is a few dozen MiB.
constexpr std::size_t kMostAnswer = std::size_t{256} * 1024 * 1024;

}  // namespace

absl::StatusOr<SingleAnswer> CallOnce(const Credentials& credentials,
                                      const SingleRequest& request) {
  Options options;
  options.credentials = credentials;
  asio::io_context context{1};
  StopSignal stop(context);
  HttpClient client(context, stop, options);
  ApiRequest call;
  call.method = request.method;
  call.target = request.target;
  call.body = request.body;
  call.content_type = request.content_type;
  call.headers = request.headers;
  call.answer_limit = kMostAnswer;
  call.deadline = std::chrono::steady_clock::now() + request.timeout;
  ApiAnswer answer;
  asio::co_spawn(context, client.Call(call),
                 [&answer](const std::exception_ptr& thrown, ApiAnswer found) {
                   if (thrown) std::rethrow_exception(thrown);
                   answer = std::move(found);
                 });
  context.run();
  switch (answer.transport) {
    case ApiAnswer::Transport::kAnswered:
      return SingleAnswer{answer.status, std::move(answer.body)};
    case ApiAnswer::Transport::kNotSent:
      return absl::FailedPreconditionError(answer.error);
    case ApiAnswer::Transport::kLost:
      break;
  }
  return absl::UnavailableError(answer.error);
}

}  // namespace tranche::kube
