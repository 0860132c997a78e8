#include "scheduler/kube/cluster.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <list>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/kube/transport/api_client.h"
#include "scheduler/kube/watch/object_sinks.h"
#include "scheduler/kube/watch/observed_resources.h"
#include "scheduler/kube/watch/policy_resources.h"
#include "scheduler/kube/watch/reflector.h"
#include "scheduler/kube/writes/api_calls.h"
#include "scheduler/kube/writes/node_lock.h"
#include "scheduler/kube/writes/pod_marks.h"
#include "scheduler/kube/writes/provisioning.h"
#include "scheduler/kube/writes/scheduling_gate.h"
#include "scheduler/kube/writes/write_requests.h"
#include "topology/base/check.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr const char* kNotRunning = "the Kubernetes client is not running";

// One thread with its event loop and a client of its own, so that nothing in it is shared.
class IoThread {
 public:
  explicit IoThread(const Options& options)
      : context_(PlatformOf(options).ConcurrencyHint()),
        stop_(context_),
        runner_(PlatformOf(options).RunnerOf(context_)),
        client_(NewClient(options)) {
    stop_.OnSleep([this](std::chrono::milliseconds time) { runner_->Wake(time); });
  }

  asio::io_context& context() { return context_; }
  StopSignal& stop() { return stop_; }
  ApiClient& client() { return *client_; }
  std::unique_ptr<ApiClient> NewClient(const Options& options) {
    return PlatformOf(options).ClientOf(context_, stop_, *runner_, options);
  }
  template <typename Work>
  void Post(Work work) {
    asio::post(context_, std::move(work));
    runner_->Wake({});
  }

  void Start() { runner_->Start(); }
  // Everything posted before is still begun, finds the signal raised, and ends.
  void Stop() {
    Post([this] { stop_.Raise(); });
    guard_.reset();
    runner_->Join();
  }

 private:
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_{context_.get_executor()};
  StopSignal stop_;
  std::unique_ptr<LoopRunner> runner_;
  std::unique_ptr<ApiClient> client_;
};

}  // namespace

struct Cluster::Impl {
  // A resource that comes before nodes: its objects' way from the server to the engine.
  struct Early {
    Early(Impl& owner, std::unique_ptr<ObjectSink> objects, ReflectorOptions how);
    std::unique_ptr<ObjectSink> sink;
    Reflector reflector;
    bool written_by_us = false;
  };

  Impl(Options given, ClusterEvents& receiver);

  void Spawn(Reflector& reflector);
  // `call` on the writing thread, given its deadline; its result, or that we do not run, to `done`.
  template <typename Result, typename Call>
  void Run(Call call, std::function<void(Result)> done);
  // As Run, for what reads and writes in turn.
  template <typename Result, typename Write>
  void Change(asio::awaitable<Result> (*change)(ApiCalls&, Write, TimePoint), Write write,
              std::function<void(Result)> done) {
    auto call = [this, change, write = std::move(write)](TimePoint deadline) mutable {
      return change(calls, std::move(write), deadline);
    };
    Run(std::move(call), std::move(done));
  }
  void Send(ApiCalls& through, ApiRequest request, int tries,
            std::function<void(WriteResult)> done);
  // What is lost in a hiccup of the server is sent again for some seconds, unless a newer write
  // of the same `name` to the pod has come meanwhile.
  void Persist(ApiRequest request, const char* name, const PodUid& uid,
               std::function<void(WriteResult)> done);
  // Gone already counts as done.
  void Delete(ApiRequest request, std::function<void(WriteResult)> done);

  const Options options;
  const std::string instance;
  ClusterEvents& events;
  IoThread reading;
  IoThread writing;
  std::unique_ptr<ApiClient> courtesy_client;  // of all writes that no pod's start depends on
  PodSink pod_sink;
  EventSink node_sink;
  std::size_t early_pending = 0;  // not listed yet; reading thread
  bool follows = false;           // as Options::follow says until Refresh is done; reading thread
  std::list<Early> early;
  Reflector pods;
  Reflector nodes;
  ApiCalls calls;
  ApiCalls courtesy_calls;
  std::map<std::string, uint64_t> newest;  // of Persist, by name and uid; writing thread
  uint64_t persisted = 0;                  // writing thread
  std::atomic<uint64_t> event_serial = 0;

  enum class State : uint8_t { kNew, kRunning, kStopped };
  absl::Mutex mutex;
  State state ABSL_GUARDED_BY(mutex) = State::kNew;  // work is posted under it
};

namespace {

ReflectorOptions Resource(std::string_view name, std::string path, const Options& client) {
  ReflectorOptions options;
  options.resource = name;
  options.path = std::move(path);
  options.timing = client.timing;
  options.seed = PlatformOf(client).Seed();
  return options;
}

ReflectorOptions PolicyObjectOptions(const PolicyResource& resource, const Options& client) {
  ReflectorOptions options =
      Resource(resource.plural, fmt::format("{}/{}", resource.group, resource.plural), client);
  options.may_be_absent = resource.custom;
  options.may_be_forbidden = true;
  return options;
}

ReflectorOptions ObservedOptions(const ObservedResource& resource, const Options& client) {
  ReflectorOptions options = Resource(resource.name, std::string(resource.path), client);
  options.query = resource.query;
  options.may_be_absent = true;
  options.may_be_forbidden = true;
  // What holds GPUs, and how many, is known before anything is placed; all others only help.
  options.may_be_late = !resource.path.starts_with("/apis/resource.k8s.io/");
  return options;
}

void SetNotRunning(WriteResult& result) {
  result.kind = WriteResult::Kind::kNotSent;
  result.message = kNotRunning;
}
void SetNotRunning(EvictionResult& result) { SetNotRunning(result.write); }
// Of other results the failure is the default.
template <typename Result>
void SetNotRunning(Result& result) {
  result.message = kNotRunning;
}

template <typename Result, typename Call>
asio::awaitable<void> Answer(Call call, steady_clock::time_point deadline,
                             std::function<void(Result)> done) {
  Result result = co_await call(deadline);
  done(std::move(result));
}

}  // namespace

Cluster::Impl::Early::Early(Impl& owner, std::unique_ptr<ObjectSink> objects, ReflectorOptions how)
    : sink(std::move(objects)),
      reflector(std::move(how), owner.reading.client(), owner.reading.stop(), *sink, [&owner] {
        // Nodes come after all that says how to take them.
        if (--owner.early_pending == 0) owner.Spawn(owner.nodes);
      }) {}

Cluster::Impl::Impl(Options given, ClusterEvents& receiver)
    : options(std::move(given)),
      instance(PlatformOf(options).HostName()),
      events(receiver),
      reading(options),
      writing(options),
      courtesy_client(writing.NewClient(options)),
      pod_sink(events),
      node_sink(NodeSink(events)),
      follows(options.follow),
      pods(Resource("pods", "/api/v1/pods", options), reading.client(), reading.stop(), pod_sink,
           [this] { events.Receive(Synced()); }),
      // Pods come after nodes, so that their devices find a node to be on.
      nodes(Resource("nodes", "/api/v1/nodes", options), reading.client(), reading.stop(),
            node_sink, [this] { Spawn(pods); }),
      calls(writing.client(), writing.stop(), options.timing),
      courtesy_calls(*courtesy_client, writing.stop(), options.timing) {
  for (const PolicyResource& resource : kPolicyResources) {
    if (resource.for_hami && !options.resource_quotas) continue;
    early.emplace_back(*this, std::make_unique<PolicyObjectSink>(events, resource, follows),
                       PolicyObjectOptions(resource, options));
    early.back().written_by_us = resource.written_by_us;
  }
  for (const ObservedResource& resource : kObservedResources) {
    early.emplace_back(*this, SinkOf(resource, events), ObservedOptions(resource, options));
  }
  early_pending = early.size();
}

void Cluster::Impl::Spawn(Reflector& reflector) {
  asio::co_spawn(reading.context(), reflector.Run(), Rethrow);
  asio::co_spawn(reading.context(), reflector.CheckForDrift(), Rethrow);
  asio::co_spawn(reading.context(), reflector.ProbeInSilence(), Rethrow);
}

template <typename Result, typename Call>
void Cluster::Impl::Run(Call call, std::function<void(Result)> done) {
  {
    const absl::MutexLock lock(&mutex);
    if (state == State::kRunning) {
      const auto deadline = steady_clock::now() + options.bind_timeout;
      writing.Post([this, call = std::move(call), deadline, done = std::move(done)]() mutable {
        asio::co_spawn(writing.context(),
                       Answer<Result>(std::move(call), deadline, std::move(done)), Rethrow);
      });
      return;
    }
  }
  Result not_running;
  SetNotRunning(not_running);
  done(std::move(not_running));
}

void Cluster::Impl::Send(ApiCalls& through, ApiRequest request, int tries,
                         std::function<void(WriteResult)> done) {
  auto call = [&through, request = std::move(request),
               tries](steady_clock::time_point deadline) mutable {
    request.deadline = deadline;
    return through.Write(std::move(request), tries);
  };
  Run(std::move(call), std::move(done));
}

void Cluster::Impl::Persist(ApiRequest request, const char* name, const PodUid& uid,
                            std::function<void(WriteResult)> done) {
  const std::string key = fmt::format("{}/{}", name, uid.str());
  const auto serial = std::make_shared<uint64_t>(0);
  const auto newest_is_ours = [this, key, serial] {
    const auto found = newest.find(key);
    return found != newest.end() && found->second == *serial;
  };
  auto call = [this, key, serial, newest_is_ours,
               request = std::move(request)](steady_clock::time_point deadline) mutable {
    newest[key] = *serial = ++persisted;
    request.deadline = deadline;
    return courtesy_calls.Persist(std::move(request), newest_is_ours);
  };
  auto finish = [this, key, newest_is_ours, done = std::move(done)](WriteResult result) {
    if (newest_is_ours()) newest.erase(key);
    done(std::move(result));
  };
  Run<WriteResult>(std::move(call), std::move(finish));
}

void Cluster::Impl::Delete(ApiRequest request, std::function<void(WriteResult)> done) {
  auto judge = [done = std::move(done)](WriteResult result) {
    if (result.http_code == 404) result.kind = WriteResult::Kind::kDone;
    done(std::move(result));
  };
  Send(courtesy_calls, std::move(request), 1, std::move(judge));
}

Cluster::Cluster(Options options, ClusterEvents& events)
    : impl_(std::make_unique<Impl>(std::move(options), events)) {}

Cluster::~Cluster() { Stop(); }

void Cluster::Start() {
  const absl::MutexLock lock(&impl_->mutex);
  TRANCHE_CHECK_EQ(impl_->state, Impl::State::kNew);
  impl_->state = Impl::State::kRunning;
  for (Impl::Early& one : impl_->early) impl_->Spawn(one.reflector);
  impl_->reading.Start();
  impl_->writing.Start();
}

void Cluster::Stop() {
  {
    const absl::MutexLock lock(&impl_->mutex);
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
  for (const Impl::Early& one : impl_->early) {
    out[one.reflector.resource()] = one.reflector.status();
  }
  return out;
}

void Cluster::Refresh(std::function<void()> done) {
  const absl::MutexLock lock(&impl_->mutex);
  if (impl_->state != Impl::State::kRunning) return;
  impl_->reading.Post([impl = impl_.get(), done = std::move(done)] {
    std::vector<Reflector*> asked = {&impl->pods};
    for (Impl::Early& one : impl->early) {
      if (one.written_by_us) asked.push_back(&one.reflector);
    }
    auto left = std::make_shared<std::size_t>(asked.size());
    for (Reflector* const reflector : asked) {
      reflector->ListAgain([impl, left, done] {
        if (--*left > 0) return;
        impl->follows = false;
        done();
      });
    }
  });
}

void Cluster::Bind(BindingWrite write, std::function<void(WriteResult)> done) {
  impl_->Send(impl_->calls, BindingRequest(write), ApiCalls::kMaxTries, std::move(done));
}

void Cluster::Requeue(PodName pod, PodUid uid, Instant when,
                      std::function<void(WriteResult)> done) {
  impl_->Persist(PokeRequest(pod, uid, when), "requeue", uid, std::move(done));
}

void Cluster::GetPod(PodName pod, PodUid uid, std::function<void(PodLookup)> done) {
  auto call = [impl = impl_.get(), pod = std::move(pod),
               uid = std::move(uid)](steady_clock::time_point deadline) mutable {
    return impl->calls.GetPod(std::move(pod), std::move(uid), deadline);
  };
  impl_->Run(std::move(call), std::move(done));
}

void Cluster::Write(ObjectWrite write, std::function<void(WriteResult)> done) {
  impl_->Send(impl_->courtesy_calls, ApplyRequest(write), 1, std::move(done));
}

void Cluster::DeleteView(NamespacedName view, std::function<void(WriteResult)> done) {
  impl_->Delete(DeleteRequest("GPUQuotaView", view), std::move(done));
}

void Cluster::DeleteReclaim(std::string name, std::function<void(WriteResult)> done) {
  impl_->Delete(DeleteRequest("GPUReclaim", {"", name}), std::move(done));
}

void Cluster::Evict(EvictionWrite write, std::function<void(EvictionResult)> done) {
  auto call = [impl = impl_.get(),
               request = EvictionRequest(write)](steady_clock::time_point deadline) mutable {
    request.deadline = deadline;
    return impl->calls.Evict(std::move(request), ApiCalls::kMaxTries);
  };
  impl_->Run(std::move(call), std::move(done));
}

void Cluster::Nominate(PodName pod, PodUid uid, NodeName node,
                       std::function<void(WriteResult)> done) {
  impl_->Persist(NominationRequest(pod, uid, node), "nominate", uid, std::move(done));
}

void Cluster::SetWaiting(WaitingWrite write, std::function<void(WriteResult)> done) {
  impl_->Send(impl_->courtesy_calls, WaitingRequest(write), 1, std::move(done));
}

void Cluster::LockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) {
  impl_->Change(TakeNodeLock, std::move(write), std::move(done));
}

void Cluster::UnlockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) {
  impl_->Change(DropNodeLock, std::move(write), std::move(done));
}

void Cluster::RemoveGate(GateWrite write, std::function<void(WriteResult)> done) {
  impl_->Change(DropGate, std::move(write), std::move(done));
}

void Cluster::AnnotatePod(PodAnnotationWrite write, std::function<void(WriteResult)> done) {
  impl_->Send(impl_->courtesy_calls, PodAnnotationRequest(write), 1, std::move(done));
}

void Cluster::MarkPod(PodMarkWrite write, std::function<void(WriteResult)> done) {
  auto call = [impl = impl_.get(), write = std::move(write)](TimePoint deadline) mutable {
    return kube::MarkPod(impl->courtesy_calls, std::move(write), deadline);
  };
  impl_->Run(std::move(call), std::move(done));
}

void Cluster::ListProvisioning(std::function<void(ProvisioningList)> done) {
  auto call = [impl = impl_.get()](TimePoint deadline) {
    return kube::ListProvisioning(impl->courtesy_calls, deadline);
  };
  impl_->Run<ProvisioningList>(std::move(call), std::move(done));
}

void Cluster::Provision(ProvisioningWrite write, std::function<void(WriteResult)> done) {
  auto call = [impl = impl_.get(), write = std::move(write)](TimePoint deadline) mutable {
    return MakeProvisioning(impl->courtesy_calls, std::move(write), deadline);
  };
  impl_->Run(std::move(call), std::move(done));
}

void Cluster::Unprovision(ProvisioningFound request, std::function<void(WriteResult)> done) {
  auto call = [impl = impl_.get(), request = std::move(request)](TimePoint deadline) mutable {
    return DeleteProvisioning(impl->courtesy_calls, std::move(request), deadline);
  };
  impl_->Run(std::move(call), std::move(done));
}

void Cluster::CreatePod(PodCreation creation, std::function<void(WriteResult)> done) {
  impl_->Send(impl_->calls, PodCreationRequest(creation), 1, std::move(done));
}

void Cluster::DeletePod(PodName pod, PodUid uid, std::function<void(WriteResult)> done) {
  impl_->Delete(PodDeletionRequest(pod, uid), [done = std::move(done)](WriteResult result) {
    // Another one has its name by now.
    if (result.http_code == 409) result = {WriteResult::Kind::kDone, 200, ""};
    done(std::move(result));
  });
}

void Cluster::LabelNode(NodeLabelWrite write, std::function<void(WriteResult)> done) {
  impl_->Send(impl_->courtesy_calls, NodeLabelRequest(write), 1, std::move(done));
}

void Cluster::ReadConfigMap(NamespacedName map, std::string key,
                            std::function<void(ConfigMapLookup)> done) {
  auto call = [impl = impl_.get(), map = std::move(map),
               key = std::move(key)](steady_clock::time_point deadline) {
    return impl->courtesy_calls.ReadConfigMap(map, key, deadline);
  };
  impl_->Run(std::move(call), std::move(done));
}

void Cluster::PutConfigMap(ConfigMapWrite write, std::function<void(WriteResult)> done) {
  impl_->Send(impl_->courtesy_calls, ConfigMapRequest(write), 1, std::move(done));
}

void Cluster::Emit(EventWrite event, std::function<void(WriteResult)> done) {
  impl_->Send(impl_->courtesy_calls, EventRequest(event, impl_->instance, ++impl_->event_serial), 1,
              std::move(done));
}

}  // namespace tranche::kube
