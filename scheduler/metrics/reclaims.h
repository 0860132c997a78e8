// Counters of planning and of evictions. Internal to this folder.
//
// Thread rule: any thread.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <chrono>

#include "scheduler/metrics/metrics.h"

namespace tranche::metrics {

class ReclaimCounters {
 public:
  // The registry must outlive this.
  explicit ReclaimCounters(prometheus::Registry& registry);

  // A quota's own counters begin at zero: what a rate first sees at one, it does not count.
  void Begin(const std::string& leaf);
  void Planned(const PlanOutcome& outcome, std::chrono::nanoseconds took);
  void ReclaimedFrom(const Reclaim& reclaim, const std::string& leaf);
  void Evicted(const Reclaim& reclaim, const ReclaimVictim& victim);
  void EvictionFailed(EvictionOutcome outcome);
  void Started(const StartedWork& start);

 private:
  static constexpr std::size_t kResults =
      static_cast<std::size_t>(PlanOutcome::Result::kUnresolved) + 1;
  static constexpr std::size_t kOutcomes = static_cast<std::size_t>(EvictionOutcome::kFailed) + 1;

  std::array<prometheus::Histogram*, kResults> durations_{};
  prometheus::Counter* optimal_;
  prometheus::Counter* heuristic_;
  prometheus::Counter* unresolved_;
  std::array<prometheus::Counter*, kOutcomes> failures_{};  // of those that are none: nullptr
  prometheus::Histogram* nominal_waits_;
  prometheus::Family<prometheus::Histogram>& waits_;  // by quota and class
  // By pairs of quotas, and by quota and rule: a series appears with its first count.
  prometheus::Family<prometheus::Counter>& reclaims_;
  prometheus::Family<prometheus::Counter>& evicted_;
  // By quota.
  prometheus::Family<prometheus::Counter>& lost_work_;
  prometheus::Family<prometheus::Counter>& again_;
};

}  // namespace tranche::metrics
