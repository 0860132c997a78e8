#include "scheduler/app/duty.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "scheduler/app/admission_api.h"
#include "scheduler/app/advice_api.h"
#include "scheduler/app/api.h"
#include "scheduler/app/binder.h"
#include "scheduler/app/checkpointer.h"
#include "scheduler/app/embedded_api.h"
#include "scheduler/app/ledger_api.h"
#include "scheduler/app/pages.h"
#include "scheduler/app/partitioner.h"
#include "scheduler/app/projector.h"
#include "scheduler/app/reclaimer.h"
#include "scheduler/app/timers.h"
#include "scheduler/app/usage_api.h"
#include "scheduler/app/verbs.h"
#include "scheduler/embedded/clocks.h"
#include "scheduler/embedded/cluster.h"

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
constexpr std::chrono::milliseconds kLookForCheckpointEvery{1'000};
constexpr std::chrono::milliseconds kHeartbeatEvery{5'000};
constexpr std::chrono::hours kBackupEvery{24};

Instant WallNow() { return std::chrono::floor<Millis>(std::chrono::system_clock::now()); }

HostOptions MakeHostOptions(const ServeConfig& config, int64_t epoch,
                            std::function<bool()> may_write) {
  HostOptions options;
  options.engine.claim_lifetime = config.claim_lifetime;
  options.engine.namespace_caps = config.hami;
  options.engine.keepers = config.reservation;
  options.engine.epoch = epoch;
  options.defaults = PolicyDefaults(config);
  options.may_write = std::move(may_write);
  if (config.cluster == ClusterKind::kKubernetes) options.cache_limit = config.cache_limit;
  return options;
}

}  // namespace

absl::StatusOr<OpenedLedger> OpenLedger(const ServeConfig& config, int64_t epoch, bool exact_epoch,
                                        std::function<bool()> may_write) {
  OpenedLedger opened;
  if (config.ledger.empty()) return opened;
  ledger::Options options;
  options.path = config.ledger;
  options.epoch = epoch;
  options.continue_epoch = !exact_epoch;
  options.may_write = std::move(may_write);
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

// Members are destroyed from the last to the first: what is called into goes last.
struct Duty::Impl {
  Impl(const ServeConfig& given, metrics::Metrics& counts, OpenedLedger opened, int64_t number,
       DutyHooks wanted)
      : config(given),
        metrics(counts),
        process(std::move(wanted)),
        book(std::move(opened.ledger)),
        untrusted(opened.untrusted),
        epoch(book ? std::max(number, book->epoch()) : number),
        system(book ? book->last_time() : Instant()),
        manual(config.manual_clock ? std::make_unique<ManualClock>(system.Now()) : nullptr),
        clock(manual ? static_cast<Clock&>(*manual) : system),
        host(MakeHostOptions(config, epoch, process.may_write), clock),
        adviser([this] { return Look(); }) {}

  void MakeReclaimer();
  void MakePartitioner();
  AdviceCase Look();
  absl::Status LoadObjects();
  void MakeAnswers();
  void MakeAdmission();
  metrics::Scrape Gather();
  std::optional<Instant> DoDue();
  void ArmTick(std::chrono::milliseconds delay);
  void ArmProjector();
  void ArmPartitioner();
  void ArmCheckpointer();
  void ArmHeartbeat();
  void ArmBackup();
  std::optional<metrics::LedgerRow> LedgerState();

  const ServeConfig& config;
  metrics::Metrics& metrics;
  const DutyHooks process;
  std::unique_ptr<ledger::SqliteLedger> book;  // null: nothing is kept
  const bool untrusted;
  const int64_t epoch;
  SystemClock system;
  std::unique_ptr<ManualClock> manual;  // null: the system clock is the time
  Clock& clock;
  Host host;
  std::unique_ptr<Reclaimer> reclaimer;  // known to the host, so outlives the cluster's events
  std::unique_ptr<embedded::Cluster> embedded_cluster;  // null: it is elsewhere
  ClusterApi* api = nullptr;
  std::mutex due_mutex;
  ThreadTimers timers;
  std::unique_ptr<Binder> binder;
  std::unique_ptr<Verbs> verbs;
  std::unique_ptr<Checkpointer> checkpointer;
  std::unique_ptr<Projector> projector;
  std::unique_ptr<Partitioner> partitioner;
  Adviser adviser;
  UsageApi usage{config.ledger, host, clock};
  Router router;
};

void Duty::Impl::MakeReclaimer() {
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
  reclaimer = std::make_unique<Reclaimer>(*api, metrics, std::move(hooks));
  host.SetReclaimSink(reclaimer.get());
  host.OnPlan([this](const PlanOutcome& outcome, std::chrono::nanoseconds took) {
    metrics.CountPlan(outcome, took);
  });
}

AdviceCase Duty::Impl::Look() {
  return host.With([](Engine& engine, Instant now) { return engine.Case(now); });
}

void Duty::Impl::MakePartitioner() {
  Partitioner::Hooks hooks;
  hooks.fresh = [this] { return host.readiness() == Readiness::kReady; };
  hooks.mode = [this] { return host.mig_mode(); };
  hooks.look = [this] { return Look(); };
  hooks.plan = [](const AdviceCase& fleet) { return PlanRepartition(fleet, kPlanLimits); };
  hooks.hold = [this](const NodeName& node, const std::string& why) {
    host.With([&](Engine& engine, Instant now) { engine.SetHeld(node, why, now); });
  };
  partitioner = std::make_unique<Partitioner>(
      *api, metrics, MigConfigMap{config.mig_config_ns, config.mig_config_name}, std::move(hooks));
}

absl::Status Duty::Impl::LoadObjects() {
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

void Duty::Impl::MakeAnswers() {
  BinderOptions binder_options;
  binder_options.keeper_image = config.reservation_image;
  binder = std::make_unique<Binder>(host, *api, timers, metrics, std::move(binder_options));
  verbs = std::make_unique<Verbs>(host, *binder, metrics,
                                  config.hami ? wire::ReasonStyle::kHami : wire::ReasonStyle::kOwn);
  checkpointer = std::make_unique<Checkpointer>(host, book.get(), config.ledger);
  projector = std::make_unique<Projector>(host, *api, *checkpointer);
  MakePartitioner();
  host.OnPoke([this](const PodName& pod, const PodUid& uid, Instant when) {
    metrics.CountPoke();
    api->Poke(pod, uid, when, [pod](const WriteResult& result) {
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
  AddPages([this] { return host.readiness(); }, metrics, [this] { return Gather(); }, router);
  if (embedded_cluster) {
    AddEmbeddedApi(
        *embedded_cluster, host, manual.get(), [this] { return DoDue(); }, router);
  }
}

void Duty::Impl::MakeAdmission() {
  host.OnUngate([this](const GateRemoval& removal) {
    const std::string gate(GateName(removal.gate));
    api->RemoveGate(
        {removal.pod, removal.uid, gate}, [pod = removal.pod, gate](const WriteResult& result) {
          if (result.kind == WriteResult::Kind::kDone) return;
          spdlog::warn("{}: the scheduling gate {} could not be taken away: code {}: {}", pod.str(),
                       gate, result.http_code, result.message);
        });
  });
  AdmissionOptions options = config.admission;
  options.count_hami_shares = config.hami;
  options.show_devices = config.reservation;
  AddAdmissionApi(std::move(options), AskEngine(host), metrics, router);
}

metrics::Scrape Duty::Impl::Gather() {
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
  process.edges(scrape);
  return scrape;
}

std::optional<Instant> Duty::Impl::DoDue() {
  // Who moves the clock is to find nothing half done by the timer.
  const std::lock_guard lock(due_mutex);
  const std::optional<Instant> next =
      embedded_cluster ? RunDue(*embedded_cluster, host, clock) : host.Tick();
  reclaimer->Tick(clock.Now());
  if (manual) {
    partitioner->Tick(clock.Now());
    checkpointer->Take(clock.Now());
  }
  return next;
}

void Duty::Impl::ArmTick(std::chrono::milliseconds delay) {
  timers.After(delay, [this] {
    const std::optional<Instant> next = DoDue();
    ArmTick(next ? std::clamp(next.value() - clock.Now(), kTickMin, kTickMax) : kTickMax);
  });
}

std::optional<metrics::LedgerRow> Duty::Impl::LedgerState() {
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
  row.restored = health.restored;
  if (const std::optional<Instant> taken = checkpointer->taken()) {
    row.checkpoint_age_seconds =
        std::chrono::duration_cast<std::chrono::seconds>(clock.Now() - *taken).count();
  }
  if (health.queued == 0 && health.held) {
    row.drift_quanta =
        std::abs(held.compute - health.held->compute) + std::abs(held.memory - health.held->memory);
  }
  return row;
}

void Duty::Impl::ArmProjector() {
  timers.After(kProjectEvery, [this] {
    projector->Tick(clock.Now());
    ArmProjector();
  });
}

// Looking at the whole fleet takes its time: not on the timers' thread. Time moved by hand has it
// done with what else is due.
void Duty::Impl::ArmPartitioner() {
  timers.After(kPartitionEvery, [this] {
    process.later([this] {
      partitioner->Tick(clock.Now());
      ArmPartitioner();
    });
  });
}

// Reads the ledger, so likewise not on the timers' thread.
void Duty::Impl::ArmCheckpointer() {
  timers.After(kLookForCheckpointEvery, [this] {
    process.later([this] {
      checkpointer->Take(clock.Now());
      ArmCheckpointer();
    });
  });
}

void Duty::Impl::ArmHeartbeat() {
  timers.After(kHeartbeatEvery, [this] {
    host.Heartbeat();
    ArmHeartbeat();
  });
}

void Duty::Impl::ArmBackup() {
  timers.After(kBackupEvery, [this] {
    process.later([this] {
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

Duty::Duty(const ServeConfig& config, metrics::Metrics& metrics, OpenedLedger opened, int64_t epoch,
           DutyHooks hooks)
    : impl_(std::make_unique<Impl>(config, metrics, std::move(opened), epoch, std::move(hooks))) {
  if (impl_->book) {
    impl_->host.SetLedger(impl_->book.get(), impl_->book->history());
    impl_->book->ForgetHistory();
  }
  const bool closed = impl_->untrusted && config.ledger_failure == LedgerFailure::kClosed;
  impl_->host.With([closed](Engine& engine, Instant) { engine.CloseLedger(closed); });
}

Duty::~Duty() { End(); }

absl::Status Duty::MakeEmbedded() {
  impl_->embedded_cluster =
      std::make_unique<embedded::Cluster>(impl_->clock, impl_->host, PolicyDefaults(impl_->config));
  impl_->api = impl_->embedded_cluster.get();
  impl_->MakeReclaimer();
  if (const absl::Status loaded = impl_->LoadObjects(); !loaded.ok()) return loaded;
  impl_->MakeAnswers();
  return absl::OkStatus();
}

void Duty::Attach(ClusterApi& api) {
  impl_->api = &api;
  impl_->MakeReclaimer();
  impl_->MakeAnswers();
}

void Duty::Begin() {
  impl_->ArmTick(kTickMin);
  impl_->ArmProjector();
  if (!impl_->manual) {
    impl_->ArmPartitioner();
    impl_->ArmCheckpointer();
  }
  if (impl_->book) {
    impl_->ArmHeartbeat();
    impl_->ArmBackup();
  }
}

void Duty::Drain() { impl_->host.BeginStopping(); }

void Duty::End() {
  impl_->timers.Stop();
  impl_->host.Heartbeat();
  if (impl_->book) impl_->book->Close();
}

Host& Duty::host() { return impl_->host; }
const Router& Duty::router() const { return impl_->router; }
int64_t Duty::epoch() const { return impl_->epoch; }

}  // namespace tranche::app
