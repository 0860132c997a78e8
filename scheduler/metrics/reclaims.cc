#include "scheduler/metrics/reclaims.h"

#include <string>

#include "scheduler/metrics/names.h"
#include "scheduler/metrics/page.h"

namespace tranche::metrics {
namespace {

constexpr std::array<const char*, 5> kPlanResultNames = {"plan", "fits", "impossible", "blocked",
                                                         "unresolved"};

const prometheus::Histogram::BucketBoundaries kPlanBuckets = {
    0.5e-3, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5, 1.0};
// A free card is taken in a second; a guard lasts an hour at most.
const prometheus::Histogram::BucketBoundaries kWaitBuckets = {1,   5,   15,   30,   60,  120,
                                                              300, 600, 1800, 3600, 7200};

prometheus::Family<prometheus::Histogram>& HistogramFamily(prometheus::Registry& registry,
                                                           const Series& series) {
  return prometheus::BuildHistogram().Name(series.name).Help(series.help).Register(registry);
}

}  // namespace

ReclaimCounters::ReclaimCounters(prometheus::Registry& registry)
    : waits_(HistogramFamily(registry, kWait)),
      reclaims_(CounterFamily(registry, kReclaims)),
      evicted_(CounterFamily(registry, kEvictedPods)),
      lost_work_(CounterFamily(registry, kLostWork)),
      again_(CounterFamily(registry, kReevictions)) {
  static_assert(kPlanResultNames.size() == kResults);
  auto& durations = HistogramFamily(registry, kPlanDuration);
  for (std::size_t result = 0; result < kResults; ++result) {
    durations_[result] = &durations.Add({{"result", kPlanResultNames[result]}}, kPlanBuckets);
  }
  auto& searches = CounterFamily(registry, kPlanSearches);
  optimal_ = &searches.Add({{"quality", "optimal"}});
  heuristic_ = &searches.Add({{"quality", "heuristic"}});
  unresolved_ = &searches.Add({{"quality", "unresolved"}});
  auto& failures = CounterFamily(registry, kEvictionFailures);
  const auto failure = [&](EvictionOutcome outcome, const char* reason) {
    failures_[static_cast<std::size_t>(outcome)] = &failures.Add({{"reason", reason}});
  };
  failure(EvictionOutcome::kBlocked, "disruption_budget");
  failure(EvictionOutcome::kForbidden, "forbidden");
  failure(EvictionOutcome::kFailed, "failed");
  nominal_waits_ = &HistogramFamily(registry, kTimeToNominal).Add({}, kWaitBuckets);
}

void ReclaimCounters::Begin(const std::string& leaf) {
  lost_work_.Add({{"leaf", leaf}});
  again_.Add({{"leaf", leaf}});
}

void ReclaimCounters::Planned(const PlanOutcome& outcome, std::chrono::nanoseconds took) {
  durations_[static_cast<std::size_t>(outcome.result)]->Observe(
      std::chrono::duration<double>(took).count());
  if (outcome.result == PlanOutcome::Result::kPlan) {
    (outcome.optimal ? optimal_ : heuristic_)->Increment();
  } else if (outcome.result == PlanOutcome::Result::kUnresolved) {
    unresolved_->Increment();
  }
}

void ReclaimCounters::ReclaimedFrom(const Reclaim& reclaim, const std::string& leaf) {
  reclaims_
      .Add({{"rule", std::string(ReclaimRuleName(reclaim.rule))},
            {"from", leaf},
            {"to", reclaim.leaf}})
      .Increment();
}

void ReclaimCounters::Evicted(const Reclaim& reclaim, const ReclaimVictim& victim) {
  evicted_.Add({{"rule", std::string(ReclaimRuleName(reclaim.rule))}, {"leaf", victim.leaf}})
      .Increment();
  lost_work_.Add({{"leaf", victim.leaf}})
      .Increment(static_cast<double>(victim.lost_gpu_ms) / 1000.0);
  if (victim.again) again_.Add({{"leaf", victim.leaf}}).Increment();
}

void ReclaimCounters::EvictionFailed(EvictionOutcome outcome) {
  if (prometheus::Counter* const counter = failures_[static_cast<std::size_t>(outcome)]) {
    counter->Increment();
  }
}

void ReclaimCounters::Started(const StartedWork& start) {
  const double seconds = std::chrono::duration<double>(start.waited).count();
  waits_.Add({{"leaf", start.leaf}, {"class", start.workload_class}}, kWaitBuckets)
      .Observe(seconds);
  if (start.within_nominal) nominal_waits_->Observe(seconds);
}

}  // namespace tranche::metrics
