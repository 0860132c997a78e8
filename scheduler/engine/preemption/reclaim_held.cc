// Where R1 may choose anew what is borrowed: what the marks of the teams concerned are made from.
#include <algorithm>
#include <set>
#include <utility>

#include "scheduler/engine/preemption/reclaim_case.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

void Promise(HeldUnit& held, const HeldWork& work, const QuotaTree& tree) {
  held.promised.resize(held.unit.parts.size());
  for (const ModelCharge& part : work.parts) {
    const LineId line = tree.LineOf(tree.Find(work.leaf), part.model);
    const auto at = std::ranges::find(held.unit.parts, line, &MarkUnit::Part::line);
    Charge& sum = held.promised[static_cast<std::size_t>(at - held.unit.parts.begin())];
    sum = AddSaturating(sum, part.charge);
  }
}

}  // namespace

std::set<PodUid> ReclaimCase::PromisedByOthers() const {
  std::set<PodUid> uids;
  const auto own = reclaims_.of_member.find(preemptor_.members.front()->uid);
  for (const auto& [uid, reclaim] : reclaims_.of_victim) {
    const PodRecord* record = claims_.Find(uid);
    const bool is_own = own != reclaims_.of_member.end() && own->second == reclaim;
    if (record == nullptr || is_own) continue;
    if (!record->traits.leaves_at && !record->traits.evicted_at) uids.insert(uid);
  }
  return uids;
}

void ReclaimCase::GatherHeld(QuotaId root) {
  if (!options_.choose || problem_.leaf == kNoQuota || preemptor_.members.empty()) return;
  for (QuotaId leaf{0}; leaf < tree_.size(); ++leaf) {
    const bool lends = leaf == problem_.leaf || tree_.root(leaf) != root;
    if (!lends && tree_.MostBorrowed(leaf) > 0) chosen_from_.insert(leaf);
  }
  if (chosen_from_.empty()) return;
  std::set<QuotaId> told = chosen_from_;
  told.insert(problem_.leaf);
  const std::set<PodUid> promised = PromisedByOthers();
  std::unordered_set<PodUid> gone = leaving_;
  for (const PodUid& uid : promised) gone.erase(uid);
  for (const QuotaId leaf : told) {
    std::map<PodUid, std::size_t> place;
    const std::size_t first = problem_.held.size();
    // Nobody's running work is replaced in quota by what a plan keeps for work that waits.
    for (MarkUnit& unit : cluster_.book.RunningUnitsOf(tree_.name(leaf), gone, place)) {
      problem_.held.push_back({leaf, std::move(unit)});
    }
    for (const auto& [uid, at] : place) {
      held_[uid] = first + at;
      if (promised.contains(uid)) {
        Promise(problem_.held[first + at], *cluster_.book.Find(uid), tree_);
      }
    }
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

AskedPlan AskNext(PlanQuestions& questions, const PlanParts& parts, const Preemptor& preemptor,
                  Instant now, ReclaimCase::Options options) {
  AskedPlan asked;
  asked.question = questions.next();
  options.ignore_guards = IgnoresGuards(asked.question);
  options.choose = Chooses(asked.question);
  asked.reclaim_case = std::make_shared<ReclaimCase>(parts, preemptor, now, options);
  ReclaimCase& reclaim_case = *asked.reclaim_case;
  const ReclaimProblem& problem = reclaim_case.problem();
  if (!options.choose || !problem.held.empty()) {
    asked.answer = PlanReclaim(problem, reclaim_case, {.only_by_choice = options.choose});
  }
  const bool entitled = std::ranges::any_of(problem.regions, [](const ReclaimRegion& region) {
    return region.marks.state == QuotaState::kInQuota;
  });
  questions.Note(asked.answer, entitled, reclaim_case.any_guarded());
  if (asked.question == PlanQuestion::kChosen && asked.answer.plan) {
    TRANCHE_MARK(reclaim_chooses_what_is_borrowed);
  }
  return asked;
}

}  // namespace tranche
