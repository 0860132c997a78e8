#include "bench/tenants/reclaimer.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "quota/preemption/moment.h"
#include "quota/preemption/reclaim.h"
#include "quota/preemption/reclaim_search.h"
#include "quota/tree/marking.h"

namespace tranche::bench {
namespace {

constexpr int kRank = 1;  // all jobs are alike; rank 0 could claim nothing

Instant At(int64_t seconds) { return Instant(std::chrono::seconds(seconds)); }

WorkAtRisk RiskOf(const World& world, int id, int64_t now) {
  const JobState& state = world.state(id);
  WorkAtRisk work;
  work.charge = ChargeOfGpus(world.job(id).gpus);
  work.running = At(state.working);
  work.checkpoint = At(state.LastCheckpoint(now));
  work.cap = std::chrono::seconds(kCheckpointEvery);
  work.restart_overhead = std::chrono::seconds(kRestart);
  work.earlier_evictions = state.evictions;
  return work;
}

// Counts of free GPUs. A job of one node has a region a node; one of several has one region for
// all of them.
class CountGeometry final : public ReclaimGeometry {
 public:
  CountGeometry(const World& world, int gpus, const std::vector<int>& units)
      : world_(world), gpus_(gpus), units_(units) {}

  bool Fits(std::size_t region, std::span<const int> gone) override {
    if (gpus_ <= kGpusPerNode) return FitsNode(static_cast<int>(region), gone);
    const std::span<const int> now = world_.cluster().free();
    free_.assign(now.begin(), now.end());
    for (const int unit : gone) {
      for (const Part& part : PlacementOf(unit)) {
        free_[static_cast<std::size_t>(part.node)] += part.gpus;
      }
    }
    return FindPlace(free_, gpus_, 0, world_.cluster().size()).has_value();
  }

 private:
  const Placement& PlacementOf(int unit) const {
    return world_.state(units_[static_cast<std::size_t>(unit)]).placement;
  }

  bool FitsNode(int node, std::span<const int> gone) const {
    int free = world_.cluster().free()[static_cast<std::size_t>(node)];
    for (const int unit : gone) {
      for (const Part& part : PlacementOf(unit)) free += part.node == node ? part.gpus : 0;
    }
    return free >= gpus_;
  }

  const World& world_;
  int gpus_;
  const std::vector<int>& units_;  // jobs
  std::vector<int> free_;
};

// Jobs of other tenants that run, with what their tenants' nominal covers.
std::vector<std::pair<int, LineMarks>> Others(const World& world, int tenant) {
  std::map<int, std::vector<int>> by_tenant;
  for (const int id : world.running()) {
    if (world.job(id).tenant != tenant) by_tenant[world.job(id).tenant].push_back(id);
  }
  std::vector<std::pair<int, LineMarks>> marked;
  for (const auto& [other, jobs] : by_tenant) {
    std::vector<MarkUnit> units;
    for (const int id : jobs) {
      units.push_back({.key = world.job(id).name,
                       .rank = kRank,
                       .start = At(world.state(id).working),
                       .parts = {{world.line(), ChargeOfGpus(world.job(id).gpus)}}});
    }
    const std::vector<LineMarks> marks = MarkLines(units, [&](LineId line) {
      return line == world.line() ? world.tree().Nominal(world.leaf(other), line) : ChargeLimit();
    });
    for (std::size_t i = 0; i < jobs.size(); ++i) marked.emplace_back(jobs[i], marks[i]);
  }
  return marked;
}

VictimUnit UnitOf(const World& world, int id, const LineMarks& marks, bool one_node, int64_t now) {
  VictimUnit unit;
  unit.key = world.job(id).name;
  unit.leaf = world.leaf(world.job(id).tenant);
  unit.rank = kRank;
  unit.marks = marks;
  unit.parts = {{world.line(), ChargeOfGpus(world.job(id).gpus)}};
  for (const Part& part : world.state(id).placement) {
    unit.pods.push_back({one_node ? part.node : 0, {}});
  }
  unit.lost_gpu_ms = LostGpuMillis(RiskOf(world, id, now), std::nullopt, At(now));
  unit.start = At(world.state(id).working);
  return unit;
}

std::vector<ReclaimRegion> RegionsFor(const World& world, int gpus) {
  ReclaimRegion region;
  region.parts = {{world.line(), ChargeOfGpus(gpus)}};
  if (gpus > kGpusPerNode) return {region};
  std::vector<ReclaimRegion> regions;
  for (const int free : world.cluster().free()) {
    region.short_by = ChargeOfGpus(std::max(0, gpus - free));
    regions.push_back(region);
  }
  return regions;
}

}  // namespace

std::optional<Takeback> PlanTakeback(const World& world, int job, int64_t now, int64_t latest) {
  const int gpus = world.job(job).gpus;
  const bool one_node = gpus <= kGpusPerNode;
  ReclaimProblem problem;
  problem.tree = &world.tree();
  problem.leaf = world.leaf(world.job(job).tenant);
  problem.rank = kRank;
  problem.regions = RegionsFor(world, gpus);
  std::vector<int> ids;
  for (const auto& [id, marks] : Others(world, world.job(job).tenant)) {
    ids.push_back(id);
    problem.units.push_back(UnitOf(world, id, marks, one_node, now));
  }
  CountGeometry geometry(world, gpus, ids);
  const ReclaimAnswer answer = PlanReclaim(problem, geometry);
  if (!answer.plan) return std::nullopt;
  Takeback takeback;
  if (one_node) takeback.node = static_cast<int>(answer.plan->region);
  std::vector<WorkInTime> risks;
  for (const int unit : answer.plan->victims) {
    const int id = ids[static_cast<std::size_t>(unit)];
    takeback.victims.push_back(id);
    risks.push_back({RiskOf(world, id, now), std::nullopt, std::chrono::seconds(kCheckpointEvery)});
  }
  const std::optional<Instant> better =
      BetterMoment(risks, ChargeOfGpus(gpus), At(now), At(latest));
  if (better) takeback.better = better->time_since_epoch() / std::chrono::seconds(1);
  return takeback;
}

}  // namespace tranche::bench
