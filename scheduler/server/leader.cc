#include "scheduler/server/leader.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "scheduler/api/admission_api.h"
#include "scheduler/api/advice_api.h"
#include "scheduler/api/api.h"
#include "scheduler/api/audit_api.h"
#include "scheduler/api/costs/opencost.h"
#include "scheduler/api/embedded_api.h"
#include "scheduler/api/foresight/edit_reviews.h"
#include "scheduler/api/foresight/forecast_api.h"
#include "scheduler/api/foresight/plan_api.h"
#include "scheduler/api/ledger_api.h"
#include "scheduler/api/pages.h"
#include "scheduler/api/verbs.h"
#include "scheduler/api/what_if_api.h"
#include "scheduler/controllers/binder.h"
#include "scheduler/controllers/checkpointer.h"
#include "scheduler/controllers/fleet_recorder.h"
#include "scheduler/controllers/forecaster.h"
#include "scheduler/controllers/past_recorder.h"
#include "scheduler/controllers/reclaimer.h"
#include "scheduler/controllers/self_check.h"
#include "scheduler/controllers/status_writer.h"
#include "scheduler/embedded/cluster.h"
#include "scheduler/host/clocks.h"
#include "scheduler/host/free_memory.h"
#include "scheduler/server/fleet_care.h"
#include "scheduler/server/host_options.h"
#include "scheduler/server/ledger_care.h"
#include "scheduler/server/log.h"
#include "scheduler/server/use_source.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

// How often due work is looked for at most and at least: claims and grace periods are seconds, and
// a pod that starts to wait, which moves no timer, is to be planned for well within one.
constexpr std::chrono::milliseconds kTickMin{50};
constexpr std::chrono::milliseconds kTickMax{250};

// How often the objects of the cluster are compared with what we know, and the ledger told that we
// live.
constexpr std::chrono::milliseconds kWriteStatusEvery{250};
constexpr std::chrono::minutes kReturnMemoryEvery{1};
constexpr std::chrono::milliseconds kFleetEvery{1'000};  // at the fleet, and for checkpoints
constexpr std::chrono::milliseconds kForecastEvery{5'000};
constexpr std::chrono::milliseconds kHeartbeatEvery{5'000};
// Some seconds for all of a large cluster.
constexpr std::chrono::milliseconds kCheckSliceEvery{100};

}  // namespace

// Members are destroyed from the last to the first: what is called into goes last.
struct LeaderServices::Impl {
  Impl(const ServeConfig& given, metrics::Metrics& counts, OpenedLedger opened, int64_t number,
       LeaderHooks wanted)
      : config(given),
        metrics(counts),
        process(std::move(wanted)),
        book(std::move(opened.ledger)),
        epoch(book ? std::max(number, book->epoch()) : number),
        system(book ? book->last_time() : Instant(), process.cluster_time),
        manual(config.manual_clock ? std::make_unique<ManualClock>(system.Now()) : nullptr),
        clock(manual ? static_cast<Clock&>(*manual) : system),
        remembered(book ? Remember(config, clock.Now()) : Remembered()),
        host(MakeHostOptions(config, epoch, book.get(), std::move(remembered.asked), runs,
                             process.may_write),
             clock),
        own_timers(process.threads.timers ? nullptr : std::make_unique<ThreadTimers>()),
        timers(own_timers ? *own_timers : *process.threads.timers),
        adviser([this] { return Look(); }, [this] { return use_source.history(); }) {
    if (!config.ledger.empty()) MakeCare(opened.untrusted);
  }

  void MakeCare(const std::string& untrusted);
  void MakeReclaimer();
  void MakeAudit();
  // Makes what carries out the effects of the engine, and connects it.
  void ConnectEffects();
  AdviceCase Look() { return host.engine.Case(); }
  ApiSources Sources() {
    return {&forecaster, [this] { return Advised(); }, [this] { return use_source.readings(); },
            [this](auto& ns, auto& gang) { return fleet_care->ProvisioningOf(ns, gang); }};
  }
  std::shared_ptr<const Advice> Advised() {
    return adviser.Peek(Adviser::kMetricAge, process.later);
  }
  std::shared_ptr<const std::vector<RightSize>> RightSizes();
  absl::Status LoadObjects();
  void MakeAnswers();
  void MakeAdmission();
  metrics::Scrape Gather();
  std::optional<Instant> DoDue();
  void ArmTick(std::chrono::milliseconds delay);
  // On the timers' thread, and again after each time.
  void Every(std::chrono::milliseconds period, const std::function<void()>& work);
  // Off it, for what takes its time.
  void EveryLater(std::chrono::milliseconds period, const std::function<void()>& work);
  std::optional<metrics::LedgerRow> LedgerState();

  const ServeConfig& config;
  metrics::Metrics& metrics;
  const LeaderHooks process;
  std::unique_ptr<ledger::SqliteLedger> book;  // null: nothing is kept
  const int64_t epoch;
  SystemClock system;
  std::unique_ptr<ManualClock> manual;  // null: the system clock is the time
  Clock& clock;
  RunNotes runs;  // of the host's effects
  Remembered remembered;
  Host host;
  PastRecorder past_recorder{host.cluster, config.past_days > 0 ? book.get() : nullptr, clock,
                             PolicyDefaults(config)};
  Forecaster forecaster{host.engine, runs};
  std::unique_ptr<LedgerCare> care;      // null: no ledger is asked for
  std::unique_ptr<Reclaimer> reclaimer;  // known to the host, so outlives the cluster's events
  std::unique_ptr<embedded::Cluster> embedded_cluster;  // null: it is elsewhere
  ClusterApi* api = nullptr;
  absl::Mutex due_mutex;                           // around a whole round of what is due
  const std::unique_ptr<ThreadTimers> own_timers;  // null: the hooks have others
  Timers& timers;
  std::unique_ptr<Binder> binder;
  std::unique_ptr<Verbs> verbs;
  std::unique_ptr<Checkpointer> checkpointer;
  std::unique_ptr<SelfCheck> self_check;
  FleetRecorder fleet_recorder{host, book.get()};
  std::unique_ptr<AuditApi> audit;
  std::unique_ptr<StatusWriter> status_writer;
  std::unique_ptr<FleetCare> fleet_care;
  UseSource use_source{config.use, host, clock, config.past_days > 0 ? book.get() : nullptr,
                       std::move(remembered.work)};
  Adviser adviser;
  UsageApi usage{config.ledger, host.engine, clock, process.threads.reader};
  WhatIfApi what_if{host.engine};
  PlanApi plan{host};
  EditReviews edits{host, metrics};
  ForecastApi forecasts{host.engine, forecaster};
  Router router;
};

void LeaderServices::Impl::MakeCare(const std::string& untrusted) {
  LedgerCareHooks hooks;
  hooks.close = [this](bool closed) {
    host.engine.With(EngineCaller::kLedger,
                     [closed](Engine& engine, Instant) { engine.CloseLedger(closed); });
  };
  hooks.try_again = [this] {
    return OpenLedger(config, epoch, /*exact_epoch=*/config.elects, process.may_write,
                      IfUntrusted::kFail, process.threads.ledger)
        .status();
  };
  hooks.workers = process.threads.ledger.workers;
  // Objects of the embedded cluster are in this process alone.
  if (config.cluster == ClusterKind::kKubernetes) hooks.restart = process.restart;
  care = std::make_unique<LedgerCare>(config, book.get(), untrusted, std::move(hooks));
}

void LeaderServices::Impl::MakeReclaimer() {
  Reclaimer::Hooks hooks;
  hooks.settle = [this](const std::string& reclaim, const PodUid& uid, EvictionOutcome outcome,
                        std::optional<Millis> retry_after) {
    host.engine.With(EngineCaller::kPlan, [&](Engine& engine, Instant now) {
      engine.SettleEviction(reclaim, uid, outcome, retry_after, now);
    });
  };
  hooks.uid_of = [this](const std::string& kind, const std::string& name) {
    return host.policies.UidOf(kind, name);
  };
  reclaimer = std::make_unique<Reclaimer>(*api, *api, metrics, std::move(hooks));
}

void LeaderServices::Impl::MakeAudit() {
  AuditApi::Hooks hooks;
  hooks.set_aside = [this] {
    std::vector<AuditNote> notes;
    metrics::Scrape edges;
    process.edges(edges);
    for (const metrics::WatchRow& watch : edges.watches) {
      if (watch.unreadable == 0) continue;
      notes.push_back(
          {AuditKind::kUnreadable, watch.resource,
           fmt::format("{} objects cannot be read; the log names them", watch.unreadable)});
    }
    const auto objects = host.policies.objects();
    for (const Finding& finding : objects->findings) {
      if (finding.type != "Ready" || finding.status) continue;
      notes.push_back({AuditKind::kInvalidObject, fmt::format("{} {}", finding.kind, finding.name),
                       finding.message});
    }
    return notes;
  };
  hooks.walks = [this] { return self_check->findings().walks; };
  audit = std::make_unique<AuditApi>(host, *api, std::move(hooks));
}

void LeaderServices::Impl::ConnectEffects() {
  BinderOptions options;
  options.placeholder_image = config.reservation_image;
  binder = std::make_unique<Binder>(host, *api, *api, timers, metrics, std::move(options));
  self_check = std::make_unique<SelfCheck>(host, *api);
  MakeAudit();
  MakeReclaimer();
  EffectSinks sinks;
  sinks.requeue = [this](const PodName& pod, const PodUid& uid, Instant when) {
    metrics.CountPoke();
    api->Requeue(pod, uid, when, [pod](const WriteResult& result) {
      if (result.kind == WriteResult::Kind::kDone) return;
      spdlog::warn("{} could not be brought back to the scheduler's queue: code {}: {}", pod.str(),
                   result.http_code, result.message);
    });
  };
  sinks.remove_gate = [this](const GateRemoval& removal) {
    const std::string gate(GateName(removal.gate));
    api->RemoveGate(
        {removal.pod, removal.uid, gate}, [pod = removal.pod, gate](const WriteResult& result) {
          if (result.kind == WriteResult::Kind::kDone) return;
          spdlog::warn("{}: the scheduling gate {} could not be taken away: code {}: {}", pod.str(),
                       gate, result.http_code, result.message);
        });
  };
  sinks.agents = binder->AgentSink();
  sinks.reclaims = reclaimer.get();
  sinks.watch = [this](const Effects& effects) { runs.Watch(effects); };
  sinks.planned = [this](const PlanOutcome& outcome, std::chrono::nanoseconds took) {
    metrics.CountPlan(outcome, took);
  };
  host.engine.Connect(std::move(sinks));
}

absl::Status LeaderServices::Impl::LoadObjects() {
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

void LeaderServices::Impl::MakeAnswers() {
  verbs = std::make_unique<Verbs>(host, *binder, metrics,
                                  config.hami ? wire::ReasonStyle::kHami : wire::ReasonStyle::kOwn);
  checkpointer = std::make_unique<Checkpointer>(host, book.get(), config.ledger);
  status_writer =
      std::make_unique<StatusWriter>(host, *api, *checkpointer,
                                     StatusWriter::Sources{[this] { return RightSizes(); },
                                                           [this] { return forecaster.Latest(); }});
  fleet_care = std::make_unique<FleetCare>(config, host, *api, metrics, [this] { return Look(); });
  MakeAdmission();
  verbs->AddTo(router);
  AddApi(host.engine, router, Sources());
  AddAdviceApi(adviser, router);
  const LedgerSource ledger{config.ledger, host.engine, clock,
                            [this](std::function<void()> work) { usage.Later(std::move(work)); }};
  AddLedgerApi(ledger, router);
  AddOpenCostApi(ledger, router);
  usage.AddTo(router);
  what_if.AddTo(router);
  plan.AddTo(router);
  edits.AddTo(router);
  forecasts.AddTo(router);
  audit->AddTo(router);
  AddPages([this] { return host.cluster.readiness(); },
           [this] { return care ? care->Note() : std::string(); }, metrics,
           [this] { return Gather(); }, router);
  if (embedded_cluster) {
    AddEmbeddedApi(
        *embedded_cluster, host.engine, manual.get(), [this] { return DoDue(); }, router);
  }
}

void LeaderServices::Impl::MakeAdmission() {
  AdmissionOptions options = config.admission;
  options.count_hami_shares = config.hami;
  options.show_devices = config.reservation;
  AddAdmissionApi(std::move(options), AskEngine(host), metrics, router);
}

std::shared_ptr<const std::vector<RightSize>> LeaderServices::Impl::RightSizes() {
  // Where nobody is asked how much GPUs are used, no advice is made for this alone.
  if (config.use.prometheus.empty()) return nullptr;
  const std::shared_ptr<const Advice> latest = Advised();
  if (!latest || !latest->right_sizes) return nullptr;
  return {latest, &latest->right_sizes->entries};
}

metrics::Scrape LeaderServices::Impl::Gather() {
  metrics::Scrape scrape;
  scrape.version = Version();
  scrape.ready = host.cluster.readiness() == Readiness::kReady;
  // Each by itself, so that others come between.
  const auto ask = [this](const auto& question) {
    host.engine.With(EngineCaller::kMetrics, question);
  };
  scrape.totals = host.engine.Totals(EngineCaller::kMetrics);
  scrape.pending = host.engine.Waiting(EngineCaller::kMetrics).Rows();
  scrape.quotas = host.engine.Quotas(EngineCaller::kMetrics, scrape.pending);
  ask([&](Engine& engine, Instant now) {
    scrape.now = now;
    scrape.budgets = engine.Budgets(now);
  });
  ask([&](Engine& engine, Instant now) {
    scrape.held_time = engine.HeldTime(now);
    scrape.namespaces = engine.HeldByNamespace();
  });
  scrape.costs = host.engine.Costs(EngineCaller::kMetrics);
  scrape.expected_starts = forecaster.Rows(scrape.now);
  scrape.forecast_spans = forecaster.Spans();
  scrape.use = use_source.row();
  if (config.share_metrics) scrape.shares = host.engine.Pods();
  scrape.holds = host.engine.Holds();
  scrape.binds_in_progress = binder->in_progress();
  scrape.invalid_objects = host.policies.invalid_objects();
  scrape.status_failures = status_writer->failures() + reclaimer->failures();
  const SelfCheck::Findings findings = self_check->findings();
  scrape.self_checks = findings.walks;
  scrape.self_check_faults = findings.faults;
  scrape.stuck_reservations = findings.stuck_reservations;
  scrape.self_check_mended = findings.mended;
  scrape.reclaims_running = reclaimer->running();
  fleet_care->AddTo(scrape);
  if (config.hami) {
    metrics::HamiRows rows{host.engine.Nodes(), host.engine.Pods(), {}};
    rows.caps = host.engine.With(EngineCaller::kMetrics,
                                 [](Engine& engine, Instant) { return engine.NamespaceCapRows(); });
    scrape.hami = std::move(rows);
  }
  const std::shared_ptr<const Advice> advice = scrape.ready ? Advised() : nullptr;
  if (advice != nullptr) {
    scrape.defragmentable_gpus =
        advice->defragment.whole_gpus_possible - advice->defragment.whole_gpus_free;
  }
  scrape.clock_ahead = manual ? std::chrono::milliseconds(0) : system.AheadOfWall();
  scrape.ledger = LedgerState();
  process.edges(scrape);
  return scrape;
}

std::optional<Instant> LeaderServices::Impl::DoDue() {
  // When the clock is set, the timer must not be half way through a tick.
  const absl::MutexLock lock(&due_mutex);
  const std::optional<Instant> next =
      embedded_cluster ? RunDue(*embedded_cluster, host.engine, clock) : host.engine.Tick();
  reclaimer->Tick(clock.Now());
  if (manual) {
    fleet_care->Tick(clock.Now());
    checkpointer->Take(clock.Now());
    fleet_recorder.Tick(clock.Now());
  }
  return next;
}

void LeaderServices::Impl::ArmTick(std::chrono::milliseconds delay) {
  timers.After(delay, [this] {
    std::optional<Instant> next;
    Guarded("what is due", [this, &next] { next = DoDue(); });
    ArmTick(next ? std::clamp(next.value() - clock.Now(), kTickMin, kTickMax) : kTickMax);
  });
}

std::optional<metrics::LedgerRow> LeaderServices::Impl::LedgerState() {
  if (!care) return std::nullopt;
  metrics::LedgerRow row;
  const LedgerProblems problems = care->problems();
  for (int kind = 0; kind < static_cast<int>(LedgerFault::kCount); ++kind) {
    const auto fault = static_cast<LedgerFault>(kind);
    row.faults[NameOf(fault)] = problems.contains(fault);
  }
  row.backup_age_seconds = care->copy_age();
  if (!book) {
    row.writable = false;
    return row;
  }
  // The engine first: what it has counted since is in the queue.
  const Charge held = host.engine.With(EngineCaller::kMetrics,
                                       [](Engine& engine, Instant) { return engine.HeldQuanta(); });
  const LedgerHealth health = book->health();
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

void LeaderServices::Impl::Every(std::chrono::milliseconds period,
                                 const std::function<void()>& work) {
  timers.After(period, [this, period, work] {
    Guarded("work by the clock", work);
    Every(period, work);
  });
}

void LeaderServices::Impl::EveryLater(std::chrono::milliseconds period,
                                      const std::function<void()>& work) {
  timers.After(period, [this, period, work] {
    process.later([this, period, work] {
      Guarded("work by the clock", work);
      EveryLater(period, work);
    });
  });
}

LeaderServices::LeaderServices(const ServeConfig& config, metrics::Metrics& metrics,
                               OpenedLedger opened, int64_t epoch, LeaderHooks hooks)
    : impl_(std::make_unique<Impl>(config, metrics, std::move(opened), epoch, std::move(hooks))) {
  // Before anything is decided.
  if (impl_->care) impl_->care->Tick();
}

LeaderServices::~LeaderServices() { End(); }

absl::Status LeaderServices::MakeEmbedded() {
  impl_->embedded_cluster = std::make_unique<embedded::Cluster>(impl_->clock, impl_->past_recorder,
                                                                PolicyDefaults(impl_->config));
  impl_->api = impl_->embedded_cluster.get();
  impl_->ConnectEffects();
  TRANCHE_RETURN_IF_ERROR(impl_->LoadObjects());
  impl_->MakeAnswers();
  return absl::OkStatus();
}

void LeaderServices::Attach(ClusterApi& api) {
  impl_->api = &api;
  impl_->ConnectEffects();
  impl_->MakeAnswers();
}

void LeaderServices::Begin() {
  Impl* const impl = impl_.get();
  impl->ArmTick(kTickMin);
  impl->Every(kWriteStatusEvery, [impl] { impl->status_writer->Turn(impl->clock.Now()); });
  impl->Every(kCheckSliceEvery, [impl] { impl->self_check->Tick(impl->clock.Now()); });
  impl->EveryLater(kReturnMemoryEvery, ReturnFreePages);
  // They look at the whole fleet, or read the ledger. Time moved by hand has them done with what
  // else is due.
  if (!impl->manual) {
    impl->EveryLater(kFleetEvery, [impl] { impl->fleet_care->Tick(impl->clock.Now()); });
    impl->EveryLater(kFleetEvery, [impl] { impl->fleet_recorder.Tick(impl->clock.Now()); });
    impl->EveryLater(kFleetEvery, [impl] { impl->past_recorder.Tick(); });
    impl->EveryLater(kFleetEvery, [impl] { impl->checkpointer->Take(impl->clock.Now()); });
  }
  // In a simulation nothing runs by itself.
  if (impl->own_timers) {
    impl->use_source.Begin();
    impl->Every(kForecastEvery, [impl] {
      if (impl->host.cluster.readiness() == Readiness::kReady) impl->forecasts.Refresh();
    });
  }
  if (impl->book) {
    impl->Every(kHeartbeatEvery, [impl] { impl->host.engine.Heartbeat(); });
  }
  if (impl->care) {
    impl->Every(impl->config.ledger_look, [impl] { impl->care->Tick(); });
    impl->care->Begin();
  }
}

void LeaderServices::Drain() { impl_->host.cluster.BeginStopping(); }

void LeaderServices::End() {
  impl_->use_source.End();
  if (impl_->own_timers) impl_->own_timers->Stop();
  impl_->past_recorder.Tick();
  impl_->host.engine.Heartbeat();
  if (impl_->care) impl_->care->End();
  if (impl_->book) impl_->book->Close();
}

Host& LeaderServices::host() { return impl_->host; }
ClusterEvents& LeaderServices::events() { return impl_->past_recorder; }
const Router& LeaderServices::router() const { return impl_->router; }

ApiSources LeaderServices::sources() { return impl_->Sources(); }
int64_t LeaderServices::epoch() const { return impl_->epoch; }

}  // namespace tranche
