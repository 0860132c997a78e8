#include "scheduler/server/runtime.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "scheduler/api/pages.h"
#include "scheduler/api/sight/limited_api.h"
#include "scheduler/http/tls.h"
#include "scheduler/kube/cluster.h"
#include "scheduler/kube/leadership/elector.h"
#include "scheduler/kube/reviews/reviewer.h"
#include "scheduler/kube/transport/server_clock.h"
#include "scheduler/kube/transport/tls.h"
#include "scheduler/server/access.h"
#include "scheduler/server/cpu_profile.h"
#include "scheduler/server/leader.h"
#include "scheduler/server/log.h"
#include "scheduler/server/question_desk.h"
#include "scheduler/server/standby_buffer.h"
#include "scheduler/server/takeover.h"
#include "scheduler/server/viewers/page_gate.h"
#include "scheduler/server/viewers/viewers.h"

namespace tranche {
namespace {

using std::chrono::milliseconds;

// A probe is one short request on a connection of its own.
constexpr int kProbeConnections = 64;
constexpr milliseconds kProbePatience{2'000};

http::Options MakeHttpOptions(const ServeConfig& config, Door door) {
  http::Options options;
  options.address = config.address;
  options.port = config.port;
  options.threads = config.threads;
  options.limits = config.limits;
  if (door == Door::kPages) {
    options.address = *config.pages_address;
    options.port = config.pages_port;
    options.tls = config.pages_tls;
    options.threads = 1;
  }
  if (door == Door::kProbes) {
    options.address = *config.probes_address;
    options.port = config.probes_port;
    options.threads = 1;
    options.limits.connections = kProbeConnections;
    options.limits.header_time = options.limits.idle_time = kProbePatience;
  }
  if (door == Door::kTls) {
    options.address = config.tls_address;
    options.port = config.tls_port;
    options.tls = config.tls;
    // API servers that ask the webhook show none; who may use the verbs is asked for each request.
    options.tls->client_optional = config.verbs_need_tls;
  }
  options.warn = [](const std::string& what) { spdlog::error("{}", what); };
  return options;
}

// What kube-scheduler, API servers and probes wait for, and what takes microseconds.
bool IsQuick(const std::string& path) {
  return path.starts_with("/scheduler/") || path.starts_with("/admission/") || path == "/healthz" ||
         path == "/livez" || path == "/readyz";
}

// What takes seconds on a large fleet: it must not stand before metrics and pages.
bool IsLong(const std::string& path) { return path == "/api/v1/advice"; }

// What a standby answers as well.
bool IsForAnybody(const std::string& path) {
  return path == "/healthz" || path == "/livez" || path == "/readyz" || path == "/version" ||
         path == "/metrics" || path == "/" || path.starts_with("/ui");
}

}  // namespace

// Members are destroyed from the last to the first: what is called into goes last.
struct Runtime::Impl {
  Impl(const ServeConfig& given, const RuntimeHooks& wanted)
      : config(given), process(wanted), access(given) {}

  absl::Status MakeCluster();
  absl::StatusOr<kube::Options> ClientOptions() const;
  void MakeElector(kube::Options client);
  // From here on `services` answers.
  void Lead();
  void MakeGate();
  absl::Status MakeServers();
  LeaderHooks MakeLeaderHooks();
  void Answer(http::Request request, http::Responder respond);
  // Without a look at who asks.
  void Route(http::Request request, http::Responder respond);
  void Profile(const http::Request& request, http::Responder respond);
  uint16_t PortOf(Door door) const;
  void AddEdges(metrics::Scrape& scrape) const;

  // The way to lead, on a thread of its own.
  void TakeOver(int64_t epoch);
  absl::StatusOr<OpenedLedger> TakeLedger(int64_t epoch);
  // False where the process is being stopped.
  bool Rest(milliseconds time);
  void Restart(const std::string& why);

  const ServeConfig& config;
  const RuntimeHooks& process;
  Access access;
  metrics::Metrics metrics;
  kube::Grant grant;     // of the election
  StandbyBuffer buffer;  // likewise
  std::unique_ptr<LeaderServices> services;
  std::atomic<const LeaderServices*> leading = nullptr;  // `services`, once it answers
  std::unique_ptr<LimitedApi> limited;                   // of it, from then on
  Router standby;
  kube::Credentials shown;  // to the API server
  std::shared_ptr<kube::ServerClock> server_clock = std::make_shared<kube::ServerClock>();
  std::unique_ptr<kube::Cluster> kube_cluster;  // null: the embedded one
  std::unique_ptr<kube::Elector> elector;       // null: this process leads
  // Views of thousands of nodes take long to encode: they must not stand in a verb's way. Nor may
  // advice, copies of the ledger and the like in the way of metrics.
  QuestionDesk questions;
  QuestionDesk long_questions;
  CpuProfile profile;
  // Where users of the cluster are asked for, else null.
  std::unique_ptr<kube::Reviewer> reviewer;
  std::unique_ptr<Viewers> viewers;
  std::unique_ptr<PageGate> gate;
  boost::asio::thread_pool chores{1};
  std::map<Door, std::unique_ptr<http::Server>> servers;

  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;   // guarded by mutex
  bool refreshed = false;  // likewise: lists that began after the lease was gained are in
  std::thread takeover;
};

absl::StatusOr<kube::Options> Runtime::Impl::ClientOptions() const {
  absl::StatusOr<kube::Credentials> credentials = config.kubeconfig.empty()
                                                      ? kube::InClusterCredentials()
                                                      : kube::LoadKubeconfig(config.kubeconfig);
  if (!credentials.ok()) return credentials.status();
  kube::Options options;
  options.credentials = *std::move(credentials);
  options.user_agent = fmt::format("tranche/{}", Version());
  options.resource_quotas = config.hami;
  options.server_clock = server_clock;
  return options;
}

absl::Status Runtime::Impl::MakeCluster() {
  absl::StatusOr<kube::Options> options = absl::UnknownError("");
  if (config.cluster == ClusterKind::kKubernetes) {
    options = ClientOptions();
    if (!options.ok()) return options.status();
    shown = options->credentials;
  }
  if (config.elects) {
    MakeElector(*options);
    options->may_write = [this] { return grant.holds(); };
    options->follow = true;
    options->bind_timeout = WriteTime(config.election, options->bind_timeout);
    kube_cluster = std::make_unique<kube::Cluster>(*std::move(options), buffer);
    return absl::OkStatus();
  }
  absl::StatusOr<OpenedLedger> opened = OpenLedger(config, 1, /*exact_epoch=*/false, nullptr);
  if (!opened.ok()) return opened.status();
  services =
      std::make_unique<LeaderServices>(config, metrics, *std::move(opened), 1, MakeLeaderHooks());
  if (config.cluster == ClusterKind::kEmbedded) {
    if (const absl::Status made = services->MakeEmbedded(); !made.ok()) return made;
  } else {
    kube_cluster = std::make_unique<kube::Cluster>(*std::move(options), services->events());
    services->Attach(*kube_cluster);
  }
  Lead();
  return absl::OkStatus();
}

LeaderHooks Runtime::Impl::MakeLeaderHooks() {
  LeaderHooks hooks;
  hooks.later = [this](std::function<void()> work) {
    boost::asio::post(chores,
                      [work = std::move(work)] { Guarded("work in the background", work); });
  };
  hooks.edges = [this](metrics::Scrape& scrape) { AddEdges(scrape); };
  hooks.restart = [this](const std::string& why) { Restart(why); };
  if (config.elects) hooks.may_write = [this] { return grant.holds(); };
  hooks.cluster_time = [this] { return server_clock->Now(); };
  return hooks;
}

void Runtime::Impl::MakeElector(kube::Options client) {
  const ElectionOptions& election = config.election;
  kube::ElectorOptions options{std::move(client),
                               election.ns,
                               election.name,
                               kube::NewIdentity(),
                               {election.lease, election.renew, election.retry}};
  kube::Elector::Hooks hooks;
  hooks.least_epoch = [this](int64_t next) { return LeastEpoch(config, buffer, next); };
  hooks.gained = [this](int64_t epoch) {
    takeover = std::thread([this, epoch] { TakeOver(epoch); });
  };
  hooks.lost = [this](const std::string& why) {
    if (process.lost) process.lost(why);
  };
  elector = std::make_unique<kube::Elector>(std::move(options), grant, std::move(hooks));
}

void Runtime::Impl::Restart(const std::string& why) {
  if (process.restart) process.restart(why);
}

bool Runtime::Impl::Rest(milliseconds time) {
  std::unique_lock lock(mutex);
  return !changed.wait_for(lock, time, [this] { return stopping; });
}

absl::StatusOr<OpenedLedger> Runtime::Impl::TakeLedger(int64_t epoch) {
  const auto end = std::chrono::steady_clock::now() + kLedgerPatience;
  while (!config.ledger.empty() && ledger::SqliteLedger::InUse(config.ledger)) {
    if (std::chrono::steady_clock::now() >= end) {
      return OpenedLedger{nullptr, config.ledger + " is still held by another process"};
    }
    if (!Rest(kLedgerRetry)) return absl::CancelledError("stopping");
  }
  return OpenLedger(config, epoch, /*exact_epoch=*/true, [this] { return grant.holds(); });
}

void Runtime::Impl::TakeOver(int64_t epoch) {
  const auto began = std::chrono::steady_clock::now();
  kube_cluster->Refresh([this] {
    const std::lock_guard lock(mutex);
    refreshed = true;
    changed.notify_all();
  });
  absl::StatusOr<OpenedLedger> opened = TakeLedger(epoch);
  if (absl::IsCancelled(opened.status())) return;
  if (!opened.ok()) {
    return Restart(
        fmt::format("the ledger cannot be opened: {}", std::string(opened.status().message())));
  }
  services = std::make_unique<LeaderServices>(config, metrics, *std::move(opened), epoch,
                                              MakeLeaderHooks());
  services->Attach(*kube_cluster);
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return refreshed || stopping; });
    if (stopping) return;
  }
  // It stood still meanwhile; the elector ends the process.
  if (!grant.holds()) return;
  buffer.Open(services->events());
  services->Begin();
  Lead();
  const auto took = std::chrono::steady_clock::now() - began;
  spdlog::info("leading, epoch {}: taken over in {} ms", epoch,
               std::chrono::duration_cast<milliseconds>(took).count());
}

void Runtime::Impl::Lead() {
  limited = std::make_unique<LimitedApi>(services->host().engine, services->router(),
                                         services->sources());
  leading = services.get();
}

void Runtime::Impl::MakeGate() {
  if (PageAuthOf(config) != PageAuth::kKubernetes) return;
  kube::Reviews* reviews = process.reviews;
  if (reviews == nullptr) {
    kube::Options options;
    options.credentials = shown;
    options.user_agent = fmt::format("tranche/{}", Version());
    options.server_clock = server_clock;
    reviewer = std::make_unique<kube::Reviewer>(std::move(options), config.pages_audiences);
    reviews = reviewer.get();
  }
  Viewers::Clocks clocks;
  clocks.wall = [this] {
    const auto ahead = server_clock->ahead();
    const auto now = std::chrono::system_clock::now();
    return ahead ? now - std::chrono::duration_cast<std::chrono::system_clock::duration>(*ahead)
                 : now;
  };
  viewers = std::make_unique<Viewers>(*reviews, config.page_reviews_per_second, std::move(clocks));
  access.AskForUsers(
      [this](const std::string& authorization) { return viewers->RefuseUnseen(authorization); });
  PageGate::Hooks hooks;
  hooks.all = [this](http::Request request, http::Responder respond) {
    Route(std::move(request), std::move(respond));
  };
  hooks.desk = [this](http::Request request, http::Responder respond, PageGate::Work work) {
    questions.Do(std::move(request), std::move(respond), std::move(work));
  };
  hooks.limited = [this] { return leading == nullptr ? nullptr : limited.get(); };
  gate = std::make_unique<PageGate>(*viewers, std::move(hooks));
  if (reviewer) reviewer->Start();
}

void Runtime::Impl::Answer(http::Request request, http::Responder respond) {
  if (gate == nullptr || SubjectOf(request.path) != Subject::kPages)
    return Route(std::move(request), std::move(respond));
  gate->Answer(std::move(request), std::move(respond));
}

void Runtime::Impl::Route(http::Request request, http::Responder respond) {
  const LeaderServices* const leader = leading;
  if (request.path == "/api/v1/profile") return Profile(request, std::move(respond));
  if (leader == nullptr && !IsForAnybody(request.path)) {
    return respond(ErrorResponse(503, Describe(Readiness::kStandby)));
  }
  const Router& router = leader == nullptr ? standby : leader->router();
  if (IsQuick(request.path)) return router.Route(std::move(request), std::move(respond));
  QuestionDesk& desk = IsLong(request.path) ? long_questions : questions;
  desk.Ask(router, std::move(request), std::move(respond));
}

// Stacks tell where keys are in memory: where nobody is asked who he is, of this machine alone.
void Runtime::Impl::Profile(const http::Request& request, http::Responder respond) {
  if (PageAuthOf(config) == PageAuth::kNone && !IsLoopbackAddress(request.peer)) {
    return respond(ErrorResponse(
        403, "a profile: expected a server with pages.auth, or a caller on its own machine"));
  }
  profile.Answer(request, std::move(respond));
}

absl::Status Runtime::Impl::MakeServers() {
  if (const absl::Status checked = access.Check(); !checked.ok()) return checked;
  MakeGate();
  AddPages([] { return Readiness::kStandby; }, nullptr, metrics,
           [this] {
             metrics::Scrape scrape;
             scrape.version = Version();
             AddEdges(scrape);
             return scrape;
           },
           standby);
  const http::Handler handler = [this](http::Request request, http::Responder respond) {
    Answer(std::move(request), std::move(respond));
  };
  for (const Door door : {Door::kPlain, Door::kTls, Door::kPages, Door::kProbes}) {
    if (!access.IsOpen(door)) continue;
    http::Options options = MakeHttpOptions(config, door);
    options.admit = [this, door](const http::Request& head) { return access.Judge(door, head); };
    servers[door] = std::make_unique<http::Server>(std::move(options), handler);
  }
  for (const auto& [door, server] : servers) {
    if (const absl::Status started = server->Start(); !started.ok()) return started;
  }
  return absl::OkStatus();
}

void Runtime::Impl::AddEdges(metrics::Scrape& scrape) const {
  if (elector) {
    const kube::Elector::Status status = elector->status();
    scrape.election = metrics::ElectionRow{status.leading, status.transitions};
  }
  scrape.ahead_of_server = server_clock->ahead();
  if (kube_cluster) {
    const auto now = std::chrono::steady_clock::now();
    for (const auto& [resource, status] : kube_cluster->status()) {
      metrics::WatchRow row;
      row.resource = resource;
      // Of a kind that is gone, or may no longer be read, nothing is expected.
      if (!status.absent && status.heard != std::chrono::steady_clock::time_point()) {
        row.age_seconds = std::chrono::duration<double>(now - status.heard).count();
      }
      row.relists = status.relists;
      row.reconnects = status.reconnects;
      row.failures = status.failures;
      row.unreadable = status.unreadable;
      scrape.watches.push_back(std::move(row));
    }
  }
  const auto now = std::chrono::system_clock::now();
  const auto note = [&](const char* name, const auto& end) {
    if (end) scrape.certificate_seconds[name] = std::chrono::duration<double>(*end - now).count();
  };
  if (shown.tls) note("client", http::CertificateEnd(kube::ClientCertificate(shown)));
  std::optional<std::chrono::system_clock::time_point> shown_end;
  for (const auto& [door, server] : servers) {
    const http::Statistics statistics = server->statistics();
    // Of several addresses the one that ends first.
    if (statistics.certificate_end && (!shown_end || *statistics.certificate_end < *shown_end)) {
      shown_end = statistics.certificate_end;
    }
    scrape.http_open += statistics.connections_open;
    scrape.http_accepted += statistics.connections_total;
    scrape.http_evicted += statistics.connections_evicted;
    scrape.tls_failures += statistics.handshakes_failed;
    for (const auto& [status, count] : statistics.refusals_by_status) {
      scrape.http_refusals[status] += count;
    }
  }
  note("server", shown_end);
}

Runtime::Runtime(ServeConfig config, RuntimeHooks hooks)
    : config_(std::move(config)), hooks_(std::move(hooks)) {}

Runtime::~Runtime() { Stop(); }

absl::Status Runtime::Start() {
  impl_ = std::make_unique<Impl>(config_, hooks_);
  if (const absl::Status made = impl_->MakeCluster(); !made.ok()) return made;
  if (const absl::Status made = impl_->MakeServers(); !made.ok()) return made;
  if (impl_->kube_cluster) impl_->kube_cluster->Start();
  if (impl_->services) impl_->services->Begin();
  if (impl_->elector) impl_->elector->Start();
  if (tls_port() != 0) spdlog::info("listening on {}:{}, TLS", config_.tls_address, tls_port());
  if (probes_port() != 0) {
    spdlog::info("listening on {}:{}, probes", *config_.probes_address, probes_port());
  }
  if (pages_port() != 0) {
    spdlog::info("listening on {}:{}, pages{}", *config_.pages_address, pages_port(),
                 config_.pages_tls ? ", TLS" : "");
  }
  const char* const kind = impl_->kube_cluster ? "kubernetes" : "embedded";
  if (port() != 0) {
    spdlog::info("listening on {}:{}, cluster {}", config_.address, port(), kind);
  }
  return absl::OkStatus();
}

uint16_t Runtime::Impl::PortOf(Door door) const {
  const auto found = servers.find(door);
  return found == servers.end() ? uint16_t{0} : found->second->port();
}

uint16_t Runtime::port() const { return impl_->PortOf(Door::kPlain); }
uint16_t Runtime::tls_port() const { return impl_->PortOf(Door::kTls); }
uint16_t Runtime::pages_port() const { return impl_->PortOf(Door::kPages); }
uint16_t Runtime::probes_port() const { return impl_->PortOf(Door::kProbes); }
bool Runtime::leads() const { return impl_ && impl_->leading != nullptr; }

void Runtime::Stop() {
  if (!impl_) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    impl_->changed.notify_all();
  }
  // If a takeover is running, wait for it; then there is only one set of services to stop.
  if (impl_->leading != nullptr) impl_->services->Drain();
  impl_->profile.Stop();
  const auto began = std::chrono::steady_clock::now();
  for (const auto& [door, server] : impl_->servers) {
    const auto spent = std::chrono::steady_clock::now() - began;
    const auto left = std::chrono::duration_cast<milliseconds>(kDrainTime - spent);
    server->Stop(std::max(left, milliseconds(0)));
  }
  // Before the desks, which it gives work to.
  if (impl_->reviewer) impl_->reviewer->Stop();
  impl_->questions.Join();
  impl_->long_questions.Join();
  impl_->chores.join();
  if (impl_->elector && impl_->leading == nullptr)
    impl_->elector->Stop(kube::Elector::Lease::kRelease);
  if (impl_->takeover.joinable()) impl_->takeover.join();
  if (impl_->kube_cluster) impl_->kube_cluster->Stop();
  if (impl_->services) impl_->services->End();
  // The guarded work is over: the next leader need not wait for the lease to end.
  if (impl_->elector) impl_->elector->Stop(kube::Elector::Lease::kRelease);
}

}  // namespace tranche
