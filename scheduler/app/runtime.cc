#include "scheduler/app/runtime.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/app/api.h"
#include "scheduler/app/binder.h"
#include "scheduler/app/embedded_api.h"
#include "scheduler/app/host.h"
#include "scheduler/app/pages.h"
#include "scheduler/app/router.h"
#include "scheduler/app/timers.h"
#include "scheduler/app/verbs.h"
#include "scheduler/embedded/clocks.h"
#include "scheduler/embedded/cluster.h"
#include "scheduler/kube/cluster.h"
#include "scheduler/metrics/metrics.h"

namespace tranche::app {
namespace {

// How often due work is looked for at most and at least: claims and grace periods are seconds.
constexpr std::chrono::milliseconds kTickMin{50};
constexpr std::chrono::milliseconds kTickMax{1'000};

HostOptions MakeHostOptions(const ServeConfig& config) {
  HostOptions options;
  options.engine.claim_lifetime = config.claim_lifetime;
  options.defaults = PolicyDefaults(config);
  if (config.cluster == ClusterKind::kKubernetes) options.cache_limit = config.cache_limit;
  return options;
}

http::Options MakeHttpOptions(const ServeConfig& config) {
  http::Options options;
  options.address = config.address;
  options.port = config.port;
  options.threads = config.threads;
  options.limits = config.limits;
  return options;
}

// What kube-scheduler and probes wait for, and what takes microseconds.
bool IsQuick(const std::string& path) {
  return path.rfind("/scheduler/", 0) == 0 || path == "/healthz" || path == "/livez" ||
         path == "/readyz";
}

}  // namespace

// Members are destroyed from the last to the first: what is called into goes last.
struct Runtime::Impl {
  explicit Impl(ServeConfig given)
      : config(std::move(given)),
        manual(config.manual_clock ? std::make_unique<ManualClock>(system.Now()) : nullptr),
        clock(manual ? static_cast<const Clock&>(*manual) : system),
        host(MakeHostOptions(config), clock) {}

  absl::Status MakeCluster();
  absl::Status LoadObjects();
  void MakeServer();
  metrics::Scrape Gather();
  std::optional<Instant> DoDue();
  void ArmTick(std::chrono::milliseconds delay);

  ServeConfig config;
  SystemClock system;
  std::unique_ptr<ManualClock> manual;  // null: the system clock is the time
  const Clock& clock;
  metrics::Metrics metrics;
  Host host;
  // One of them.
  std::unique_ptr<embedded::Cluster> embedded_cluster;
  std::unique_ptr<kube::Cluster> kube_cluster;
  ThreadTimers timers;
  std::unique_ptr<Binder> binder;
  std::unique_ptr<Verbs> verbs;
  Router router;
  // Views of thousands of nodes take long to encode: they must not stand in a verb's way.
  boost::asio::thread_pool questions{1};
  std::unique_ptr<http::Server> server;
};

absl::Status Runtime::Impl::MakeCluster() {
  if (config.cluster == ClusterKind::kEmbedded) {
    embedded_cluster = std::make_unique<embedded::Cluster>(clock, host, PolicyDefaults(config));
    return LoadObjects();
  }
  absl::StatusOr<kube::Credentials> credentials = config.kubeconfig.empty()
                                                      ? kube::InClusterCredentials()
                                                      : kube::LoadKubeconfig(config.kubeconfig);
  if (!credentials.ok()) return credentials.status();
  kube::Options options;
  options.credentials = *std::move(credentials);
  options.policy_defaults = PolicyDefaults(config);
  options.user_agent = fmt::format("tranche/{}", Version());
  kube_cluster = std::make_unique<kube::Cluster>(std::move(options), host);
  return absl::OkStatus();
}

absl::Status Runtime::Impl::LoadObjects() {
  for (const std::string& path : config.objects) {
    const absl::StatusOr<embedded::ApplyReport> report = embedded_cluster->LoadFile(path);
    if (!report.ok()) return report.status();
    spdlog::info("{}: {} objects loaded", path, report->applied);
    for (const auto& [kind, count] : report->ignored) {
      spdlog::info("{}: {} objects of kind {} ignored", path, count, kind);
    }
  }
  embedded_cluster->FinishLoading();
  return absl::OkStatus();
}

void Runtime::Impl::MakeServer() {
  ClusterApi& api = embedded_cluster ? static_cast<ClusterApi&>(*embedded_cluster) : *kube_cluster;
  binder = std::make_unique<Binder>(host, api, timers, metrics);
  verbs = std::make_unique<Verbs>(host, *binder, metrics);
  host.OnPoke([this, &api](const PodName& pod, const PodUid& uid, Instant when) {
    metrics.CountPoke();
    api.Poke(pod, uid, when, [pod](const WriteResult& result) {
      if (result.kind == WriteResult::Kind::kDone) return;
      spdlog::warn("{} could not be brought back to the scheduler's queue: code {}: {}", pod.str(),
                   result.http_code, result.message);
    });
  });
  verbs->AddTo(router);
  AddApi(host, router);
  AddPages(
      host, metrics, [this] { return Gather(); }, router);
  if (embedded_cluster) AddEmbeddedApi(*embedded_cluster, host, manual.get(), router);
  server = std::make_unique<http::Server>(
      MakeHttpOptions(config), [this](http::Request request, http::Responder respond) {
        if (IsQuick(request.path)) {
          router.Route(std::move(request), std::move(respond));
          return;
        }
        boost::asio::post(
            questions, [this, asked = std::move(request), answer = std::move(respond)]() mutable {
              router.Route(std::move(asked), std::move(answer));
            });
      });
}

metrics::Scrape Runtime::Impl::Gather() {
  metrics::Scrape scrape;
  scrape.version = Version();
  scrape.ready = host.readiness() == Readiness::kReady;
  host.With([&scrape](Engine& engine, Instant now) {
    scrape.now = now;
    scrape.totals = engine.Totals();
  });
  scrape.binds_in_progress = binder->in_progress();
  scrape.surplus_policies = host.surplus_policies();
  if (kube_cluster) {
    const auto now = std::chrono::steady_clock::now();
    for (const auto& [resource, status] : kube_cluster->status()) {
      metrics::WatchRow row;
      row.resource = resource;
      if (status.heard != std::chrono::steady_clock::time_point()) {
        row.age_seconds = std::chrono::duration<double>(now - status.heard).count();
      }
      row.relists = status.relists;
      row.reconnects = status.reconnects;
      row.failures = status.failures;
      scrape.watches.push_back(std::move(row));
    }
  }
  http::Statistics statistics = server->statistics();
  scrape.http_open = statistics.connections_open;
  scrape.http_accepted = statistics.connections_total;
  scrape.http_evicted = statistics.connections_evicted;
  scrape.http_refusals = std::move(statistics.refusals_by_status);
  return scrape;
}

std::optional<Instant> Runtime::Impl::DoDue() {
  return embedded_cluster ? RunDue(*embedded_cluster, host, clock) : host.Tick();
}

void Runtime::Impl::ArmTick(std::chrono::milliseconds delay) {
  timers.After(delay, [this] {
    const std::optional<Instant> next = DoDue();
    ArmTick(next ? std::clamp(next.value() - clock.Now(), kTickMin, kTickMax) : kTickMax);
  });
}

Runtime::Runtime(ServeConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {}

Runtime::~Runtime() { Stop(); }

absl::Status Runtime::Start() {
  if (const absl::Status made = impl_->MakeCluster(); !made.ok()) return made;
  impl_->MakeServer();
  if (const absl::Status started = impl_->server->Start(); !started.ok()) return started;
  if (impl_->kube_cluster) impl_->kube_cluster->Start();
  impl_->ArmTick(kTickMin);
  spdlog::info("listening on {}:{}, cluster {}", impl_->config.address, port(),
               impl_->embedded_cluster ? "embedded" : "kubernetes");
  return absl::OkStatus();
}

uint16_t Runtime::port() const { return impl_->server->port(); }

void Runtime::Stop() {
  impl_->host.BeginStopping();
  if (impl_->server) impl_->server->Stop(kDrainTime);
  impl_->questions.join();
  if (impl_->kube_cluster) impl_->kube_cluster->Stop();
  impl_->timers.Stop();
}

}  // namespace tranche::app
