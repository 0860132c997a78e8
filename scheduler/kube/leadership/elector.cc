#include "scheduler/kube/leadership/elector.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/kube/transport/api_client.h"
#include "scheduler/kube/transport/server_url.h"
#include "scheduler/kube/transport/stop_signal.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;
using Do = LeaseMachine::Do;
using Role = LeaseMachine::Role;

constexpr std::size_t kMaxLeaseBytes = 256 * 1024;
constexpr int kConflict = 409;
constexpr int kNotFound = 404;

}  // namespace

std::string NewIdentity() {
  Platform& platform = PlatformOf({});
  return fmt::format("{}_{:016x}", platform.HostName(), platform.Seed());
}

struct Elector::Impl {
  Impl(ElectorOptions given, Grant& held, Hooks wanted)
      : options(std::move(given)),
        grant(held),
        hooks(std::move(wanted)),
        path(fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases",
                         PercentEncoded(options.ns))),
        own_path(path + "/" + PercentEncoded(options.name)),
        context(PlatformOf(options.client).ConcurrencyHint()),
        runner(PlatformOf(options.client).RunnerOf(context)),
        client(PlatformOf(options.client).ClientOf(context, stop, *runner, options.client)),
        machine(options.identity, options.times, PlatformOf(options.client).Seed()) {
    stop.OnSleep([this](std::chrono::milliseconds time) { runner->Wake(time); });
  }

  asio::awaitable<void> Run();
  asio::awaitable<void> Look();
  asio::awaitable<void> Put(Do what);
  asio::awaitable<void> Release(LeaseRecord record);
  asio::awaitable<ApiAnswer> Call(const char* method, std::string target, std::string body);
  void Complain(const char* what, const ApiAnswer& answer);
  void Publish();

  const ElectorOptions options;
  Grant& grant;
  const Hooks hooks;
  const std::string path;
  const std::string own_path;
  asio::io_context context;
  StopSignal stop{context};
  std::unique_ptr<LoopRunner> runner;
  std::unique_ptr<ApiClient> client;
  LeaseMachine machine;  // the thread's own, as what follows
  std::string complaint;
  wire::LenientParser parser;
  bool announced = false;

  bool started = false;
  mutable absl::Mutex mutex;
  Status status ABSL_GUARDED_BY(mutex);
};

asio::awaitable<ApiAnswer> Elector::Impl::Call(const char* method, std::string target,
                                               std::string body) {
  ApiRequest request;
  request.method = method;
  request.target = std::move(target);
  request.body = std::move(body);
  request.answer_limit = kMaxLeaseBytes;
  request.deadline = steady_clock::now() + options.times.renew / 2;
  ApiAnswer answer = co_await client->Call(request);
  co_return answer;
}

// Each distinct complaint once in a row.
void Elector::Impl::Complain(const char* what, const ApiAnswer& answer) {
  std::string text = answer.error;
  if (answer.transport == ApiAnswer::Transport::kAnswered) {
    const ApiStatus said = ReadStatus(parser, answer);
    text = fmt::format("{} {}", said.code, said.message);
  }
  if (std::exchange(complaint, text) == text) return;
  spdlog::warn("lease {}/{}: {}: {}", options.ns, options.name, what, text);
}

asio::awaitable<void> Elector::Impl::Look() {
  const ApiAnswer answer = co_await Call("GET", own_path, "");
  const BootTime now = BootNow();
  if (answer.succeeded()) {
    absl::StatusOr<LeaseRecord> record = DecodeLease(answer.body);
    if (record.ok()) {
      complaint.clear();
      machine.Found(*std::move(record), now);
      co_return;
    }
    spdlog::warn("lease {}/{}: {}", options.ns, options.name,
                 std::string(record.status().message()));
  } else if (answer.transport == ApiAnswer::Transport::kAnswered && answer.status == kNotFound &&
             ReadStatus(parser, answer).reason == "NotFound") {
    machine.Missing(now);
    co_return;
  } else {
    Complain("reading", answer);
  }
  machine.Failed(now);
}

asio::awaitable<void> Elector::Impl::Put(Do what) {
  // A renewal counts nothing up.
  const bool follows = machine.role() == Role::kFollower;
  const int64_t least = follows ? hooks.least_epoch(machine.NextEpoch()) : 0;
  const LeaseRecord claim = machine.Claim(MicroTime(std::chrono::system_clock::now()), least);
  const bool fresh = what == Do::kCreate;
  const char* const method = fresh ? "POST" : "PUT";
  std::string target = fresh ? path : own_path;
  std::string body = EncodeLease(claim, {options.ns, options.name});
  // Before it is sent: a renewal counts from here on, however long the answer takes.
  const BootTime sent = BootNow();
  const ApiAnswer answer = co_await Call(method, std::move(target), std::move(body));
  const BootTime now = BootNow();
  if (answer.succeeded()) {
    absl::StatusOr<LeaseRecord> stored = DecodeLease(answer.body);
    if (stored.ok() && stored->holder == options.identity) {
      complaint.clear();
      machine.Wrote(*std::move(stored), sent, now);
      co_return;
    }
  } else if (answer.transport == ApiAnswer::Transport::kAnswered &&
             (answer.status == kConflict || (answer.status == kNotFound && !fresh))) {
    machine.Refused(now);
    co_return;
  }
  Complain("writing", answer);
  machine.Failed(now);
}

void Elector::Impl::Publish() {
  const bool leads = machine.role() == Role::kLeader;
  if (leads) grant.GiveUntil(machine.grant_end());
  {
    const absl::MutexLock lock(&mutex);
    status.leading = leads;
    if (machine.seen()) {
      status.holder = machine.seen()->holder;
      status.transitions = machine.seen()->transitions;
    }
  }
  if (leads && !std::exchange(announced, true)) {
    spdlog::info("lease {}/{} is ours as {}: epoch {}", options.ns, options.name, options.identity,
                 machine.epoch());
    hooks.gained(machine.epoch());
  }
}

asio::awaitable<void> Elector::Impl::Run() {
  while (!stop.raised()) {
    const LeaseMachine::Step step = machine.Next(BootNow());
    switch (step.what) {
      case Do::kWait: {
        // Waits by the clock of running time, in pieces: a machine that slept is noticed.
        constexpr std::chrono::milliseconds kPiece{250};
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(step.at - BootNow());
        co_await stop.Sleep(std::clamp(left, std::chrono::milliseconds(1), kPiece));
        continue;
      }
      case Do::kRead:
        co_await Look();
        break;
      case Do::kCreate:
      case Do::kWrite:
        co_await Put(step.what);
        break;
      case Do::kStop:
        break;
    }
    if (stop.raised()) co_return;
    Publish();
    if (machine.role() != Role::kLost) continue;
    grant.End();
    const std::string holder = machine.seen() ? machine.seen()->holder : "";
    hooks.lost(holder.empty() || holder == options.identity
                   ? "the lease could not be renewed in time"
                   : fmt::format("the lease is held by {}", holder));
    co_return;
  }
}

asio::awaitable<void> Elector::Impl::Release(LeaseRecord record) {
  // A renewal that was under way at the stop may have changed the lease since it was read, and so
  // may whoever labels it: then it is read again, and given back if it still is ours.
  constexpr int kTries = 3;
  for (int tried = 1; record.holder == options.identity; ++tried) {
    record.holder.clear();
    record.duration = std::chrono::seconds(1);
    record.renewed = MicroTime(std::chrono::system_clock::now());
    std::string body = EncodeLease(record, {options.ns, options.name});
    ApiAnswer answer = co_await Call("PUT", own_path, std::move(body));
    if (answer.succeeded()) {
      spdlog::info("lease {}/{} given back", options.ns, options.name);
      co_return;
    }
    const bool crossed =
        answer.transport == ApiAnswer::Transport::kAnswered && answer.status == kConflict;
    if (crossed && tried < kTries) answer = co_await Call("GET", own_path, "");
    if (!answer.succeeded()) {
      Complain("giving back", answer);
      co_return;
    }
    absl::StatusOr<LeaseRecord> now = DecodeLease(answer.body);
    if (!now.ok()) {
      spdlog::warn("lease {}/{}: giving back: {}", options.ns, options.name,
                   std::string(now.status().message()));
      co_return;
    }
    record = *std::move(now);
  }
}

Elector::Elector(ElectorOptions options, Grant& grant, Hooks hooks)
    : impl_(std::make_unique<Impl>(std::move(options), grant, std::move(hooks))) {}

Elector::~Elector() { Stop(Lease::kKeep); }

void Elector::Start() {
  impl_->started = true;
  asio::co_spawn(impl_->context, impl_->Run(), Rethrow);
  impl_->runner->Start();
}

void Elector::Stop(Lease lease) {
  if (!std::exchange(impl_->started, false)) return;
  asio::post(impl_->context, [impl = impl_.get()] { impl->stop.Raise(); });
  impl_->runner->Wake({});
  impl_->runner->Join();
  const bool led = impl_->machine.role() == Role::kLeader && impl_->grant.holds();
  impl_->grant.End();
  if (lease == Lease::kKeep || !led) return;
  // The loop has ended, and its connections with it.
  Impl last(impl_->options, impl_->grant, {});
  asio::co_spawn(last.context, last.Release(*impl_->machine.seen()), Rethrow);
  last.context.run();
}

Elector::Status Elector::status() const {
  const absl::MutexLock lock(&impl_->mutex);
  return impl_->status;
}

}  // namespace tranche::kube
