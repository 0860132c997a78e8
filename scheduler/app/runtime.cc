#include "scheduler/app/runtime.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/app/admission_api.h"
#include "scheduler/app/advice_api.h"
#include "scheduler/app/api.h"
#include "scheduler/app/binder.h"
#include "scheduler/app/embedded_api.h"
#include "scheduler/app/host.h"
#include "scheduler/app/ledger_api.h"
#include "scheduler/app/pages.h"
#include "scheduler/app/partitioner.h"
#include "scheduler/app/projector.h"
#include "scheduler/app/reclaimer.h"
#include "scheduler/app/router.h"
#include "scheduler/app/timers.h"
#include "scheduler/app/usage_api.h"
#include "scheduler/app/verbs.h"
#include "scheduler/embedded/clocks.h"
#include "scheduler/embedded/cluster.h"
#include "scheduler/kube/cluster.h"
#include "scheduler/ledger/sqlite_ledger.h"
#include "scheduler/metrics/metrics.h"

namespace tranche::app {
namespace {

// How often due work is looked for at most and at least: claims and grace periods are seconds, and
// a pod that starts to wait, which moves no timer, is to be planned for well within one.
constexpr std::chrono::milliseconds kTickMin{50};
constexpr std::chrono::milliseconds kTickMax{250};

// How often the objects of the cluster are compared with what we know, and the ledger told that we
// live.
constexpr std::chrono::milliseconds kProjectEvery{250};
constexpr std::chrono::milliseconds kPartitionEvery{1'000};
constexpr std::chrono::milliseconds kHeartbeatEvery{5'000};
constexpr std::chrono::hours kBackupEvery{24};

Instant WallNow() { return std::chrono::floor<Millis>(std::chrono::system_clock::now()); }

// A ledger that was opened, or why there is none although one was asked for.
struct OpenedLedger {
  std::unique_ptr<ledger::SqliteLedger> ledger;
  bool untrusted = false;  // the file is damaged: it stays as it is, for people to look at
};

absl::StatusOr<OpenedLedger> OpenLedger(const ServeConfig& config) {
  OpenedLedger opened;
  if (config.ledger.empty()) return opened;
  ledger::Options options;
  options.path = config.ledger;
  options.now = WallNow();
  options.accept_rollback = config.ledger_accept_rollback;
  auto ledger = ledger::SqliteLedger::Open(options);
  if (ledger.ok()) {
    opened.ledger = *std::move(ledger);
    return opened;
  }
  if (!absl::IsDataLoss(ledger.status())) return ledger.status();
  spdlog::error("the ledger cannot be trusted and is left as it is: {}",
                std::string(ledger.status().message()));
  opened.untrusted = true;
  return opened;
}

HostOptions MakeHostOptions(const ServeConfig& config) {
  HostOptions options;
  options.engine.claim_lifetime = config.claim_lifetime;
  options.engine.namespace_caps = config.hami;
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

http::Options MakeTlsOptions(const ServeConfig& config) {
  http::Options options = MakeHttpOptions(config);
  options.address = config.tls_address;
  options.port = config.tls_port;
  options.tls = config.tls;
  options.warn = [](const std::string& what) {
    spdlog::warn("the certificate in use stays: {}", what);
  };
  return options;
}

// What kube-scheduler, API servers and probes wait for, and what takes microseconds.
bool IsQuick(const std::string& path) {
  return path.rfind("/scheduler/", 0) == 0 || path.rfind("/admission/", 0) == 0 ||
         path == "/healthz" || path == "/livez" || path == "/readyz";
}

}  // namespace

// Members are destroyed from the last to the first: what is called into goes last.
struct Runtime::Impl {
  Impl(ServeConfig given, OpenedLedger opened)
      : config(std::move(given)),
        book(std::move(opened.ledger)),
        untrusted(opened.untrusted),
        system(book ? book->last_time() : Instant()),
        manual(config.manual_clock ? std::make_unique<ManualClock>(system.Now()) : nullptr),
        clock(manual ? static_cast<Clock&>(*manual) : system),
        host(MakeHostOptions(config), clock),
        adviser([this] { return Look(); }) {}

  absl::Status MakeCluster();
  void MakeReclaimer();
  void MakePartitioner();
  AdviceCase Look();
  absl::Status LoadObjects();
  void MakeServer();
  void MakeAdmission();
  metrics::Scrape Gather();
  ClusterApi& Api();
  std::optional<Instant> DoDue();
  void ArmTick(std::chrono::milliseconds delay);
  void ArmProjector();
  void ArmPartitioner();
  void ArmHeartbeat();
  void ArmBackup();
  std::optional<metrics::LedgerRow> LedgerState();

  ServeConfig config;
  std::unique_ptr<ledger::SqliteLedger> book;  // null: nothing is kept
  const bool untrusted;
  SystemClock system;
  std::unique_ptr<ManualClock> manual;  // null: the system clock is the time
  Clock& clock;
  metrics::Metrics metrics;
  Host host;
  std::unique_ptr<Reclaimer> reclaimer;  // known to the host, so outlives the cluster's events
  // One of them.
  std::unique_ptr<embedded::Cluster> embedded_cluster;
  std::unique_ptr<kube::Cluster> kube_cluster;
  std::mutex due_mutex;
  ThreadTimers timers;
  std::unique_ptr<Binder> binder;
  std::unique_ptr<Verbs> verbs;
  std::unique_ptr<Projector> projector;
  std::unique_ptr<Partitioner> partitioner;
  Adviser adviser;
  UsageApi usage{config.ledger, host, clock};
  Router router;
  // Views of thousands of nodes take long to encode: they must not stand in a verb's way.
  boost::asio::thread_pool questions{1};
  std::unique_ptr<http::Server> server;
  std::unique_ptr<http::Server> tls_server;  // null: none is asked for
};

absl::Status Runtime::Impl::MakeCluster() {
  if (config.cluster == ClusterKind::kEmbedded) {
    embedded_cluster = std::make_unique<embedded::Cluster>(clock, host, PolicyDefaults(config));
    MakeReclaimer();
    return LoadObjects();
  }
  absl::StatusOr<kube::Credentials> credentials = config.kubeconfig.empty()
                                                      ? kube::InClusterCredentials()
                                                      : kube::LoadKubeconfig(config.kubeconfig);
  if (!credentials.ok()) return credentials.status();
  kube::Options options;
  options.credentials = *std::move(credentials);
  options.user_agent = fmt::format("tranche/{}", Version());
  options.resource_quotas = config.hami;
  kube_cluster = std::make_unique<kube::Cluster>(std::move(options), host);
  MakeReclaimer();
  return absl::OkStatus();
}

ClusterApi& Runtime::Impl::Api() {
  return embedded_cluster ? static_cast<ClusterApi&>(*embedded_cluster) : *kube_cluster;
}

void Runtime::Impl::MakeReclaimer() {
  Reclaimer::Hooks hooks;
  hooks.settle = [this](const std::string& reclaim, const PodUid& uid, EvictionOutcome outcome,
                        std::optional<Millis> retry_after) {
    host.With([&](Engine& engine, Instant now) {
      engine.SettleEviction(reclaim, uid, outcome, retry_after, now);
    });
  };
  hooks.uid_of = [this](const std::string& kind, const std::string& name) {
    return host.UidOf(kind, name);
  };
  reclaimer = std::make_unique<Reclaimer>(Api(), metrics, std::move(hooks));
  host.SetReclaimSink(reclaimer.get());
  host.OnPlan([this](const PlanOutcome& outcome, std::chrono::nanoseconds took) {
    metrics.CountPlan(outcome, took);
  });
}

AdviceCase Runtime::Impl::Look() {
  return host.With([](Engine& engine, Instant now) { return engine.Case(now); });
}

void Runtime::Impl::MakePartitioner() {
  Partitioner::Hooks hooks;
  hooks.fresh = [this] { return host.readiness() == Readiness::kReady; };
  hooks.mode = [this] { return host.mig_mode(); };
  hooks.look = [this] { return Look(); };
  hooks.plan = [](const AdviceCase& fleet) { return PlanRepartition(fleet, kPlanLimits); };
  hooks.hold = [this](const NodeName& node, const std::string& why) {
    host.With([&](Engine& engine, Instant now) { engine.SetHeld(node, why, now); });
  };
  partitioner = std::make_unique<Partitioner>(
      Api(), metrics, MigConfigMap{config.mig_config_ns, config.mig_config_name}, std::move(hooks));
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
  ClusterApi& api = Api();
  binder = std::make_unique<Binder>(host, api, timers, metrics);
  verbs = std::make_unique<Verbs>(host, *binder, metrics,
                                  config.hami ? wire::ReasonStyle::kHami : wire::ReasonStyle::kOwn);
  projector = std::make_unique<Projector>(host, api);
  MakePartitioner();
  host.OnPoke([this, &api](const PodName& pod, const PodUid& uid, Instant when) {
    metrics.CountPoke();
    api.Poke(pod, uid, when, [pod](const WriteResult& result) {
      if (result.kind == WriteResult::Kind::kDone) return;
      spdlog::warn("{} could not be brought back to the scheduler's queue: code {}: {}", pod.str(),
                   result.http_code, result.message);
    });
  });
  MakeAdmission();
  verbs->AddTo(router);
  AddApi(host, router);
  AddAdviceApi(adviser, router);
  AddLedgerApi(config.ledger, host, clock, router);
  usage.AddTo(router);
  AddPages(
      host, metrics, [this] { return Gather(); }, router);
  if (embedded_cluster) {
    AddEmbeddedApi(
        *embedded_cluster, host, manual.get(), [this] { return DoDue(); }, router);
  }
  const http::Handler handler = [this](http::Request request, http::Responder respond) {
    if (IsQuick(request.path)) {
      router.Route(std::move(request), std::move(respond));
      return;
    }
    boost::asio::post(questions,
                      [this, asked = std::move(request), answer = std::move(respond)]() mutable {
                        router.Route(std::move(asked), std::move(answer));
                      });
  };
  server = std::make_unique<http::Server>(MakeHttpOptions(config), handler);
  if (config.tls) tls_server = std::make_unique<http::Server>(MakeTlsOptions(config), handler);
}

void Runtime::Impl::MakeAdmission() {
  host.OnUngate([&api = Api()](const GateRemoval& removal) {
    const std::string gate(GateName(removal.gate));
    api.RemoveGate({removal.pod, removal.uid, gate},
                   [pod = removal.pod, gate](const WriteResult& result) {
                     if (result.kind == WriteResult::Kind::kDone) return;
                     spdlog::warn("{}: the scheduling gate {} could not be taken away: code {}: {}",
                                  pod.str(), gate, result.http_code, result.message);
                   });
  });
  AdmissionOptions options = config.admission;
  options.count_hami_shares = config.hami;
  AddAdmissionApi(
      std::move(options),
      [this](const PodRequest& request, const dra::PodClaims& claims) {
        AdmissionWord word{request.asks_gpu(), {}};
        // On stale knowledge no pod is made to wait.
        if (host.readiness() != Readiness::kReady) return word;
        host.With([&](Engine& engine, Instant now) {
          if (word.wants_gpus) {
            word.gates = engine.GatesFor(request, now);
          } else {
            const DraWord claimed = engine.DraWordFor(request, claims, now);
            word.wants_gpus = claimed.wants_gpus;
            word.gates.quota = claimed.quota_waits;
          }
        });
        return word;
      },
      router);
}

metrics::Scrape Runtime::Impl::Gather() {
  metrics::Scrape scrape;
  scrape.version = Version();
  scrape.ready = host.readiness() == Readiness::kReady;
  host.With([&scrape](Engine& engine, Instant now) {
    scrape.now = now;
    scrape.totals = engine.Totals();
    scrape.quotas = engine.Quotas(now);
    scrape.budgets = engine.Budgets(now);
    scrape.pending = engine.Pending(now);
  });
  scrape.binds_in_progress = binder->in_progress();
  scrape.invalid_objects = host.invalid_objects();
  scrape.status_failures = projector->failures() + reclaimer->failures();
  scrape.reclaims_running = reclaimer->running();
  scrape.mig_changes_pending = partitioner->pending();
  if (config.hami) {
    metrics::HamiRows rows{host.Nodes(), host.Pods(), {}};
    rows.caps = host.With([](Engine& engine, Instant) { return engine.NamespaceCapRows(); });
    scrape.hami = std::move(rows);
  }
  if (scrape.ready) {
    const std::shared_ptr<const Advice> advice = adviser.Get(Adviser::kMetricAge);
    scrape.defragmentable_gpus =
        advice->defragment.whole_gpus_possible - advice->defragment.whole_gpus_free;
  }
  scrape.clock_ahead = manual ? std::chrono::milliseconds(0) : system.AheadOfWall();
  scrape.ledger = LedgerState();
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
  for (const auto* each : {&server, &tls_server}) {
    if (*each == nullptr) continue;
    const http::Statistics statistics = (*each)->statistics();
    scrape.http_open += statistics.connections_open;
    scrape.http_accepted += statistics.connections_total;
    scrape.http_evicted += statistics.connections_evicted;
    scrape.tls_failures += statistics.handshakes_failed;
    for (const auto& [status, count] : statistics.refusals_by_status) {
      scrape.http_refusals[status] += count;
    }
  }
  return scrape;
}

std::optional<Instant> Runtime::Impl::DoDue() {
  // Who moves the clock is to find nothing half done by the timer.
  const std::lock_guard lock(due_mutex);
  const std::optional<Instant> next =
      embedded_cluster ? RunDue(*embedded_cluster, host, clock) : host.Tick();
  reclaimer->Tick(clock.Now());
  if (manual) partitioner->Tick(clock.Now());
  return next;
}

void Runtime::Impl::ArmTick(std::chrono::milliseconds delay) {
  timers.After(delay, [this] {
    const std::optional<Instant> next = DoDue();
    ArmTick(next ? std::clamp(next.value() - clock.Now(), kTickMin, kTickMax) : kTickMax);
  });
}

std::optional<metrics::LedgerRow> Runtime::Impl::LedgerState() {
  if (!book) return std::nullopt;
  // The engine first: what it has counted since is in the queue.
  const Charge held = host.With([](Engine& engine, Instant) { return engine.HeldQuanta(); });
  const LedgerHealth health = book->health();
  metrics::LedgerRow row;
  row.writable = health.writable;
  row.entries = health.entries;
  row.queued = health.queued;
  row.dropped = health.dropped;
  row.failures = health.failures;
  row.late = health.late;
  row.wal_bytes = health.wal_bytes;
  row.last_entry = health.last_entry;
  if (health.queued == 0 && health.held) {
    row.drift_quanta =
        std::abs(held.compute - health.held->compute) + std::abs(held.memory - health.held->memory);
  }
  return row;
}

void Runtime::Impl::ArmProjector() {
  timers.After(kProjectEvery, [this] {
    projector->Tick(clock.Now());
    ArmProjector();
  });
}

// Looking at the whole fleet takes its time: not on the timers' thread. Time moved by hand has it
// done with what else is due.
void Runtime::Impl::ArmPartitioner() {
  timers.After(kPartitionEvery, [this] {
    boost::asio::post(questions, [this] {
      partitioner->Tick(clock.Now());
      ArmPartitioner();
    });
  });
}

void Runtime::Impl::ArmHeartbeat() {
  timers.After(kHeartbeatEvery, [this] {
    host.Heartbeat();
    ArmHeartbeat();
  });
}

void Runtime::Impl::ArmBackup() {
  timers.After(kBackupEvery, [this] {
    boost::asio::post(questions, [this] {
      const absl::StatusOr<std::string> backup = book->Backup(clock.Now());
      if (backup.ok()) {
        spdlog::info("ledger copied to {}", *backup);
      } else {
        spdlog::error("the ledger could not be copied: {}", std::string(backup.status().message()));
      }
    });
    ArmBackup();
  });
}

Runtime::Runtime(ServeConfig config) : config_(std::move(config)) {}

Runtime::~Runtime() { Stop(); }

absl::Status Runtime::Start() {
  absl::StatusOr<OpenedLedger> opened = OpenLedger(config_);
  if (!opened.ok()) return opened.status();
  impl_ = std::make_unique<Impl>(config_, *std::move(opened));
  if (impl_->book) {
    impl_->host.SetLedger(impl_->book.get(), impl_->book->history());
    impl_->book->ForgetHistory();
  }
  const bool closed = impl_->untrusted && config_.ledger_failure == LedgerFailure::kClosed;
  impl_->host.With([closed](Engine& engine, Instant) { engine.CloseLedger(closed); });
  if (const absl::Status made = impl_->MakeCluster(); !made.ok()) return made;
  impl_->MakeServer();
  for (const auto* server : {&impl_->server, &impl_->tls_server}) {
    if (*server == nullptr) continue;
    if (const absl::Status started = (*server)->Start(); !started.ok()) return started;
  }
  if (impl_->kube_cluster) impl_->kube_cluster->Start();
  impl_->ArmTick(kTickMin);
  impl_->ArmProjector();
  if (!impl_->manual) impl_->ArmPartitioner();
  if (impl_->book) {
    impl_->ArmHeartbeat();
    impl_->ArmBackup();
  }
  if (config_.tls) spdlog::info("listening on {}:{}, TLS", config_.tls_address, tls_port());
  spdlog::info("listening on {}:{}, cluster {}", impl_->config.address, port(),
               impl_->embedded_cluster ? "embedded" : "kubernetes");
  return absl::OkStatus();
}

uint16_t Runtime::port() const { return impl_->server->port(); }
uint16_t Runtime::tls_port() const { return impl_->tls_server ? impl_->tls_server->port() : 0; }

void Runtime::Stop() {
  if (!impl_) return;
  impl_->host.BeginStopping();
  const auto began = std::chrono::steady_clock::now();
  for (const auto* server : {&impl_->server, &impl_->tls_server}) {
    const auto spent = std::chrono::steady_clock::now() - began;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(kDrainTime - spent);
    if (*server) (*server)->Stop(std::max(left, std::chrono::milliseconds(0)));
  }
  impl_->questions.join();
  if (impl_->kube_cluster) impl_->kube_cluster->Stop();
  impl_->timers.Stop();
  impl_->host.Heartbeat();
  if (impl_->book) impl_->book->Close();
}

}  // namespace tranche::app
