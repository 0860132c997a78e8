#include "quota/preemption/reclaim_search.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "quota/preemption/reclaim_candidates.h"
#include "quota/preemption/reclaim_cost.h"
#include "quota/preemption/reclaim_region.h"
#include "quota/preemption/reclaim_rules.h"
#include "topology/base/int128.h"

namespace tranche {
namespace {

// Victims that are judged for quick answers, and to better those of regions with many candidates.
// The most promising regions get them. They bound the time of one plan, not its correctness: what
// they cut short is reported as not proven least.
constexpr int64_t kGreedyPushes = 60'000;
constexpr int64_t kImprovingPushes = 10'000;

// ---- what a region costs at least -------------------------------------------------------------

struct Holder {
  const VictimUnit* unit = nullptr;
  Charge charge;
};

// The fewest of the holders that free `need` in the dimension.
int64_t FewestFor(std::vector<Holder>& holders, int64_t need, int64_t Charge::*dimension) {
  std::ranges::sort(holders, [dimension](const Holder& a, const Holder& b) {
    return a.charge.*dimension > b.charge.*dimension;
  });
  int64_t fewest = 0;
  for (const Holder& holder : holders) {
    if (need <= 0) break;
    need -= holder.charge.*dimension;
    ++fewest;
  }
  return fewest;
}

// The least work that is lost for `need`, were units divisible.
int64_t LeastLostFor(std::vector<Holder>& holders, int64_t need, int64_t Charge::*dimension) {
  std::ranges::sort(holders, [dimension](const Holder& a, const Holder& b) {
    const int64_t a_charge = a.charge.*dimension;
    const int64_t b_charge = b.charge.*dimension;
    if (a_charge == 0 || b_charge == 0) return a_charge > b_charge;
    return Int128{a.unit->lost_gpu_ms} * b_charge < Int128{b.unit->lost_gpu_ms} * a_charge;
  });
  int64_t lost = 0;
  for (const Holder& holder : holders) {
    const int64_t charge = holder.charge.*dimension;
    if (need <= 0 || charge == 0) break;
    const int64_t part = std::min(need, charge);
    lost += MulDivFloor(holder.unit->lost_gpu_ms, part, charge);
    need -= part;
  }
  return lost;
}

// No plan costs less that takes at least one holder and frees short_by. Number by number, given the
// lowest highest rank that is enough: plans with a higher one cost more anyway.
PlanCost LowerBound(const ReclaimProblem& problem, const Charge& short_by,
                    const std::vector<int>& units) {
  std::vector<Holder> holders;
  for (const int unit : units) {
    const VictimUnit& victim = problem.units[static_cast<std::size_t>(unit)];
    holders.push_back({&victim, TotalCharge(victim)});
  }
  std::ranges::sort(holders, {}, [](const Holder& holder) { return holder.unit->rank; });
  PlanCost bound;
  Charge freed;
  for (const Holder& holder : holders) {
    freed = AddSaturating(freed, holder.charge);
    bound.rank = holder.unit->rank;
    if (freed.compute >= short_by.compute && freed.memory >= short_by.memory) break;
  }
  std::erase_if(holders, [&](const Holder& holder) { return holder.unit->rank > bound.rank; });

  Charge not_in_quota;
  int64_t without_break = 0;
  bound.lost_gpu_ms = holders.front().unit->lost_gpu_ms;
  for (const auto& [unit, charge] : holders) {
    if (unit->marks.state != QuotaState::kInQuota) {
      not_in_quota = AddSaturating(not_in_quota, charge);
    }
    without_break += unit->breaks ? 0 : 1;
    bound.lost_gpu_ms = std::min(bound.lost_gpu_ms, unit->lost_gpu_ms);
  }
  bound.pods = 1;
  for (int64_t Charge::*dimension : {&Charge::compute, &Charge::memory}) {
    const int64_t need = short_by.*dimension;
    bound.pods = std::max(bound.pods, FewestFor(holders, need, dimension));
    bound.lost_gpu_ms = std::max(bound.lost_gpu_ms, LeastLostFor(holders, need, dimension));
    bound.in_quota = std::max(bound.in_quota, need - not_in_quota.*dimension);
  }
  bound.gangs = std::max<int64_t>(0, bound.pods - without_break);
  return bound;
}

// ---- planning ---------------------------------------------------------------------------------

class Planner {
 public:
  Planner(const ReclaimProblem& problem, ReclaimGeometry& geometry, SearchLimits limits)
      : problem_(problem),
        only_by_choice_(limits.only_by_choice),
        geometry_(problem, geometry, limits.evaluations),
        rules_(problem, geometry_),
        candidates_(problem, rules_) {}

  ReclaimAnswer Plan(std::vector<std::size_t> regions);

 private:
  struct Task {
    std::size_t region = 0;
    bool fits = false;  // its devices, with nobody gone
    PlanCost bound;
  };

  bool FitsAsItIs();
  void PlanStep(const ReclaimRules::Step& step);
  std::vector<Task> TasksOf();
  std::size_t Load(const ReclaimRules::Step& step, const Task& task, RegionSearch& search);
  bool SettleFitting(const ReclaimRules::Step& step, const Task& first,
                     const std::vector<Task>& tasks);
  void Improve(const ReclaimRules::Step& step, const std::vector<Task>& tasks,
               RegionSearch& search);

  const ReclaimProblem& problem_;
  const bool only_by_choice_;
  SparingGeometry geometry_;
  ReclaimRules rules_;
  ReclaimCandidates candidates_;
  std::vector<std::size_t> regions_;
  std::vector<int> holders_;
  Incumbent incumbent_;
  bool proven_ = true;  // nothing that could matter was left out, in any step so far
  int64_t greedy_pushes_ = kGreedyPushes;
  int64_t improving_pushes_ = kImprovingPushes;
};

ReclaimAnswer Planner::Plan(std::vector<std::size_t> regions) {
  using Result = ReclaimAnswer::Result;
  regions_ = std::move(regions);
  ReclaimAnswer answer;
  if (FitsAsItIs()) {
    answer.result = Result::kFits;
  } else if (!geometry_.exhausted()) {
    for (const ReclaimRules::Step& step : rules_.Steps()) {
      if (only_by_choice_ && !step.by_choice) continue;
      PlanStep(step);
      if (incumbent_.plan.has_value() || geometry_.exhausted()) break;
    }
  }
  if (geometry_.exhausted()) proven_ = false;
  answer.evaluations = geometry_.evaluations();
  if (answer.result == Result::kFits) return answer;
  answer.result = proven_ ? Result::kImpossible : Result::kUnresolved;
  if (incumbent_.plan.has_value()) {
    answer.result = Result::kPlan;
    answer.plan = std::move(incumbent_.plan);
    answer.plan->optimal = proven_;
  }
  return answer;
}

bool Planner::FitsAsItIs() {
  return std::ranges::any_of(regions_, [&](std::size_t region) {
    return rules_.Admits(region, {}) && geometry_.Fits(region, {});
  });
}

// Regions that could have a plan, the most promising first.
std::vector<Planner::Task> Planner::TasksOf() {
  std::vector<Task> tasks;
  for (const std::size_t region : regions_) {
    if (!candidates_.Possible(region)) continue;
    Task task{.region = region, .fits = geometry_.Fits(region, {}), .bound = {}};
    if (!task.fits) {
      candidates_.Holders(region, task.fits, holders_);
      if (holders_.empty()) continue;
      const Charge& short_by = problem_.regions[region].short_by;
      task.bound = LowerBound(problem_, short_by, holders_);
    }
    tasks.push_back(std::move(task));
  }
  std::ranges::sort(tasks, [](const Task& a, const Task& b) {
    return std::tie(a.bound, a.region) < std::tie(b.bound, b.region);
  });
  return tasks;
}

// The number of candidates; 0 where not even all of them would make room for the devices.
std::size_t Planner::Load(const ReclaimRules::Step& step, const Task& task, RegionSearch& search) {
  candidates_.Holders(task.region, task.fits, holders_);
  if (!task.fits && !geometry_.Fits(task.region, holders_)) return 0;
  std::vector<int> units = holders_;
  candidates_.AppendOutside(task.region, holders_, units);
  const std::size_t count = units.size();
  search.Load(step, task.region, std::move(units), Collateral::kCounts);
  return count;
}

void Planner::PlanStep(const ReclaimRules::Step& step) {
  candidates_.Start(step);
  const std::vector<Task> tasks = TasksOf();
  RegionSearch search(problem_, rules_, geometry_, incumbent_);
  std::vector<std::optional<bool>> settled(problem_.regions.size());  // by kind
  std::vector<Task> open;
  for (const Task& task : tasks) {
    if (geometry_.exhausted() || incumbent_.BeatsNumbers(task.bound)) break;
    // Where the devices fit, these steps ask what steps before them have asked.
    if (task.fits && (step.with_teamless || step.by_choice)) continue;
    if (candidates_.IsCut(task.region)) proven_ = false;
    if (task.fits) {
      std::optional<bool>& kind = settled[candidates_.KindOf(task.region)];
      if (!kind.has_value()) kind = SettleFitting(step, task, tasks);
      if (*kind) continue;
    }
    if (greedy_pushes_ <= 0 &&
        candidates_.OutsideCount(task.region) > static_cast<std::size_t>(kExactUnits)) {
      proven_ = false;
      continue;
    }
    const std::size_t count = Load(step, task, search);
    if (count == 0) continue;
    search.Greedy(greedy_pushes_);
    if (count <= static_cast<std::size_t>(kExactUnits)) {
      search.Exhaust();
    } else {
      open.push_back(task);
    }
  }
  Improve(step, open, search);
}

// Regions of one kind where the devices fit differ only in collateral. The cheapest victims without
// regard to it are the answer wherever they cause none; false if that is nowhere.
bool Planner::SettleFitting(const ReclaimRules::Step& step, const Task& first,
                            const std::vector<Task>& tasks) {
  Incumbent anywhere;
  RegionSearch search(problem_, rules_, geometry_, anywhere);
  std::vector<int> units;
  candidates_.AppendOutside(first.region, {}, units);
  const bool exact = units.size() <= static_cast<std::size_t>(kExactUnits);
  search.Load(step, first.region, std::move(units), Collateral::kIgnored);
  search.Greedy(greedy_pushes_);
  if (exact) {
    search.Exhaust();
  } else if (improving_pushes_ <= 0 || !search.ExhaustWithin(improving_pushes_)) {
    proven_ = false;
  }
  if (!anywhere.plan.has_value()) return true;
  for (const Task& task : tasks) {
    if (!task.fits || candidates_.KindOf(task.region) != candidates_.KindOf(first.region)) continue;
    const bool collateral = std::ranges::any_of(anywhere.plan->victims, [&](int unit) {
      return CollateralOf(problem_.units[static_cast<std::size_t>(unit)], task.region) > 0;
    });
    if (collateral) continue;
    anywhere.plan->region = task.region;
    incumbent_.Offer(*std::move(anywhere.plan));
    return true;
  }
  return false;
}

void Planner::Improve(const ReclaimRules::Step& step, const std::vector<Task>& tasks,
                      RegionSearch& search) {
  for (const Task& task : tasks) {
    if (geometry_.exhausted() || incumbent_.BeatsNumbers(task.bound)) return;
    if (improving_pushes_ > 0) Load(step, task, search);
    if (improving_pushes_ <= 0 || !search.ExhaustWithin(improving_pushes_)) proven_ = false;
  }
}

}  // namespace

ReclaimAnswer PlanReclaim(const ReclaimProblem& problem, ReclaimGeometry& geometry,
                          SearchLimits limits) {
  std::vector<std::size_t> regions(problem.regions.size());
  std::iota(regions.begin(), regions.end(), std::size_t{0});
  return Planner(problem, geometry, limits).Plan(std::move(regions));
}

ReclaimAnswer PlanReclaimIn(const ReclaimProblem& problem, std::size_t region,
                            ReclaimGeometry& geometry, SearchLimits limits) {
  return Planner(problem, geometry, limits).Plan({region});
}

bool StillHolds(const ReclaimProblem& problem, ReclaimRule rule, std::size_t region,
                std::span<const int> victims, ReclaimGeometry& geometry) {
  ReclaimRules rules(problem, geometry);
  return (victims.empty() || rules.Permits(rules.StepFor(rule, victims), region, victims)) &&
         rules.Admits(region, victims) && geometry.Fits(region, victims);
}

PlanCost CostOf(const ReclaimProblem& problem, std::size_t region, std::span<const int> victims) {
  ReclaimTally tally(problem, region);
  for (const int victim : victims) tally.Push(victim);
  PlanCost cost = tally.numbers();
  cost.order = LastTies(problem, victims);
  return cost;
}

}  // namespace tranche
