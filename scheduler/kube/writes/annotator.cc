#include "scheduler/kube/writes/annotator.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <utility>

#include "scheduler/kube/transport/http_client.h"
#include "scheduler/kube/transport/stop_signal.h"
#include "scheduler/kube/writes/api_calls.h"
#include "scheduler/kube/writes/write_requests.h"

namespace tranche::kube {

namespace asio = boost::asio;

struct Annotator::Impl {
  explicit Impl(Options given)
      : options(std::move(given)),
        stop(context),
        client(context, stop, options),
        calls(client, stop, options.timing) {}

  const Options options;
  asio::io_context context{1};
  StopSignal stop;
  HttpClient client;
  ApiCalls calls;
};

Annotator::Annotator(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Annotator::~Annotator() = default;

WriteResult Annotator::Annotate(const NodeName& node,
                                const std::map<std::string, std::string>& annotations) {
  ApiRequest request = NodeAnnotationRequest(node, annotations);
  request.deadline = std::chrono::steady_clock::now() + impl_->options.bind_timeout;
  WriteResult result;
  asio::co_spawn(impl_->context, impl_->calls.Write(std::move(request), ApiCalls::kMaxTries),
                 [&result](const std::exception_ptr& thrown, WriteResult answer) {
                   if (thrown) std::rethrow_exception(thrown);
                   result = std::move(answer);
                 });
  impl_->context.restart();
  impl_->context.run();
  return result;
}

}  // namespace tranche::kube
