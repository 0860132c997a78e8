// The rules of reclaim read literally and every set of victims tried: slow and obviously right.
//
// Takes QuotaTree's Check, Borrowed and View as given (they have an oracle of their own) and asks
// them of a copy of the tree for every question. Only tests use it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "quota/preemption/reclaim.h"
#include "quota/tree/charge.h"
#include "quota/tree/marking.h"
#include "quota/tree/quota_tree.h"
#include "test/property/marked_work.h"
#include "test/property/table_geometry.h"

namespace tranche {

class ReclaimOracle {
 public:
  struct Step {
    ReclaimRule rule = ReclaimRule::kNone;
    bool with_own = false;
    int level = 0;
    bool with_teamless = false;
    bool by_choice = false;
    friend bool operator==(const Step&, const Step&) = default;
  };
  enum class Result : uint8_t { kPlan, kFits, kImpossible };
  struct Answer {
    Result result = Result::kImpossible;
    Step step;
    std::size_t region = 0;
    std::vector<int> victims;
    PlanCost cost;
  };

  ReclaimOracle(const ReclaimProblem& problem, ReclaimGeometry& geometry)
      : problem_(problem), geometry_(geometry) {
    for (QuotaId id = problem.leaf; id != kNoQuota; id = problem.tree->parent(id)) {
      path_.push_back(id);
    }
    for (std::size_t region = 0; region < problem.regions.size(); ++region) all_.push_back(region);
  }

  Answer Solve() { return SolveIn(all_); }
  Answer SolveIn(const std::vector<std::size_t>& regions) {
    Answer answer;
    for (const std::size_t region : regions) {
      if (Holds(region, {})) {
        answer.result = Result::kFits;
        return answer;
      }
    }
    for (const Step& step : Steps()) {
      for (const std::size_t region : regions) Cheapest(step, region, answer);
      if (answer.result == Result::kPlan) return answer;
    }
    return answer;
  }

  std::vector<Step> Steps() const {
    const int top = static_cast<int>(path_.size()) - 1;
    std::vector<Step> steps;
    const auto levels = [&](Step step) {
      for (step.level = 1; step.level <= top; ++step.level) steps.push_back(step);
    };
    steps.push_back({ReclaimRule::kR0});
    for (const bool teamless : {false, true}) {
      levels({.rule = ReclaimRule::kR1, .with_teamless = teamless});
      steps.push_back({.rule = ReclaimRule::kR2a, .with_teamless = teamless});
      levels({.rule = ReclaimRule::kR1, .with_own = true, .with_teamless = teamless});
      steps.push_back({.rule = ReclaimRule::kR2b, .with_teamless = teamless});
      levels({.rule = ReclaimRule::kR3, .with_teamless = teamless});
      if (!teamless) levels({.rule = ReclaimRule::kR5});
    }
    if (problem_.held.empty()) return steps;
    levels({.rule = ReclaimRule::kR1, .with_teamless = true, .by_choice = true});
    levels({.rule = ReclaimRule::kR1, .with_own = true, .with_teamless = true, .by_choice = true});
    return steps;
  }

  // Devices and quota suffice with the victims gone.
  bool Holds(std::size_t region, const std::vector<int>& victims) {
    if (!geometry_.Fits(region, victims)) return false;
    QuotaTree tree = Without(*problem_.tree, victims);
    for (const LineCharge& part : problem_.regions[region].parts) {
      if (tree.Check(problem_.leaf, part.line, part.charge).refusal != QuotaRefusal::kNone) {
        return false;
      }
      tree.Add(problem_.leaf, part.line, part.charge);
    }
    return true;
  }

  bool Permits(const Step& step, std::size_t region, const std::vector<int>& victims) {
    for (const int victim : victims) {
      if (!Named(step, region, victim)) return false;
    }
    if (!RespectsGangs(victims)) return false;
    if (!WithinEvictions(step, victims)) return false;
    if (step.rule == ReclaimRule::kR1) return PermitsR1(step, region, victims);
    if (step.rule == ReclaimRule::kR5) return PermitsR5(region, victims);
    return true;
  }

  // How many levels up the common ancestor is: 0 the preemptor's leaf; -1: there is none.
  int Level(QuotaId leaf) const {
    for (QuotaId id = leaf; id != kNoQuota; id = problem_.tree->parent(id)) {
      const auto at = std::find(path_.begin(), path_.end(), id);
      if (at != path_.end()) return static_cast<int>(at - path_.begin());
    }
    return -1;
  }

  PlanCost Cost(std::size_t region, const std::vector<int>& victims) const {
    PlanCost cost;
    std::map<int, int64_t> evicted;  // by budget
    Charge freed;
    for (const int victim : victims) {
      const VictimUnit& unit = Unit(victim);
      int64_t here = 0;
      for (const VictimPod& pod : unit.pods) {
        for (const int budget : pod.budgets) ++evicted[budget];
        if (pod.region == region) ++here;
      }
      const auto pods = static_cast<int64_t>(unit.pods.size());
      cost.rank = std::max<std::optional<int64_t>>(cost.rank, unit.rank);
      if (unit.marks.state == QuotaState::kInQuota) cost.in_quota += GpuEquivalents(Total(unit));
      if (unit.breaks) ++cost.gangs;
      if (here > 0) cost.collateral += pods - here;
      cost.lost_gpu_ms += unit.lost_gpu_ms;
      cost.pods += pods;
      freed = Plus(freed, Total(unit));
      cost.order.emplace_back(-unit.start.time_since_epoch(), unit.key);
    }
    for (const auto& [budget, pods] : evicted) {
      const int64_t allowed = problem_.pdb_allowed[static_cast<std::size_t>(budget)];
      cost.pdb_violations += std::max<int64_t>(0, pods - allowed);
    }
    const int64_t wanted = GpuEquivalents(Wanted(region, kAnyLine));
    cost.surplus = std::max<int64_t>(0, GpuEquivalents(freed) - wanted);
    std::sort(cost.order.begin(), cost.order.end());
    return cost;
  }

  QuotaTree Without(QuotaTree tree, const std::vector<int>& victims) const {
    for (const int victim : victims) {
      if (Unit(victim).leaf == kNoQuota) continue;
      for (const LineCharge& part : Unit(victim).parts) {
        tree.Remove(Unit(victim).leaf, part.line, part.charge);
      }
    }
    return tree;
  }

  // Spare pods: no more than the gang may lose, and none beside the whole gang.
  bool RespectsGangs(const std::vector<int>& victims) const {
    std::map<std::size_t, int> spares;
    for (const int victim : victims) {
      if (Unit(victim).spare_of) ++spares[*Unit(victim).spare_of];
    }
    for (const auto& [gang, count] : spares) {
      if (count > problem_.spare_left[gang]) return false;
      for (const int victim : victims) {
        if (Unit(victim).whole_of == gang) return false;
      }
    }
    return true;
  }

 private:
  static Charge Plus(const Charge& a, const Charge& b) {
    return {a.compute + b.compute, a.memory + b.memory};
  }
  static Charge Total(const VictimUnit& unit) {
    Charge total;
    for (const LineCharge& part : unit.parts) total = Plus(total, part.charge);
    return total;
  }
  const VictimUnit& Unit(int unit) const { return problem_.units[static_cast<std::size_t>(unit)]; }
  bool AnyLimited() const { return problem_.tree->Limits(problem_.leaf, kAnyLine); }

  // What the preemptor is charged on a line; a unit likewise. `any` carries everything.
  static Charge On(const std::vector<LineCharge>& parts, LineId line) {
    Charge sum;
    for (const LineCharge& part : parts) {
      if (line == kAnyLine || part.line == line) sum = Plus(sum, part.charge);
    }
    return sum;
  }
  Charge Wanted(std::size_t region, LineId line) const {
    return On(problem_.regions[region].parts, line);
  }
  static std::vector<LineId> LinesOf(const std::vector<LineCharge>& parts) {
    std::vector<LineId> lines = {kAnyLine};
    for (const LineCharge& part : parts) {
      if (part.line != kNoLine) lines.push_back(part.line);
    }
    return lines;
  }
  QuotaTree Placed(QuotaTree tree, std::size_t region) const {
    for (const LineCharge& part : problem_.regions[region].parts) {
      tree.Add(problem_.leaf, part.line, part.charge);
    }
    return tree;
  }

  bool HasLimitedModel(const VictimUnit& unit) const {
    return std::any_of(unit.parts.begin(), unit.parts.end(), [&](const LineCharge& part) {
      return problem_.tree->Limits(unit.leaf, part.line);
    });
  }
  bool OnLimitedModel(std::size_t region) const {
    const std::vector<LineCharge>& parts = problem_.regions[region].parts;
    return std::any_of(parts.begin(), parts.end(), [&](const LineCharge& part) {
      return problem_.tree->Limits(problem_.leaf, part.line);
    });
  }
  bool InQuotaOnModel(const VictimUnit& unit) const {
    return HasLimitedModel(unit) && unit.marks.in_model;
  }
  // In quota on no limited line.
  bool IsBorrowed(const VictimUnit& unit) const {
    return !InQuotaOnModel(unit) && !(AnyLimited() && unit.marks.in_any);
  }

  // With the preemptor placed, does its leaf borrow in a dimension it is charged in?
  bool BorrowsIn(const QuotaTree& placed, std::size_t region, LineId line) const {
    const Charge wanted = Wanted(region, line);
    const Charge borrowed = placed.Borrowed(problem_.leaf, line);
    return std::any_of(std::begin(kDimensions), std::end(kDimensions), [&](Dimension d) {
      return PartOf(wanted, d) > 0 && PartOf(borrowed, d) > 0;
    });
  }
  bool BorrowsNothing(const QuotaTree& placed, std::size_t region,
                      const std::vector<LineId>& lines) const {
    return std::none_of(lines.begin(), lines.end(),
                        [&](LineId line) { return BorrowsIn(placed, region, line); });
  }

  enum class Entitled : uint8_t { kNo, kFully, kByAny };
  Entitled Entitlement(const QuotaTree& tree, std::size_t region) const {
    if (problem_.rank == 0) return Entitled::kNo;
    const QuotaTree placed = Placed(tree, region);
    const std::vector<LineId> lines = LinesOf(problem_.regions[region].parts);
    // Where nothing limits its model, all it can be entitled to is some of `any`.
    if (!AnyLimited() || OnLimitedModel(region)) {
      if (BorrowsNothing(placed, region, lines)) return Entitled::kFully;
    }
    const bool by_any = AnyLimited() && BorrowsNothing(placed, region, {kAnyLine});
    return by_any ? Entitled::kByAny : Entitled::kNo;
  }

  // Is this one unit a kind of victim that the text of the rule names?
  bool Named(const Step& step, std::size_t region, int victim) const {
    const VictimUnit& unit = Unit(victim);
    if (unit.leaf == kNoQuota) {
      return (step.rule == ReclaimRule::kR0 || step.with_teamless) && unit.rank < problem_.rank;
    }
    const int level = Level(unit.leaf);
    const bool in_quota = problem_.regions[region].marks.state == QuotaState::kInQuota;
    const bool other = level >= 1 && level <= step.level;
    const auto ancestor = [&] {
      return static_cast<std::size_t>(path_[static_cast<std::size_t>(level)]);
    };
    switch (step.rule) {
      case ReclaimRule::kR1:
        // Whether it may be taken from other leaves depends on the entitlement: PermitsR1.
        if (level == 0) {
          return step.with_own && NamedByR2a(unit, region) && (!step.by_choice || unit.held);
        }
        return other;
      case ReclaimRule::kR2a:
        return level == 0 && NamedByR2a(unit, region);
      case ReclaimRule::kR2b:
        return level == 0 && !in_quota && unit.rank < problem_.rank && IsBorrowed(unit);
      case ReclaimRule::kR3: {
        if (!other || in_quota || unit.rank >= problem_.rank || !IsBorrowed(unit)) return false;
        const auto& least = problem_.cross_leaf_min_rank;
        return ancestor() < least.size() && least[ancestor()].has_value() &&
               problem_.rank >= *least[ancestor()];
      }
      case ReclaimRule::kR5:
        if (!other || in_quota || unit.rank != problem_.rank || !IsBorrowed(unit)) return false;
        return ancestor() < problem_.fair_share.size() && problem_.fair_share[ancestor()] != 0;
      default:
        return false;
    }
  }
  bool NamedByR2a(const VictimUnit& unit, std::size_t region) const {
    if (problem_.regions[region].marks.state != QuotaState::kInQuota) return false;
    if (unit.rank >= problem_.rank || unit.own_rank_protected) return false;
    // A unit in quota through `any` alone does not take what is in quota on a model line.
    return OnLimitedModel(region) || !InQuotaOnModel(unit);
  }

  bool WithinEvictions(const Step& step, const std::vector<int>& victims) const {
    std::map<QuotaId, int64_t> pods;
    for (const int victim : victims) {
      if (Unit(victim).leaf == kNoQuota) continue;
      if (step.rule == ReclaimRule::kR1 && Level(Unit(victim).leaf) != 0) continue;
      pods[Unit(victim).leaf] += static_cast<int64_t>(Unit(victim).pods.size());
    }
    for (const auto& [leaf, count] : pods) {
      const auto at = static_cast<std::size_t>(leaf);
      if (at < problem_.evictions_left.size() && !problem_.evictions_left[at].Allows(count))
        return false;
    }
    return true;
  }

  bool PermitsR1(const Step& step, std::size_t region, const std::vector<int>& victims) {
    std::vector<int> own;  // and of no team
    std::vector<int> others;
    for (const int victim : victims) {
      (Level(Unit(victim).leaf) <= 0 ? own : others).push_back(victim);
    }
    if (others.empty()) return true;  // then it is R2a or R0 alone
    const QuotaTree before = Without(*problem_.tree, own);
    const Entitled entitled = Entitlement(before, region);
    if (entitled == Entitled::kNo) return false;
    std::vector<LineId> counted = {kAnyLine};
    if (entitled == Entitled::kFully) counted = LinesOf(problem_.regions[region].parts);
    const bool devices_lack = !geometry_.Fits(region, own);

    std::sort(others.begin(), others.end(), [&](int a, int b) {
      const auto key = [&](int unit) {
        return std::make_tuple(Level(Unit(unit).leaf), GpuEquivalents(Total(Unit(unit))),
                               Unit(unit).key);
      };
      return key(a) < key(b);
    });
    std::vector<int> gone = own;
    bool chosen = false;
    for (const int victim : others) {
      const VictimUnit& unit = Unit(victim);
      if (!MarkedAsBorrowed(unit, entitled)) {
        const bool here = std::any_of(unit.pods.begin(), unit.pods.end(),
                                      [&](const VictimPod& pod) { return pod.region == region; });
        if (!step.by_choice || !unit.held || !here || !devices_lack) return false;
        chosen = true;
      }
      const QuotaTree now = Without(*problem_.tree, gone);
      const QuotaTree placed = Placed(now, region);
      const int level = Level(unit.leaf);
      for (int below = 1; below < level; ++below) {
        const QuotaId quota = path_[static_cast<std::size_t>(below)];
        for (const LineId line : counted) {
          for (const auto dimension : kDimensions) {
            if (!QuotaLacks(before, region, line, dimension)) continue;
            if (PartOf(placed.Borrowed(quota, line), dimension) > 0) return false;
          }
        }
      }
      if (!GivesWhatLacks(before, now, region, unit, devices_lack, entitled == Entitled::kByAny)) {
        return false;
      }
      gone.push_back(victim);
      if (chosen && !LeavesTheirDue(gone, region, entitled)) return false;
    }
    return true;
  }

  bool MarkedAsBorrowed(const VictimUnit& unit, Entitled entitled) const {
    if (entitled == Entitled::kByAny) return !unit.marks.in_any && !InQuotaOnModel(unit);
    return HasLimitedModel(unit) ? !unit.marks.in_model : !unit.marks.in_any;
  }

  bool LeavesTheirDue(const std::vector<int>& gone, std::size_t region, Entitled entitled) const {
    std::map<std::pair<bool, int>, int64_t> risen;
    for (const LineId line : LinesOf(problem_.regions[region].parts)) {
      if (!problem_.tree->Limits(problem_.leaf, line)) continue;
      if (line != kAnyLine && entitled != Entitled::kFully) continue;
      const Charge wanted = Wanted(region, line);
      risen[{line == kAnyLine, -problem_.rank}] += wanted.compute + wanted.memory;
    }
    for (QuotaId leaf{0}; leaf < problem_.tree->size(); ++leaf) {
      bool chosen = false;
      bool through_any = entitled == Entitled::kByAny;
      bool loses = false;
      for (const int victim : gone) {
        if (Unit(victim).leaf != leaf) continue;
        loses = loses || Unit(victim).held.has_value();
        if (leaf == problem_.leaf) continue;
        chosen = chosen || !MarkedAsBorrowed(Unit(victim), entitled);
        through_any = through_any || !HasLimitedModel(Unit(victim));
      }
      if (!loses) continue;
      MarkedWork before = MarkedWithout(problem_, leaf, {});
      MarkedWork after = MarkedWithout(problem_, leaf, gone);
      for (const auto& [line, charge] : before.by_line) {
        if (!chosen || (line == kAnyLine && !through_any)) continue;
        for (const Dimension dimension : kDimensions) {
          if (PartOf(after.by_line[line], dimension) < PartOf(charge, dimension)) return false;
        }
      }
      for (const auto& [place, amount] : after.by_rank) risen[place] += amount;
      for (const auto& [place, amount] : before.by_rank) risen[place] -= amount;
    }
    for (const auto& [place, amount] : risen) {
      if (amount != 0) return amount > 0;
    }
    return false;
  }

  // Quota for the preemptor is short in this line alone.
  bool QuotaLacks(const QuotaTree& before, std::size_t region, LineId line,
                  Dimension dimension) const {
    if (PartOf(Wanted(region, line), dimension) == 0) return false;
    const QuotaTree placed = Placed(before, region);
    for (const QuotaLineView& view : placed.View(problem_.leaf)) {
      if (placed.FindLine(view.name) == line) return PartOf(view.available, dimension) < 0;
    }
    return false;
  }

  // The victim's branch is over nominal in something the victim has and the preemptor lacks.
  bool GivesWhatLacks(const QuotaTree& before, const QuotaTree& now, std::size_t region,
                      const VictimUnit& unit, bool devices_lack, bool only_any) const {
    const QuotaId ancestor = path_[static_cast<std::size_t>(Level(unit.leaf))];
    QuotaId branch = unit.leaf;
    while (problem_.tree->parent(branch) != ancestor) branch = problem_.tree->parent(branch);
    const bool holds_here = std::any_of(unit.pods.begin(), unit.pods.end(),
                                        [&](const VictimPod& pod) { return pod.region == region; });
    std::vector<LineId> lines = {kAnyLine};
    if (!only_any) lines = LinesOf(unit.parts);
    for (const LineId line : lines) {
      for (const auto dimension : kDimensions) {
        if (PartOf(On(unit.parts, line), dimension) == 0) continue;
        const bool quota_lacks = QuotaLacks(before, region, line, dimension);
        if (!quota_lacks && !(devices_lack && holds_here)) continue;
        if (unit.rank == 0 || PartOf(now.Borrowed(branch, line), dimension) > 0) return true;
      }
    }
    return false;
  }

  bool PermitsR5(std::size_t region, const std::vector<int>& victims) {
    const QuotaId leaf = Unit(victims.front()).leaf;
    for (const int victim : victims) {
      if (Unit(victim).leaf != leaf) return false;
    }
    const QuotaTree after = Placed(Without(*problem_.tree, victims), region);
    const int64_t theirs = Share(after, leaf);
    // No share is smaller than none: two leaves that borrow nothing would swap for ever.
    if (theirs == 0) return false;
    // a / wa <= 10/11 v / wv
    return 11 * Share(after, problem_.leaf) * Weight(leaf) <= 10 * theirs * Weight(problem_.leaf);
  }
  int64_t Share(const QuotaTree& tree, QuotaId leaf) const {
    int64_t share = 0;
    for (LineId line{0}; line <= LastLine(); ++line) {
      share = std::max(share, GpuEquivalents(tree.Borrowed(leaf, line)));
    }
    return share;
  }
  LineId LastLine() const {
    LineId last = kAnyLine;
    for (const char* model : {"h", "l"}) last = std::max(last, problem_.tree->FindLine(model));
    return last;
  }
  int64_t Weight(QuotaId leaf) const { return problem_.weights[static_cast<std::size_t>(leaf)]; }

  // Every set of units the rule names.
  void Cheapest(const Step& step, std::size_t region, Answer& answer) {
    std::vector<int> named;
    for (int unit = 0; unit < static_cast<int>(problem_.units.size()); ++unit) {
      if (Named(step, region, unit)) named.push_back(unit);
    }
    for (uint64_t set = 1; set < uint64_t{1} << named.size(); ++set) {
      std::vector<int> victims;
      for (std::size_t i = 0; i < named.size(); ++i) {
        if ((set >> i & 1) != 0) victims.push_back(named[i]);
      }
      if (!Holds(region, victims) || !Permits(step, region, victims)) continue;
      PlanCost cost = Cost(region, victims);
      if (answer.result == Result::kPlan && answer.cost <= cost) continue;
      answer = {Result::kPlan, step, region, victims, std::move(cost)};
    }
  }

  const ReclaimProblem& problem_;
  ReclaimGeometry& geometry_;
  std::vector<QuotaId> path_;  // the preemptor's leaf, then its ancestors
  std::vector<std::size_t> all_;
};

}  // namespace tranche
