#include "bench/mig/simulation.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace tranche::bench {
namespace {

class Run {
 public:
  Run(int gpus, MigPolicy& policy) : policy_(policy), fleet_(BenchSpace(), gpus) {}

  void Arrive(const MigArrival& arrival) {
    RemoveUntil(arrival.at);
    const auto begin = std::chrono::steady_clock::now();
    const std::optional<MigRoom> room = policy_.Choose(fleet_, arrival.kind, arrival.at);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    figures_.seconds += took.count();
    ++figures_.decisions;
    const bool measured = arrival.at >= kMigMeasuredFrom;
    figures_.arrived[arrival.kind] += measured;
    if (!room) return;
    figures_.accepted[arrival.kind] += measured;
    if (measured) figures_.moves += static_cast<int64_t>(room->moves.size());
    departures_.emplace(arrival.leaves, fleet_.Place(BenchProfiles()[arrival.kind], *room));
  }

  MigFigures Finish() {
    RemoveUntil(kMigEnd);
    const double time = kMigEnd - kMigMeasuredFrom;
    const double units = static_cast<double>(fleet_.layouts().size()) * BenchBoard().units;
    figures_.slots = 100 * unit_time_ / (time * units);
    figures_.gpus_in_use = gpu_time_ / time;
    return figures_;
  }

 private:
  void RemoveUntil(double now) {
    while (!departures_.empty() && departures_.top().first <= now) {
      AdvanceTo(departures_.top().first);
      fleet_.Remove(departures_.top().second);
      policy_.Left(departures_.top().second, departures_.top().first);
      departures_.pop();
    }
    AdvanceTo(now);
  }

  void AdvanceTo(double now) {
    const double time = now - std::max(now_, kMigMeasuredFrom);
    now_ = now;
    if (time <= 0) return;
    unit_time_ += time * fleet_.used_units();
    gpu_time_ += time * fleet_.gpus_in_use();
  }

  using Departure = std::pair<double, MigFleet::Id>;

  MigPolicy& policy_;
  MigFleet fleet_;
  std::priority_queue<Departure, std::vector<Departure>, std::greater<>> departures_;
  MigFigures figures_;
  double now_ = 0;
  double unit_time_ = 0;
  double gpu_time_ = 0;
};

}  // namespace

int64_t MigFigures::Arrived() const {
  return std::accumulate(arrived.begin(), arrived.end(), int64_t{0});
}

int64_t MigFigures::Accepted() const {
  return std::accumulate(accepted.begin(), accepted.end(), int64_t{0});
}

MigFigures SimulateMig(const std::vector<MigArrival>& arrivals, int gpus, MigPolicy& policy) {
  Run run(gpus, policy);
  for (const MigArrival& arrival : arrivals) run.Arrive(arrival);
  return run.Finish();
}

}  // namespace tranche::bench
