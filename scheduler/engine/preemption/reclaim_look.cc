// Another look at a plan under way, before somebody more is evicted for it.
#include <algorithm>
#include <memory>
#include <utility>

#include "scheduler/engine/preemption/reclaim_runs.h"
#include "scheduler/engine/preemption/run_limits.h"
#include "topology/base/mark.h"

namespace tranche {

bool ReclaimRuns::Revalidate(Reclaim& reclaim, Instant now) {
  guards_.LookAgainAt(&reclaim);
  const bool holds = LookAgain(reclaim, now);
  guards_.LookAgainAt(nullptr);
  return holds;
}

bool ReclaimRuns::LookAgain(Reclaim& reclaim, Instant now) {
  // These may still be spared; the rest of a broken gang is as good as gone, but for whom no rule
  // takes any more.
  std::vector<PodUid> left;
  const std::set<std::string> broken = BrokenGangs(reclaim, WitnessOf(reclaim.name));
  for (const ReclaimVictim& victim : reclaim.victims) {
    if (IsTaken(victim)) continue;
    if (!broken.contains(GangKeyOf(victim))) {
      left.push_back(victim.uid);
    } else if (!HadItsTime(reclaim.rule)) {
      const std::optional<HeldWork> work = parts_.claims.WorkOf(victim.uid);
      if (work && guards_.IsNeverEvicted(*work)) return false;
    }
  }
  if (reclaim.members.empty()) return StillReleases(reclaim, left, now);
  // An eviction may have happened though its answer was lost: that pod is not spared, or nobody
  // would know why it went.
  const std::set<PodUid>& doubted = reclaims_.runs.at(reclaim.name).doubted;
  std::erase_if(left, [&](const PodUid& uid) { return doubted.contains(uid); });
  // The members as they wait now; those that have come need nothing more.
  Preemptor preemptor;
  for (const ReclaimMember& member : reclaim.members) {
    if (member.placed) continue;
    const PodRecord* record = cluster_.Find(member.uid);
    if (record == nullptr || !cluster_.IsPending(*record)) return false;
    preemptor.members.push_back(record->request);
    preemptor.gang = GangKeyOf(*record->request);
  }
  if (preemptor.members.empty()) return false;
  preemptor.context = rules_.ContextOf(*preemptor.members.front());
  if (!MayPlan(preemptor.context)) return false;
  // Judged as if nothing of this plan were under way, but what has been evicted is leaving.
  for (const PodUid& uid : left) reclaims_.of_victim.erase(uid);
  const Outlook outlook = Judge(reclaim, preemptor, left, now);
  for (const PodUid& uid : left) reclaims_.of_victim[uid] = reclaim.name;
  if (outlook.seats.empty()) return false;
  if (outlook.needs_nobody && !left.empty()) {
    TRANCHE_MARK(reclaim_spares_victims);
    for (const PodUid& uid : left) reclaims_.of_victim.erase(uid);
    std::erase_if(reclaim.victims, [&](const ReclaimVictim& victim) {
      return std::ranges::find(left, victim.uid) != left.end();
    });
  }
  MoveRoom(reclaim, outlook.seats, preemptor.context.membership, now);
  return true;
}

ReclaimRuns::Outlook ReclaimRuns::Judge(const Reclaim& reclaim, const Preemptor& preemptor,
                                        const std::vector<PodUid>& left, Instant now) {
  std::vector<NodeId> only;
  for (const ReclaimMember& member : reclaim.members) {
    if (!member.placed) only.push_back(cluster_.names.Find(member.node.str()));
  }
  std::ranges::sort(only);
  only.erase(std::unique(only.begin(), only.end()), only.end());
  Outlook outlook;
  if (std::ranges::find(only, kNoNode) != only.end()) return outlook;
  std::vector<std::unique_ptr<ScopedRemoval>> lifts;
  for (const auto& member : preemptor.members) {
    lifts.push_back(
        std::make_unique<ScopedRemoval>(cluster_, member->uid, now, kept_.SharesWith(member->uid)));
  }
  ReclaimCase reclaim_case(parts_, preemptor, now,
                           {.only = &only, .choose = reclaim.rule == ReclaimRule::kR1});
  const auto region = reclaim_case.RegionOf(cluster_.names.name(only.front()));
  if (!region) return outlook;
  const ReclaimProblem& problem = reclaim_case.problem();
  outlook.needs_nobody = StillHolds(problem, reclaim.rule, *region, {}, reclaim_case);
  const auto units = outlook.needs_nobody ? std::vector<int>() : reclaim_case.UnitsOf(left);
  // Nobody is asked whose budgets do not allow all of them: a gang would be left in part.
  const bool holds = outlook.needs_nobody ||
                     (units && StillHolds(problem, reclaim.rule, *region, *units, reclaim_case) &&
                      CostOf(problem, *region, *units).pdb_violations == 0);
  if (holds) outlook.seats = reclaim_case.Seats(*region, *units);
  return outlook;
}

void ReclaimRuns::MoveRoom(Reclaim& reclaim, const std::vector<ReclaimCase::Seat>& seats,
                           const QuotaMembership& membership, Instant now) {
  std::size_t next = 0;
  bool elsewhere = false;
  for (ReclaimMember& member : reclaim.members) {
    if (member.placed) continue;
    const ReclaimCase::Seat& seat = seats[next++];
    PodRecord& record = *cluster_.Find(member.uid);
    Earmark moved = earmarks_.EarmarkOf(seat.node, *record.request, membership, seat.picks, now);
    const bool same = record.earmark != nullptr && record.earmark->node == moved.node &&
                      record.earmark->allocation == moved.allocation;
    if (same) continue;
    TRANCHE_MARK(kept_room_is_moved);
    earmarks_.DropEarmark(member.uid, record, now);
    elsewhere |= member.node != moved.node;
    member.node = moved.node;
    earmarks_.PutEarmark(member.uid, record, std::move(moved), now);
  }
  // A restart keeps the room where the record says.
  if (elsewhere) Changed(reclaim);
}

// Its class may have been edited since, or the pod be another one's under the same name. Once a
// member of a gang has left, the others follow.
bool ReclaimRuns::StillEnds(const Reclaim& reclaim, const std::vector<PodUid>& left,
                            Instant now) const {
  bool over = left.size() < reclaim.victims.size();
  std::vector<const PodRecord*> pods;
  for (const PodUid& uid : left) {
    const PodRecord* record = parts_.claims.Find(uid);
    const std::optional<HeldWork> work = parts_.claims.WorkOf(uid);
    if (record == nullptr || !work || !guards_.MayStop(*record, *work)) return false;
    pods.push_back(record);
    const std::optional<RunEnd> end = RunEndOf(cluster_, *record, *work);
    over = over ||
           (end && end->at <= now && end->rule == reclaim.rule && end->source == reclaim.source);
  }
  return over && guards_.BudgetsAllow(pods, now);
}

bool ReclaimRuns::StillReleases(Reclaim& reclaim, const std::vector<PodUid>& left, Instant now) {
  if (reclaim.rule == ReclaimRule::kGang) return GangIsToGo(reclaim, left);
  if (EndsByItself(reclaim.rule)) return StillEnds(reclaim, left, now);
  for (const PodUid& uid : left) {
    const PodRecord* record = parts_.claims.Find(uid);
    const std::optional<HeldWork> work = parts_.claims.WorkOf(uid);
    if (record == nullptr || !work) return false;
    const GuardVerdict verdict = guards_.Of(uid, *record, *work, now);
    if (!verdict.touchable || verdict.guard != Guard::kNone) return false;
    // The record may have been written by somebody else.
    if (reclaim.rule == ReclaimRule::kShrink && work->leaf != reclaim.source) return false;
  }
  if (reclaim.rule == ReclaimRule::kDrain) {
    return std::ranges::any_of(cluster_.book.BudgetsToDrain(), [&](std::size_t budget) {
      return cluster_.set->budgets[budget].name == reclaim.source &&
             std::ranges::all_of(left, [&](const PodUid& uid) {
               return cluster_.book.Meters(budget, *parts_.claims.WorkOf(uid));
             });
    });
  }
  const GpuQuota* spec = cluster_.set->QuotaNamed(reclaim.source);
  if (spec == nullptr || spec->on_shrink == OnShrink::kKeep) return false;
  Preemptor nobody;
  nobody.context.membership.leaf = cluster_.book.tree().Find(reclaim.source);
  for (const PodUid& uid : left) reclaims_.of_victim.erase(uid);
  ReclaimCase reclaim_case(parts_, nobody, now, {});
  const ShrinkTarget target =
      spec->on_shrink == OnShrink::kDrain ? ShrinkTarget::kNominal : ShrinkTarget::kReach;
  const ShrinkPlan plan =
      PlanShrink(reclaim_case.problem(), nobody.context.membership.leaf, target);
  for (const PodUid& uid : left) reclaims_.of_victim[uid] = reclaim.name;
  return !plan.victims.empty();
}

}  // namespace tranche
