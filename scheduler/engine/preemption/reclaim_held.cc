// Where R1 may choose anew what is borrowed: what the marks of the teams concerned are made from.
#include <algorithm>
#include <utility>

#include "scheduler/engine/preemption/reclaim_case.h"
#include "topology/base/mark.h"

namespace tranche {

void ReclaimCase::GatherHeld(QuotaId root) {
  if (!options_.choose || problem_.leaf == kNoQuota || preemptor_.members.empty()) return;
  for (QuotaId leaf{0}; leaf < tree_.size(); ++leaf) {
    const bool lends = leaf == problem_.leaf || tree_.root(leaf) != root;
    if (!lends && tree_.MostBorrowed(leaf) > 0) chosen_from_.insert(leaf);
  }
  if (chosen_from_.empty()) return;
  std::set<QuotaId> told = chosen_from_;
  told.insert(problem_.leaf);
  for (const QuotaId leaf : told) {
    std::map<PodUid, std::size_t> place;
    const std::size_t first = problem_.held.size();
    for (MarkUnit& unit : cluster_.book.MarkUnitsOf(tree_.name(leaf), leaving_, place)) {
      problem_.held.push_back({leaf, std::move(unit)});
    }
    for (const auto& [uid, at] : place) held_[uid] = first + at;
  }
}

std::optional<std::size_t> ReclaimCase::HeldOf(std::span<const Holder> pods) const {
  std::optional<std::size_t> held;
  for (const Holder& pod : pods) {
    const auto found = held_.find(pod.uid);
    if (found == held_.end() || (held && *held != found->second)) return std::nullopt;
    held = found->second;
  }
  return held;
}

AskedPlan AskPlan(const PlanParts& parts, const Preemptor& preemptor, Instant now,
                  ReclaimCase::Options options) {
  using Result = ReclaimAnswer::Result;
  const auto ask = [&](SearchLimits limits) {
    AskedPlan asked;
    asked.reclaim_case = std::make_unique<ReclaimCase>(parts, preemptor, now, options);
    if (!limits.only_by_choice || !asked.reclaim_case->problem().held.empty()) {
      asked.answer = PlanReclaim(asked.reclaim_case->problem(), *asked.reclaim_case, limits);
    }
    return asked;
  };
  AskedPlan by_marks = ask({});
  const ReclaimAnswer& answer = by_marks.answer;
  // Only who would be in quota can be entitled.
  const bool in_quota = std::ranges::any_of(
      by_marks.reclaim_case->problem().regions,
      [](const ReclaimRegion& region) { return region.marks.state == QuotaState::kInQuota; });
  if (answer.plan || answer.result == Result::kFits || !in_quota) return by_marks;
  if (by_marks.reclaim_case->any_guarded()) {
    // What is borrowed makes room once nothing protects it: that is waited for.
    const bool ignored = std::exchange(options.ignore_guards, true);
    const bool later = ask({}).answer.plan.has_value();
    options.ignore_guards = ignored;
    if (later) return by_marks;
  }
  options.choose = true;
  AskedPlan chosen = ask({.only_by_choice = true});
  if (!chosen.answer.plan) return by_marks;
  TRANCHE_MARK(reclaim_chooses_what_is_borrowed);
  return chosen;
}

}  // namespace tranche
