#include "scheduler/kube/cluster.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "scheduler/kube/api_client.h"
#include "scheduler/kube/object_sinks.h"
#include "scheduler/kube/pod_calls.h"
#include "scheduler/kube/reflector.h"
#include "topology/base/check.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

// Coroutines here return errors as values; what still throws is out of memory or a mistake.
void Rethrow(const std::exception_ptr& thrown) {
  if (thrown) std::rethrow_exception(thrown);
}

uint64_t RandomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

WriteResult NotRunning() {
  WriteResult result;
  result.kind = WriteResult::Kind::kNotSent;
  result.message = "the Kubernetes client is not running";
  return result;
}

// One thread with its event loop and a client of its own, so that nothing in it is shared.
class IoThread {
 public:
  explicit IoThread(const Options& options)
      : context_(1), stop_(context_), client_(context_, stop_, options) {}

  asio::io_context& context() { return context_; }
  StopSignal& stop() { return stop_; }
  ApiClient& client() { return client_; }

  void Start() {
    thread_ = std::thread([this] { context_.run(); });
  }
  // Everything posted before is still begun, finds the signal raised, and ends.
  void Stop() {
    asio::post(context_, [this] { stop_.Raise(); });
    guard_.reset();
    thread_.join();
  }

 private:
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_{context_.get_executor()};
  StopSignal stop_;
  ApiClient client_;
  std::thread thread_;
};

}  // namespace

struct Cluster::Impl {
  Impl(Options given, ClusterEvents& receiver);

  void Spawn(Reflector& reflector);
  asio::awaitable<void> BindOne(BindingWrite write, steady_clock::time_point deadline,
                                std::function<void(WriteResult)> done);
  asio::awaitable<void> PokeOne(PodName pod, PodUid uid, Instant when,
                                steady_clock::time_point deadline,
                                std::function<void(WriteResult)> done);
  asio::awaitable<void> GetOne(PodName pod, PodUid uid, steady_clock::time_point deadline,
                               std::function<void(PodLookup)> done);

  const Options options;
  ClusterEvents& events;
  IoThread reading;
  IoThread writing;
  PodSink pod_sink;
  NodeSink node_sink;
  PolicySink policy_sink;
  Reflector policies;
  Reflector pods;
  Reflector nodes;
  PodCalls calls;

  enum class State : uint8_t { kNew, kRunning, kStopped };
  std::mutex mutex;
  State state = State::kNew;  // guarded by mutex; work is posted under it
};

namespace {

ReflectorOptions Resource(const char* name, const char* path, bool may_be_absent,
                          const Timing& timing) {
  ReflectorOptions options;
  options.resource = name;
  options.path = path;
  options.may_be_absent = may_be_absent;
  options.timing = timing;
  options.seed = RandomSeed();
  return options;
}

}  // namespace

Cluster::Impl::Impl(Options given, ClusterEvents& receiver)
    : options(std::move(given)),
      events(receiver),
      reading(options),
      writing(options),
      pod_sink(events),
      node_sink(events),
      policy_sink(events, options.policy_defaults),
      policies(
          Resource("gpupolicies", "/apis/tranche.dev/v1alpha1/gpupolicies", true, options.timing),
          reading.client(), reading.stop(), policy_sink, [] {}),
      pods(Resource("pods", "/api/v1/pods", false, options.timing), reading.client(),
           reading.stop(), pod_sink, [this] { events.Synced(); }),
      // Pods come after nodes, so that their devices find a node to be on.
      nodes(Resource("nodes", "/api/v1/nodes", false, options.timing), reading.client(),
            reading.stop(), node_sink, [this] { Spawn(pods); }),
      calls(writing.client(), writing.stop(), options.timing) {}

void Cluster::Impl::Spawn(Reflector& reflector) {
  asio::co_spawn(reading.context(), reflector.Run(), Rethrow);
  asio::co_spawn(reading.context(), reflector.CheckForDrift(), Rethrow);
  asio::co_spawn(reading.context(), reflector.ProbeInSilence(), Rethrow);
}

asio::awaitable<void> Cluster::Impl::BindOne(BindingWrite write, steady_clock::time_point deadline,
                                             std::function<void(WriteResult)> done) {
  WriteResult result = co_await calls.Bind(std::move(write), deadline);
  done(std::move(result));
}

asio::awaitable<void> Cluster::Impl::PokeOne(PodName pod, PodUid uid, Instant when,
                                             steady_clock::time_point deadline,
                                             std::function<void(WriteResult)> done) {
  WriteResult result = co_await calls.Poke(std::move(pod), std::move(uid), when, deadline);
  done(std::move(result));
}

asio::awaitable<void> Cluster::Impl::GetOne(PodName pod, PodUid uid,
                                            steady_clock::time_point deadline,
                                            std::function<void(PodLookup)> done) {
  PodLookup lookup = co_await calls.Get(std::move(pod), std::move(uid), deadline);
  done(std::move(lookup));
}

Cluster::Cluster(Options options, ClusterEvents& events)
    : impl_(std::make_unique<Impl>(std::move(options), events)) {}

Cluster::~Cluster() { Stop(); }

void Cluster::Start() {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  TRANCHE_CHECK(impl_->state == Impl::State::kNew);
  impl_->state = Impl::State::kRunning;
  impl_->Spawn(impl_->policies);
  impl_->Spawn(impl_->nodes);
  impl_->reading.Start();
  impl_->writing.Start();
}

void Cluster::Stop() {
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    const bool running = impl_->state == Impl::State::kRunning;
    impl_->state = Impl::State::kStopped;
    if (!running) return;
  }
  impl_->writing.Stop();
  impl_->reading.Stop();
}

std::map<std::string, ResourceStatus> Cluster::status() const {
  std::map<std::string, ResourceStatus> out;
  out["pods"] = impl_->pods.status();
  out["nodes"] = impl_->nodes.status();
  const ResourceStatus policies = impl_->policies.status();
  if (policies.synced) out["gpupolicies"] = policies;
  return out;
}

void Cluster::Bind(BindingWrite write, std::function<void(WriteResult)> done) {
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    if (impl_->state == Impl::State::kRunning) {
      const auto deadline = steady_clock::now() + impl_->options.bind_timeout;
      asio::post(impl_->writing.context(), [impl = impl_.get(), write = std::move(write), deadline,
                                            done = std::move(done)]() mutable {
        asio::co_spawn(impl->writing.context(),
                       impl->BindOne(std::move(write), deadline, std::move(done)), Rethrow);
      });
      return;
    }
  }
  done(NotRunning());
}

void Cluster::Poke(PodName pod, PodUid uid, Instant when, std::function<void(WriteResult)> done) {
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    if (impl_->state == Impl::State::kRunning) {
      const auto deadline = steady_clock::now() + impl_->options.bind_timeout;
      asio::post(
          impl_->writing.context(), [impl = impl_.get(), pod = std::move(pod), uid = std::move(uid),
                                     when, deadline, done = std::move(done)]() mutable {
            asio::co_spawn(
                impl->writing.context(),
                impl->PokeOne(std::move(pod), std::move(uid), when, deadline, std::move(done)),
                Rethrow);
          });
      return;
    }
  }
  done(NotRunning());
}

void Cluster::GetPod(PodName pod, PodUid uid, std::function<void(PodLookup)> done) {
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex);
    if (impl_->state == Impl::State::kRunning) {
      const auto deadline = steady_clock::now() + impl_->options.bind_timeout;
      asio::post(
          impl_->writing.context(), [impl = impl_.get(), pod = std::move(pod), uid = std::move(uid),
                                     deadline, done = std::move(done)]() mutable {
            asio::co_spawn(impl->writing.context(),
                           impl->GetOne(std::move(pod), std::move(uid), deadline, std::move(done)),
                           Rethrow);
          });
      return;
    }
  }
  PodLookup lookup;
  lookup.message = "the Kubernetes client is not running";
  done(std::move(lookup));
}

}  // namespace tranche::kube
