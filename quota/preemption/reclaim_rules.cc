#include "quota/preemption/reclaim_rules.h"

#include <algorithm>
#include <tuple>

#include "quota/preemption/reclaim_cost.h"
#include "topology/base/int128.h"

namespace tranche {
namespace {

// More than anybody uses, and far from the ends of the integers.
constexpr Charge kEverything{kSaturated / 2, kSaturated / 2};

bool IsCrossLeaf(ReclaimRule rule) {
  return rule == ReclaimRule::kR1 || rule == ReclaimRule::kR3 || rule == ReclaimRule::kR5;
}

// The unit's charge on the line; `any` is charged with everything.
Charge ChargeOn(const VictimUnit& unit, LineId line) {
  if (line == kAnyLine) return TotalCharge(unit);
  Charge sum;
  for (const LineCharge& part : unit.parts) {
    if (part.line == line) sum = AddSaturating(sum, part.charge);
  }
  return sum;
}

// Both have some of one dimension.
bool Meet(const Charge& left, const Charge& right) {
  return (left.compute > 0 && right.compute > 0) || (left.memory > 0 && right.memory > 0);
}

template <typename Values, typename Value>
Value ValueAt(const Values& values, QuotaId id, Value otherwise) {
  return id < values.size() ? static_cast<Value>(values[id]) : otherwise;
}

}  // namespace

ReclaimRules::ReclaimRules(const ReclaimProblem& problem, ReclaimGeometry& geometry)
    : problem_(problem), geometry_(geometry), trial_(*problem.tree) {
  kin_.resize(trial_.size());
  evicted_.resize(trial_.size());
  spares_.resize(problem.spare_left.size());
  wholes_.resize(problem.spare_left.size());
  sizes_.reserve(problem.units.size());
  for (const VictimUnit& unit : problem.units) sizes_.push_back(GpuEquivalents(TotalCharge(unit)));
  keys_ascend_ = std::ranges::is_sorted(problem.units, {}, &VictimUnit::key);
  if (!problem.held.empty()) marks_.emplace(problem);
  if (problem.leaf == kNoQuota) return;
  for (QuotaId id = problem.leaf; id != kNoQuota; id = trial_.parent(id)) path_.push_back(id);
  for (QuotaId id{0}; id < trial_.size(); ++id) {
    Kin kin;
    for (QuotaId at = id; at != kNoQuota; at = trial_.parent(at)) {
      const auto on_path = std::ranges::find(path_, at);
      if (on_path != path_.end()) {
        kin.level = static_cast<int>(on_path - path_.begin());
        break;
      }
      kin.branch = at;
    }
    kin_[id] = kin;
  }
  for (const QuotaLineView& view : trial_.View(path_.back())) {
    lines_.push_back(trial_.FindLine(view.name));
  }
}

// ---- who could be a victim --------------------------------------------------------------------

ReclaimRules::Kin ReclaimRules::KinOf(QuotaId id) const {
  return id == kNoQuota ? Kin{} : kin_[id];
}

bool ReclaimRules::InQuotaOnModel(const VictimUnit& unit) const {
  return unit.marks.in_model && std::ranges::any_of(unit.parts, [&](const LineCharge& part) {
           return trial_.Limits(unit.leaf, part.line);
         });
}

bool ReclaimRules::AsksLimitedModel(std::size_t region) const {
  return std::ranges::any_of(problem_.regions[region].parts, [&](const LineCharge& part) {
    return trial_.Limits(problem_.leaf, part.line);
  });
}

ReclaimRules::Standing ReclaimRules::StandingIn(std::size_t region) const {
  if (problem_.regions[region].marks.state != QuotaState::kInQuota) return Standing::kBorrows;
  return AsksLimitedModel(region) ? Standing::kInQuota : Standing::kInQuotaByAny;
}

bool ReclaimRules::IsBorrowed(const VictimUnit& unit) const {
  return unit.marks.state != QuotaState::kInQuota && !InQuotaOnModel(unit) &&
         !(unit.marks.in_any && trial_.Limits(unit.leaf, kAnyLine));
}

bool ReclaimRules::OwnLowerRank(const VictimUnit& unit) const {
  return unit.leaf == problem_.leaf && unit.leaf != kNoQuota && unit.rank < problem_.rank;
}

// By R0: what a team borrows is between teams for those who have one.
bool ReclaimRules::NobodyIsEntitledTo(const VictimUnit& unit) const {
  if (unit.leaf == kNoQuota) return true;
  return problem_.leaf == kNoQuota && IsBorrowed(unit);
}

QuotaId ReclaimRules::AncestorWith(const VictimUnit& unit) const {
  return path_[static_cast<std::size_t>(KinOf(unit.leaf).level.value())];
}

bool ReclaimRules::CrossLeafAllowed(const VictimUnit& unit) const {
  const QuotaId ancestor = AncestorWith(unit);
  const auto min_rank =
      ValueAt(problem_.cross_leaf_min_rank, ancestor, std::optional<int>(std::nullopt));
  return unit.rank < problem_.rank && min_rank.has_value() && problem_.rank >= *min_rank;
}

bool ReclaimRules::FairShareAllowed(const VictimUnit& unit) const {
  const QuotaId ancestor = AncestorWith(unit);
  return unit.rank == problem_.rank && ValueAt(problem_.fair_share, ancestor, char{0}) != 0;
}

// By R1, however it is marked.
bool ReclaimRules::CouldBeChosen(const VictimUnit& unit) const {
  return problem_.rank > 0 && KinOf(unit.leaf).branch != kNoQuota && unit.held;
}

// By R1, be the preemptor entitled in full or through `any` alone.
bool ReclaimRules::CouldReclaim(const VictimUnit& unit) const {
  if (problem_.rank <= 0 || KinOf(unit.leaf).branch == kNoQuota || InQuotaOnModel(unit)) {
    return false;
  }
  const bool has_model = std::ranges::any_of(
      unit.parts, [&](const LineCharge& part) { return trial_.Limits(unit.leaf, part.line); });
  return has_model || !unit.marks.in_any;
}

bool ReclaimRules::GoesFirst(const VictimUnit& unit) const {
  return unit.leaf == kNoQuota || (step_.with_own && unit.leaf == problem_.leaf);
}

bool ReclaimRules::Eligible(const Step& step, Standing standing, const VictimUnit& unit) const {
  if (step.rule != ReclaimRule::kR0 && unit.leaf == kNoQuota) {
    return step.with_teamless && unit.rank < problem_.rank;
  }
  const int level = KinOf(unit.leaf).level.value_or(0);
  const bool in_quota = standing != Standing::kBorrows;
  const bool near =
      unit.leaf != problem_.leaf && unit.leaf != kNoQuota && level >= 1 && level <= step.level;
  const bool own = in_quota && OwnLowerRank(unit) && !unit.own_rank_protected &&
                   (standing == Standing::kInQuota || !InQuotaOnModel(unit));
  switch (step.rule) {
    case ReclaimRule::kR0:
      return unit.rank < problem_.rank && NobodyIsEntitledTo(unit);
    case ReclaimRule::kR1:
      if (step.with_own && !in_quota) return false;
      if (step.with_own && own) return !step.by_choice || unit.held;
      return near && (CouldReclaim(unit) || (step.by_choice && CouldBeChosen(unit)));
    case ReclaimRule::kR2a:
      return own;
    case ReclaimRule::kR2b:
      return !in_quota && OwnLowerRank(unit) && IsBorrowed(unit);
    case ReclaimRule::kR3:
      return !in_quota && near && IsBorrowed(unit) && CrossLeafAllowed(unit);
    case ReclaimRule::kR5:
      return !in_quota && near && IsBorrowed(unit) && FairShareAllowed(unit);
    default:
      return false;
  }
}

// Of the step's own level; what is nearer belongs to steps before it. Of several rules together
// each has a part, or it is the question of another step.
bool ReclaimRules::HasVictims(const Step& step) const {
  bool own = !step.with_own;
  bool teamless = !step.with_teamless || step.by_choice;
  bool chosen = !step.by_choice;
  bool other = false;
  for (const VictimUnit& unit : problem_.units) {
    if (!Eligible(step, Standing::kInQuota, unit) && !Eligible(step, Standing::kBorrows, unit)) {
      continue;
    }
    if (unit.leaf == kNoQuota && step.rule != ReclaimRule::kR0) {
      teamless = true;
      continue;
    }
    if (step.with_own && unit.leaf == problem_.leaf) own = true;
    if (step.level == 0 || KinOf(unit.leaf).level == step.level) other = true;
    chosen = chosen || (unit.held && (InQuotaOnModel(unit) || unit.marks.in_any));
  }
  return own && teamless && chosen && other;
}

std::vector<ReclaimRules::Step> ReclaimRules::Steps() const {
  std::vector<Step> steps;
  const auto add = [&](Step step) {
    const int last = IsCrossLeaf(step.rule) ? static_cast<int>(path_.size()) - 1 : 0;
    for (step.level = IsCrossLeaf(step.rule) ? 1 : 0; step.level <= last; ++step.level) {
      if (HasVictims(step)) steps.push_back(step);
    }
  };
  add({.rule = ReclaimRule::kR0});
  if (path_.empty()) return steps;
  for (const bool teamless : {false, true}) {
    add({.rule = ReclaimRule::kR1, .with_teamless = teamless});
    add({.rule = ReclaimRule::kR2a, .with_teamless = teamless});
    add({.rule = ReclaimRule::kR1, .with_own = true, .with_teamless = teamless});
    add({.rule = ReclaimRule::kR2b, .with_teamless = teamless});
    add({.rule = ReclaimRule::kR3, .with_teamless = teamless});
    if (!teamless) add({.rule = ReclaimRule::kR5});
  }
  if (!marks_) return steps;
  add({.rule = ReclaimRule::kR1, .with_teamless = true, .by_choice = true});
  add({.rule = ReclaimRule::kR1, .with_own = true, .with_teamless = true, .by_choice = true});
  return steps;
}

ReclaimRules::Step ReclaimRules::StepFor(ReclaimRule rule, std::span<const int> victims) const {
  Step step{.rule = rule, .by_choice = rule == ReclaimRule::kR1 && marks_.has_value()};
  for (const int unit : victims) {
    const QuotaId leaf = UnitAt(unit).leaf;
    if (leaf == kNoQuota && rule != ReclaimRule::kR5) step.with_teamless = true;
    if (IsCrossLeaf(rule)) step.level = std::max(step.level, KinOf(leaf).level.value_or(0));
    if (rule == ReclaimRule::kR1 && leaf == problem_.leaf) step.with_own = true;
  }
  return step;
}

void ReclaimRules::Candidates(const Step& step, std::size_t region, std::vector<int>& units) {
  units.clear();
  const Standing standing = StandingIn(region);
  for (std::size_t i = 0; i < problem_.units.size(); ++i) {
    if (Eligible(step, standing, problem_.units[i])) units.push_back(static_cast<int>(i));
  }
  if (step.rule != ReclaimRule::kR1 || units.empty()) return;
  Start(step, region);
  DropOutOfReach(units);
}

// Those of R1 that even with all nearer candidates gone are too far away, or all of them where the
// preemptor is not entitled then.
void ReclaimRules::DropOutOfReach(std::vector<int>& units) {
  const auto take_level = [&](int level, int sign) {
    for (const int unit : units) {
      if (KinOf(UnitAt(unit).leaf).level == level) Take(UnitAt(unit), sign);
    }
  };
  take_level(0, -1);
  entitlement_ = FindEntitlement();
  FindLacking();
  int reach = entitlement_ == Entitlement::kNone ? 0 : 1;
  for (; reach >= 1 && reach < step_.level; ++reach) {
    take_level(reach, -1);
    if (!PathIsClear(reach + 1)) break;
  }
  const int taken = std::min(reach, step_.level - 1);
  for (int level = 0; level <= taken; ++level) take_level(level, +1);
  if (reach == 0) units.clear();
  std::erase_if(units, [&](int unit) { return KinOf(UnitAt(unit).leaf).level > reach; });
}

bool ReclaimRules::Before(int left, int right) const {
  // A plain number: comparing optionals here was a twentieth of a plan.
  const auto rank = [&](int unit) {
    return std::pair(KinOf(UnitAt(unit).leaf).level.value_or(-1),
                     sizes_[static_cast<std::size_t>(unit)]);
  };
  const auto left_rank = rank(left);
  const auto right_rank = rank(right);
  if (left_rank != right_rank) return left_rank < right_rank;
  return keys_ascend_ ? left < right : UnitAt(left).key < UnitAt(right).key;
}

// ---- sets of victims --------------------------------------------------------------------------

bool ReclaimRules::Permits(const Step& step, std::size_t region, std::span<const int> victims) {
  std::vector<int> ordered(victims.begin(), victims.end());
  std::ranges::sort(ordered, [&](int left, int right) { return Before(left, right); });
  Start(step, region);
  return std::ranges::all_of(ordered, [&](int unit) { return Push(unit); });
}

bool ReclaimRules::Admits(std::size_t region, std::span<const int> gone) {
  if (path_.empty()) return true;
  Start({}, region);
  for (const int unit : gone) Take(UnitAt(unit), -1);
  const bool admitted = Admitted();
  for (const int unit : gone) Take(UnitAt(unit), +1);
  return admitted;
}

void ReclaimRules::Start(const Step& step, std::size_t region) {
  while (!pushed_.empty()) Pop();
  judged_ = false;
  step_ = step;
  if (!placed_ || region != region_) Place(region);
}

void ReclaimRules::Place(std::size_t region) {
  if (path_.empty()) {
    region_ = region;
    placed_ = true;
    return;
  }
  if (placed_) {
    for (const LineCharge& part : Region().parts) {
      trial_.Remove(problem_.leaf, part.line, part.charge);
    }
  }
  region_ = region;
  placed_ = true;
  asked_.assign(1, {kAnyLine, {}});
  for (const LineCharge& part : Region().parts) {
    trial_.Add(problem_.leaf, part.line, part.charge);
    asked_.front().charge = AddSaturating(asked_.front().charge, part.charge);
    if (part.line > kAnyLine) asked_.push_back(part);
  }
}

// -1 takes the unit's charge away, +1 gives it back.
void ReclaimRules::Take(const VictimUnit& unit, int sign) {
  if (unit.leaf == kNoQuota) return;
  for (const LineCharge& part : unit.parts) {
    if (sign < 0) {
      trial_.Remove(unit.leaf, part.line, part.charge);
    } else {
      trial_.Add(unit.leaf, part.line, part.charge);
    }
  }
}

// With the preemptor placed, nothing is below zero where it asks for something: what
// QuotaTree::Check says before it is placed.
bool ReclaimRules::Admitted() const {
  return path_.empty() || std::ranges::all_of(asked_, [&](const LineCharge& asked) {
           const ChargeLimit left = trial_.Available(problem_.leaf, asked.line);
           return (asked.charge.compute == 0 || left.compute >= 0) &&
                  (asked.charge.memory == 0 || left.memory >= 0);
         });
}

bool ReclaimRules::WithinSpare(const VictimUnit& unit) const {
  if (const std::optional<std::size_t> gang = unit.spare_of) {
    if (spares_[*gang] >= problem_.spare_left[*gang] || wholes_[*gang] > 0) return false;
  }
  return !unit.whole_of || spares_[*unit.whole_of] == 0;
}

bool ReclaimRules::WithinEvictions(const VictimUnit& unit) const {
  if (unit.leaf == kNoQuota) return true;
  if (step_.rule == ReclaimRule::kR1 && unit.leaf != problem_.leaf) return true;
  const auto pods = static_cast<int64_t>(unit.pods.size());
  return ValueAt(problem_.evictions_left, unit.leaf, Limit()).Allows(evicted_[unit.leaf] + pods);
}

bool ReclaimRules::Push(int unit) {
  const VictimUnit& victim = UnitAt(unit);
  if (!Eligible(step_, StandingIn(region_), victim) || !WithinSpare(victim) ||
      !WithinEvictions(victim)) {
    return false;
  }
  const bool reclaimed = step_.rule == ReclaimRule::kR1 && !GoesFirst(victim);
  if (reclaimed && !MayReclaim(victim)) return false;
  const bool fair = step_.rule == ReclaimRule::kR5;
  if (fair && !pushed_.empty() && UnitAt(pushed_.front()).leaf != victim.leaf) return false;

  Take(victim, -1);
  pushed_.push_back(unit);
  if (victim.leaf != kNoQuota) evicted_[victim.leaf] += static_cast<int64_t>(victim.pods.size());
  if (GoesFirst(victim)) ++first_;
  if (step_.by_choice && victim.held) marks_->Take(victim, -1);
  if (victim.spare_of) ++spares_[*victim.spare_of];
  if (victim.whole_of) ++wholes_[*victim.whole_of];
  const bool due = !step_.by_choice || !reclaimed || LeavesTheirDue();
  if (due && (!fair || StaysFair(victim.leaf))) return true;
  Pop();
  return false;
}

void ReclaimRules::Pop() {
  const VictimUnit& victim = UnitAt(pushed_.back());
  pushed_.pop_back();
  Take(victim, +1);
  if (victim.leaf != kNoQuota) evicted_[victim.leaf] -= static_cast<int64_t>(victim.pods.size());
  if (GoesFirst(victim)) --first_;
  if (step_.by_choice && victim.held) marks_->Take(victim, +1);
  if (victim.spare_of) --spares_[*victim.spare_of];
  if (victim.whole_of) --wholes_[*victim.whole_of];
}

// ---- R1 ---------------------------------------------------------------------------------------

// What R1 asks once those that go first are gone and nobody else is.
void ReclaimRules::Judge() {
  if (judged_ && std::ranges::equal(judged_first_, pushed_)) return;
  judged_ = true;
  judged_first_ = pushed_;
  entitlement_ = FindEntitlement();
  FindLacking();
  std::vector<int> gone = pushed_;
  std::ranges::sort(gone);
  devices_lacking_ = !geometry_.Fits(region_, gone);
}

bool ReclaimRules::BorrowsNothing(QuotaId id, LineId line) const {
  const auto asked = std::ranges::find(asked_, line, &LineCharge::line);
  return !Meet(asked->charge, trial_.Borrowed(id, line));
}

ReclaimRules::Entitlement ReclaimRules::FindEntitlement() const {
  const bool all = std::ranges::all_of(
      asked_, [&](const LineCharge& asked) { return BorrowsNothing(problem_.leaf, asked.line); });
  // Through a line that nothing limits nobody is entitled.
  const bool any_limited = trial_.Limits(problem_.leaf, kAnyLine);
  if (all && (AsksLimitedModel(region_) || !any_limited)) return Entitlement::kFull;
  return any_limited && BorrowsNothing(problem_.leaf, kAnyLine) ? Entitlement::kAnyOnly
                                                                : Entitlement::kNone;
}

void ReclaimRules::FindLacking() {
  lacking_.clear();
  const auto note = [&](const LineCharge& asked) {
    if (!trial_.Limits(problem_.leaf, asked.line)) return;
    const ChargeLimit left = trial_.Available(problem_.leaf, asked.line);
    const auto lacking = [](int64_t wanted, Limit rest) {
      return wanted > 0 ? std::max<int64_t>(0, -rest.saturated()) : 0;
    };
    const Charge short_by{lacking(asked.charge.compute, left.compute),
                          lacking(asked.charge.memory, left.memory)};
    if (short_by != Charge{}) lacking_.push_back({asked.line, short_by});
  };
  note(asked_.front());
  // Available tells the smaller of a model's line and `any`: with room on `any` it is the model's.
  trial_.Remove(problem_.leaf, kAnyLine, kEverything);
  for (std::size_t i = 1; i < asked_.size(); ++i) note(asked_[i]);
  trial_.Add(problem_.leaf, kAnyLine, kEverything);
}

// The quotas between the preemptor's leaf and the one at `level` borrow nothing that it lacks.
bool ReclaimRules::PathIsClear(int level) const {
  for (int at = 1; at < level; ++at) {
    for (const LineCharge& lacked : lacking_) {
      if (entitlement_ == Entitlement::kAnyOnly && lacked.line != kAnyLine) continue;
      const Charge borrowed = trial_.Borrowed(path_[static_cast<std::size_t>(at)], lacked.line);
      if (Meet(lacked.charge, borrowed)) return false;
    }
  }
  return true;
}

bool ReclaimRules::IsBorrowedForR1(const VictimUnit& unit) const {
  if (!CouldReclaim(unit)) return false;
  const bool has_model = std::ranges::any_of(
      unit.parts, [&](const LineCharge& part) { return trial_.Limits(unit.leaf, part.line); });
  const bool through_any = entitlement_ == Entitlement::kAnyOnly || !has_model;
  return !through_any || !unit.marks.in_any;
}

bool ReclaimRules::MayReclaim(const VictimUnit& unit) {
  if (pushed_.size() == first_) Judge();
  if (entitlement_ == Entitlement::kNone || !PathIsClear(KinOf(unit.leaf).level.value()))
    return false;
  if (!IsBorrowedForR1(unit)) {
    const bool in_the_way = devices_lacking_ && HoldsDevicesIn(unit, region_);
    if (!step_.by_choice || !unit.held || !in_the_way) return false;
  }
  return GivesWhatIsLacked(unit);
}

bool ReclaimRules::GivesWhatIsLacked(const VictimUnit& unit) const {
  const QuotaId branch = KinOf(unit.leaf).branch;
  const auto over_nominal = [&](LineId line) {
    return unit.rank == 0 ? kEverything : trial_.Borrowed(branch, line);
  };
  const auto gives = [&](LineId line, const Charge& lacked) {
    if (entitlement_ == Entitlement::kAnyOnly && line != kAnyLine) return false;
    Charge charge = ChargeOn(unit, line);
    if (lacked.compute == 0) charge.compute = 0;
    if (lacked.memory == 0) charge.memory = 0;
    return Meet(charge, over_nominal(line));
  };
  if (devices_lacking_ && HoldsDevicesIn(unit, region_)) {
    return gives(kAnyLine, kEverything) ||
           std::ranges::any_of(unit.parts, [&](const LineCharge& part) {
             return part.line > kAnyLine && gives(part.line, kEverything);
           });
  }
  return std::ranges::any_of(
      lacking_, [&](const LineCharge& lacked) { return gives(lacked.line, lacked.charge); });
}

}  // namespace tranche
