#include "scheduler/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "scheduler/metrics/names.h"
#include "scheduler/metrics/page.h"
#include "scheduler/metrics/process.h"
#include "scheduler/metrics/reclaims.h"
#include "scheduler/metrics/teams.h"
#include "topology/base/check.h"

namespace tranche::metrics {
namespace {

using prometheus::MetricFamily;

constexpr auto kVerbs = static_cast<std::size_t>(Verb::kCount);
constexpr auto kResults = static_cast<std::size_t>(Result::kCount);
constexpr auto kReasons = static_cast<std::size_t>(Reason::kCount);
constexpr std::array<const char*, kVerbs> kVerbNames = {"filter", "prioritize", "preempt", "bind"};
constexpr std::array<const char*, kResults> kResultNames = {"yes", "no", "not_ready", "malformed",
                                                            "failed"};

constexpr auto kWebhooks = static_cast<std::size_t>(Webhook::kCount);
constexpr auto kReviewOutcomes = static_cast<std::size_t>(ReviewOutcome::kCount);
constexpr std::array<const char*, kWebhooks> kWebhookNames = {"mutate", "validate", "edits"};
constexpr std::array<const char*, kReviewOutcomes> kReviewOutcomeNames = {"allowed", "changed",
                                                                          "refused", "error"};
// Why requests are refused at creation; another reason begins with its first refusal.
constexpr std::array kRequestReasons = {Reason::kMixedStyles, Reason::kBadAmount,
                                        Reason::kUnknownProfile, Reason::kAgentCannotServe,
                                        Reason::kTooManyPerNode};

constexpr auto kMigOutcomes = static_cast<std::size_t>(MigOutcome::kCount);
constexpr std::array<const char*, kMigOutcomes> kMigOutcomeNames = {
    "done", "failed", "refused", "overridden", "gone", "differs"};

constexpr auto kEmptyingOutcomes = static_cast<std::size_t>(EmptyingOutcome::kCount);
constexpr std::array<const char*, kEmptyingOutcomes> kEmptyingOutcomeNames = {"gone", "kept",
                                                                              "needed", "given_up"};

// 50 us is a cached answer over a few nodes; 5 s is where kube-scheduler gives up.
const prometheus::Histogram::BucketBoundaries kBuckets = {
    50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3,
    25e-3, 50e-3,  0.1,    0.25,   0.5,  1.0,    2.5,  5.0};

std::string ReasonCode(std::size_t reason) {
  return std::string(Describe(static_cast<Reason>(reason)).code);
}

double Gpus(MilliGpu amount) {
  return static_cast<double>(amount.count()) / static_cast<double>(kWholeGpu.count());
}

void AddState(const Scrape& scrape, Page& page) {
  const EngineTotals& totals = scrape.totals;
  page.Gauge(kReady, scrape.ready ? 1 : 0);
  page.Gauge(kLeader, !scrape.election || scrape.election->leading ? 1 : 0);
  if (scrape.election) {
    page.Counter(kLeaderTransitions, static_cast<double>(scrape.election->transitions));
  }
  page.Gauge(kNodes, static_cast<double>(totals.nodes));
  page.Gauge(kNodesClosed, static_cast<double>(totals.nodes_closed));
  page.Gauge(kPods, static_cast<double>(totals.pods_bound), {{"state", "bound"}});
  page.Gauge(kPods, static_cast<double>(totals.pods_pending), {{"state", "pending"}});
  page.Gauge(kDevicesUnknown, static_cast<double>(totals.pods_devices_unknown));
  page.Gauge(kClaims, static_cast<double>(totals.tentative_placements));
  page.Gauge(kReservations, static_cast<double>(totals.reservations));
  page.Gauge(kAgentWaiting, static_cast<double>(totals.agent_waiting));
  page.Gauge(kAgentServing, static_cast<double>(totals.agent_serving));
  page.Counter(kAgentPassedOver, static_cast<double>(totals.agent_passed_over));
  const EarlyTotals& early = totals.early;
  for (const auto& [outcome, count] :
       {std::pair("told", early.told), std::pair("taken", early.taken),
        std::pair("late", early.late), std::pair("refused", early.refused),
        std::pair("withdrawn", early.withdrawn)}) {
    page.Counter(kEarlyNominations, static_cast<double>(count), {{"outcome", outcome}});
  }
  page.Gauge(kEarlyOutstanding, static_cast<double>(early.outstanding));
  for (std::size_t kind = 0; kind < kBookFaultKinds; ++kind) {
    page.Counter(kBookFaults, static_cast<double>(totals.book_faults[kind]),
                 {{"kind", std::string(BookFaultName(static_cast<BookFaultKind>(kind)))}});
  }
  const double oldest =
      totals.oldest_reservation
          ? std::chrono::duration<double>(scrape.now - *totals.oldest_reservation).count()
          : 0.0;
  page.Gauge(kOldestReservation, std::max(oldest, 0.0));
  page.Gauge(kInvalidObjects, static_cast<double>(scrape.invalid_objects));
  page.Counter(kStatusFailures, static_cast<double>(scrape.status_failures));
  page.Counter(kSelfChecks, static_cast<double>(scrape.self_checks));
  page.Gauge(kSelfCheckFaults, static_cast<double>(scrape.self_check_faults));
  page.Counter(kSelfCheckMended, static_cast<double>(scrape.self_check_mended));
  page.Gauge(kStuckReservations, static_cast<double>(scrape.stuck_reservations));
  page.Gauge(kReclaimsRunning, static_cast<double>(scrape.reclaims_running));
  page.Gauge(kMigChangesPending, static_cast<double>(scrape.mig_changes_pending));
  page.Gauge(kEmptyingsPending, static_cast<double>(scrape.emptyings_pending));
  for (const auto& [state, count] : scrape.provisioning_requests) {
    page.Gauge(kProvisioningRequests, static_cast<double>(count), {{"state", state}});
  }
  if (scrape.defragmentable_gpus) {
    page.Gauge(kDefragmentable, static_cast<double>(*scrape.defragmentable_gpus));
  }
  page.Gauge(kClockAhead, static_cast<double>(scrape.clock_ahead.count()) / 1000.0);
  page.Gauge(kBindsPursued, static_cast<double>(scrape.binds_in_progress));
  for (const ModelTotals& model : totals.models) {
    const Labels labels = {{"model", model.model}};
    page.Gauge(kGpus, static_cast<double>(model.gpus), labels);
    page.Gauge(kGpuCapacity, Gpus(model.capacity), labels);
    page.Gauge(kGpuAllocated, Gpus(model.allocated), labels);
    page.Gauge(kGpuStranded, Gpus(model.stranded), labels);
    page.Gauge(kGpuMemoryCapacity, Bytes(model.memory_capacity), labels);
    page.Gauge(kGpuMemoryAllocated, Bytes(model.memory_allocated), labels);
  }
  for (const PoolTotals& pool : totals.pools) {
    const Labels labels = {{"model", pool.model}, {"pool", pool.pool}};
    page.Gauge(kPoolGpus, static_cast<double>(pool.gpus), labels);
    page.Gauge(kPoolGpuAllocated, Gpus(pool.allocated), labels);
  }
}

void AddHolds(const Scrape& scrape, Page& page) {
  for (const HoldRow& row : scrape.holds) {
    const Labels labels = {{"caller", row.caller}};
    page.Histogram(kLockHold, row.total_seconds,
                   {{0.0003, row.holds - row.felt_holds},
                    {0.02, row.holds - row.long_holds},
                    {std::numeric_limits<double>::infinity(), row.holds}},
                   labels);
    page.Gauge(kLongestLockHold, row.longest_seconds, labels);
  }
}

void AddEdges(const Scrape& scrape, Page& page) {
  for (const WatchRow& watch : scrape.watches) {
    const Labels labels = {{"resource", watch.resource}};
    if (watch.age_seconds) page.Gauge(kWatchAge, *watch.age_seconds, labels);
    page.Counter(kWatchRelists, static_cast<double>(watch.relists), labels);
    page.Counter(kWatchReconnects, static_cast<double>(watch.reconnects), labels);
    page.Counter(kWatchFailures, static_cast<double>(watch.failures), labels);
    page.Gauge(kUnreadableObjects, static_cast<double>(watch.unreadable), labels);
  }
  page.Gauge(kHttpOpen, static_cast<double>(scrape.http_open));
  page.Counter(kHttpAccepted, static_cast<double>(scrape.http_accepted));
  page.Counter(kHttpEvicted, static_cast<double>(scrape.http_evicted));
  page.Counter(kTlsFailures, static_cast<double>(scrape.tls_failures));
  for (const auto& [certificate, seconds] : scrape.certificate_seconds) {
    page.Gauge(kCertificateExpires, seconds, {{"certificate", certificate}});
  }
  for (const auto& [status, count] : scrape.http_refusals) {
    page.Counter(kHttpRefusals, static_cast<double>(count), {{"status", std::to_string(status)}});
  }
  if (scrape.ahead_of_server) {
    page.Gauge(kServerClock, static_cast<double>(scrape.ahead_of_server->count()) / 1000.0);
  }
  page.Gauge(kBuildInfo, 1, {{"version", scrape.version}});
}

void AddProcess(const ProcessFacts& process, Page& page) {
  page.Gauge(kProcessRss, static_cast<double>(process.resident_bytes));
  page.Gauge(kProcessVirtual, static_cast<double>(process.virtual_bytes));
  page.Counter(kProcessCpu, process.cpu_seconds);
  page.Gauge(kProcessFds, static_cast<double>(process.open_fds));
  page.Gauge(kProcessMaxFds, static_cast<double>(process.max_fds));
  page.Gauge(kProcessStart, process.start_seconds);
}

}  // namespace

// API servers give a webhook some seconds, and it has microseconds to spend.
class ReviewCounters {
 public:
  explicit ReviewCounters(prometheus::Registry& registry)
      : reviews_(CounterFamily(registry, kReviews)) {
    auto& durations = prometheus::BuildHistogram()
                          .Name(kReviewDuration.name)
                          .Help(kReviewDuration.help)
                          .Register(registry);
    const std::string none = Code(Reason::kNone);
    for (std::size_t webhook = 0; webhook < kWebhooks; ++webhook) {
      Of(webhook, ReviewOutcome::kAllowed, none);
      Of(webhook, ReviewOutcome::kError, std::string(kMalformedReview));
      if (webhook == static_cast<std::size_t>(Webhook::kMutate)) {
        Of(webhook, ReviewOutcome::kChanged, none);
        Of(webhook, ReviewOutcome::kRefused, Code(Reason::kBadAmount));
      } else if (webhook == static_cast<std::size_t>(Webhook::kEdits)) {
        Of(webhook, ReviewOutcome::kRefused, std::string(kEvicts));
      } else {
        Of(webhook, ReviewOutcome::kRefused, std::string(kForgedResult));
        for (const Reason reason : kRequestReasons) {
          Of(webhook, ReviewOutcome::kRefused, Code(reason));
        }
      }
      durations_[webhook] = &durations.Add({{"webhook", kWebhookNames[webhook]}}, kBuckets);
    }
  }

  void Count(Webhook webhook, ReviewOutcome outcome, std::string_view reason,
             std::chrono::nanoseconds took) {
    const auto row = static_cast<std::size_t>(webhook);
    Of(row, outcome, std::string(reason)).Increment();
    durations_[row]->Observe(std::chrono::duration<double>(took).count());
  }

 private:
  static std::string Code(Reason reason) { return ReasonCode(static_cast<std::size_t>(reason)); }

  prometheus::Counter& Of(std::size_t webhook, ReviewOutcome outcome, const std::string& reason) {
    return reviews_.Add({{"webhook", kWebhookNames[webhook]},
                         {"outcome", kReviewOutcomeNames[static_cast<std::size_t>(outcome)]},
                         {"reason", reason}});
  }

  prometheus::Family<prometheus::Counter>& reviews_;
  std::array<prometheus::Histogram*, kWebhooks> durations_{};
};

// Labelled counters of closed sets are made here once, so that counting is an array look-up.
struct Metrics::Impl {
  prometheus::Registry registry;
  std::array<std::array<prometheus::Counter*, kResults>, kVerbs> requests{};
  std::array<prometheus::Histogram*, kVerbs> durations{};
  std::array<std::array<prometheus::Counter*, kReasons>, kVerbs> decisions{};
  std::array<prometheus::Counter*, kReasons> refused_nodes{};
  std::array<prometheus::Counter*, kReasons> observed{};
  std::array<prometheus::Counter*, kMigOutcomes> mig_changes{};
  std::array<prometheus::Counter*, kEmptyingOutcomes> emptyings{};
  prometheus::Counter* deletion_costs = nullptr;
  prometheus::Counter* failed_deletion_costs = nullptr;
  prometheus::Counter* bind_alarms = nullptr;
  prometheus::Counter* pokes = nullptr;
  ReclaimCounters reclaims{registry};
  ReviewCounters reviews{registry};

  Impl() {
    auto& request_family = CounterFamily(registry, kRequests);
    auto& decision_family = CounterFamily(registry, kDecisions);
    auto& duration_family = prometheus::BuildHistogram()
                                .Name(kRequestDuration.name)
                                .Help(kRequestDuration.help)
                                .Register(registry);
    for (std::size_t verb = 0; verb < kVerbs; ++verb) {
      const std::string name = kVerbNames[verb];
      for (std::size_t result = 0; result < kResults; ++result) {
        requests[verb][result] =
            &request_family.Add({{"verb", name}, {"result", kResultNames[result]}});
      }
      for (std::size_t reason = 0; reason < kReasons; ++reason) {
        decisions[verb][reason] =
            &decision_family.Add({{"verb", name}, {"reason", ReasonCode(reason)}});
      }
      durations[verb] = &duration_family.Add({{"verb", name}}, kBuckets);
    }
    auto& node_family = CounterFamily(registry, kRefusedNodes);
    auto& observed_family = CounterFamily(registry, kObserved);
    // Position 0 is Reason::kNone, which refuses nothing.
    for (std::size_t reason = 1; reason < kReasons; ++reason) {
      refused_nodes[reason] = &node_family.Add({{"reason", ReasonCode(reason)}});
      observed[reason] = &observed_family.Add({{"reason", ReasonCode(reason)}});
    }
    bind_alarms = &CounterFamily(registry, kBindAlarms).Add({});
    pokes = &CounterFamily(registry, kPokes).Add({});
    auto& cost_family = CounterFamily(registry, kDeletionCosts);
    deletion_costs = &cost_family.Add({{"outcome", "done"}});
    failed_deletion_costs = &cost_family.Add({{"outcome", "failed"}});
    auto& emptying_family = CounterFamily(registry, kEmptyings);
    for (std::size_t outcome = 0; outcome < kEmptyingOutcomes; ++outcome) {
      emptyings[outcome] = &emptying_family.Add({{"outcome", kEmptyingOutcomeNames[outcome]}});
    }
    auto& change_family = CounterFamily(registry, kMigChanges);
    for (std::size_t outcome = 0; outcome < kMigOutcomes; ++outcome) {
      mig_changes[outcome] = &change_family.Add({{"outcome", kMigOutcomeNames[outcome]}});
    }
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::CountRequest(Verb verb, Result result, std::chrono::nanoseconds took) {
  const auto row = static_cast<std::size_t>(verb);
  TRANCHE_CHECK_LT(row, kVerbs);
  TRANCHE_CHECK_LT(result, Result::kCount);
  impl_->requests[row][static_cast<std::size_t>(result)]->Increment();
  impl_->durations[row]->Observe(std::chrono::duration<double>(took).count());
}

void Metrics::CountDecision(Verb verb, Reason reason) {
  TRANCHE_CHECK_LT(verb, Verb::kCount);
  TRANCHE_CHECK_LT(reason, Reason::kCount);
  impl_->decisions[static_cast<std::size_t>(verb)][static_cast<std::size_t>(reason)]->Increment();
}

void Metrics::CountRefusedNodes(const NodesByReason& nodes) {
  for (std::size_t reason = 1; reason < nodes.size(); ++reason) {
    if (nodes[reason] > 0) {
      impl_->refused_nodes[reason]->Increment(static_cast<double>(nodes[reason]));
    }
  }
}

void Metrics::CountReview(Webhook webhook, ReviewOutcome outcome, std::string_view reason,
                          std::chrono::nanoseconds took) {
  TRANCHE_CHECK_LT(webhook, Webhook::kCount);
  TRANCHE_CHECK_LT(outcome, ReviewOutcome::kCount);
  impl_->reviews.Count(webhook, outcome, reason, took);
}

void Metrics::CountObserved(Reason reason) {
  TRANCHE_CHECK_GT(reason, Reason::kNone);
  TRANCHE_CHECK_LT(reason, Reason::kCount);
  impl_->observed[static_cast<std::size_t>(reason)]->Increment();
}

void Metrics::CountMigChange(MigOutcome outcome) {
  impl_->mig_changes[static_cast<std::size_t>(outcome)]->Increment();
}
void Metrics::CountEmptying(EmptyingOutcome outcome) {
  impl_->emptyings[static_cast<std::size_t>(outcome)]->Increment();
}
void Metrics::CountDeletionCost(bool done) {
  (done ? impl_->deletion_costs : impl_->failed_deletion_costs)->Increment();
}
void Metrics::CountBindAlarm() { impl_->bind_alarms->Increment(); }
void Metrics::CountPoke() { impl_->pokes->Increment(); }

void Metrics::CountPlan(const PlanOutcome& outcome, std::chrono::nanoseconds took) {
  impl_->reclaims.Planned(outcome, took);
}
void Metrics::CountReclaimedFrom(const Reclaim& reclaim, const std::string& leaf) {
  impl_->reclaims.ReclaimedFrom(reclaim, leaf);
}
void Metrics::CountEvicted(const Reclaim& reclaim, const ReclaimVictim& victim) {
  impl_->reclaims.Evicted(reclaim, victim);
}
void Metrics::CountEvictionFailure(EvictionOutcome outcome) {
  impl_->reclaims.EvictionFailed(outcome);
}
void Metrics::CountStart(const StartedWork& start) { impl_->reclaims.Started(start); }

std::string Metrics::Render(const Scrape& scrape) const {
  for (const QuotaView& quota : scrape.quotas) {
    if (quota.report.leaf) impl_->reclaims.Begin(quota.report.name);
  }
  std::vector<MetricFamily> families = impl_->registry.Collect();
  Page page(families);
  AddState(scrape, page);
  AddHolds(scrape, page);
  AddEdges(scrape, page);
  AddTeams(scrape, page);
  if (scrape.hami) AddHamiAliases(*scrape.hami, page);
  if (const std::optional<ProcessFacts> process = ReadProcessFacts()) AddProcess(*process, page);
  std::sort(families.begin(), families.end(),
            [](const MetricFamily& a, const MetricFamily& b) { return a.name < b.name; });
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace tranche::metrics
