#include "scheduler/engine/preemption/reclaim_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/preemption/run_limits.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

constexpr Millis kRetryFirst{1'000};
constexpr Millis kRetryLast{30'000};
// A budget that refused is asked again after this at the earliest.
constexpr Millis kRefusalPause{10'000};
constexpr Millis kForbiddenPause{60'000};
// A node on which a pod did not come for its devices is left out for it, doubling.
constexpr Millis kAvoidFirst{300'000};
constexpr int kMostAvoidDoublings = 4;
constexpr Millis kRecordKept = std::chrono::hours(24);
constexpr std::size_t kMostRecords = 1'000;

Instant LastGone(const Reclaim& reclaim) {
  Instant last = reclaim.planned_at;
  for (const ReclaimVictim& victim : reclaim.victims) {
    last = std::max(last, victim.gone_at.value_or(last));
  }
  return last;
}

bool IsTaken(const ReclaimVictim& victim) {
  return victim.evicted_at.has_value() || victim.gone_at.has_value();
}

}  // namespace

void ReclaimRuns::Changed(Reclaim& reclaim) {
  reclaim.version = ++reclaims_.serial;
  cluster_.outbox.reclaims().changed.push_back(reclaim);
}

void ReclaimRuns::Finish(Reclaim& reclaim, ReclaimPhase phase, std::string reason, Instant now) {
  reclaim.phase = phase;
  reclaim.reason = std::move(reason);
  reclaim.finished_at = now;
  const std::set<std::string> broken = BrokenGangs(reclaim, WitnessOf(reclaim.name));
  reclaims_.runs.erase(reclaim.name);
  reclaims_.ended.emplace_back(now, reclaim.name);
  for (const ReclaimVictim& victim : reclaim.victims) reclaims_.of_victim.erase(victim.uid);
  for (const ReclaimMember& member : reclaim.members) {
    reclaims_.of_member.erase(member.uid);
    PodRecord* record = cluster_.Find(member.uid);
    if (record == nullptr) continue;
    NodeId id = kNoNode;
    if (record->earmark != nullptr) id = cluster_.names.Find(record->earmark->node.str());
    earmarks_.DropEarmark(member.uid, *record, now);
    preemptors_.Note(member.uid, *record);
    if (id != kNoNode && cluster_.nodes[id] != nullptr) requeue_.NoteRoom(id, now);
  }
  cluster_.NoteChange();
  Changed(reclaim);
  if (!broken.empty()) EvictRests(Reclaim(reclaim), broken, now);
  // What was kept may let others in, who hear of it from nobody.
  if (phase == ReclaimPhase::kAborted) requeue_.Admitted(now);
}

bool ReclaimRuns::Revalidate(Reclaim& reclaim, Instant now) {
  guards_.LookAgainAt(&reclaim);
  const bool holds = LookAgain(reclaim, now);
  guards_.LookAgainAt(nullptr);
  return holds;
}

bool ReclaimRuns::LookAgain(Reclaim& reclaim, Instant now) {
  // These may still be spared; the rest of a broken gang is as good as gone.
  std::vector<PodUid> left;
  const std::set<std::string> broken = BrokenGangs(reclaim, WitnessOf(reclaim.name));
  for (const ReclaimVictim& victim : reclaim.victims) {
    if (!IsTaken(victim) && !broken.contains(GangKeyOf(victim))) left.push_back(victim.uid);
  }
  if (reclaim.members.empty()) return StillReleases(reclaim, left, now);
  // The members as they wait now; those that have come need nothing more.
  Preemptor preemptor;
  std::vector<NodeId> only;
  for (const ReclaimMember& member : reclaim.members) {
    if (member.placed) continue;
    const PodRecord* record = cluster_.Find(member.uid);
    if (record == nullptr || !cluster_.IsPending(*record)) return false;
    preemptor.members.push_back(record->request);
    only.push_back(cluster_.names.Find(member.node.str()));
    if (only.back() == kNoNode) return false;
    preemptor.gang = GangKeyOf(*record->request);
  }
  if (only.empty()) return false;
  std::ranges::sort(only);
  only.erase(std::unique(only.begin(), only.end()), only.end());
  preemptor.context = rules_.ContextOf(*preemptor.members.front());
  if (!MayPlan(preemptor.context)) return false;
  // Judged as if nothing of this plan were under way, but what has been evicted is leaving.
  for (const PodUid& uid : left) reclaims_.of_victim.erase(uid);
  std::vector<std::unique_ptr<ScopedRemoval>> lifts;
  for (const auto& member : preemptor.members) {
    lifts.push_back(
        std::make_unique<ScopedRemoval>(cluster_, member->uid, now, kept_.SharesWith(member->uid)));
  }
  ReclaimCase reclaim_case(parts_, preemptor, now, {.only = &only});
  const auto region = reclaim_case.RegionOf(cluster_.names.name(only.front()));
  bool holds = false;
  std::vector<PodUid> spared;
  if (region) {
    const bool needs_nobody =
        StillHolds(reclaim_case.problem(), reclaim.rule, *region, {}, reclaim_case);
    const auto units = needs_nobody ? std::vector<int>() : reclaim_case.UnitsOf(left);
    if (needs_nobody) spared = left;
    // Nobody is asked whose budgets do not allow all of them: a gang would be left in part.
    holds =
        needs_nobody ||
        (units && StillHolds(reclaim_case.problem(), reclaim.rule, *region, *units, reclaim_case) &&
         CostOf(reclaim_case.problem(), *region, *units).pdb_violations == 0);
  }
  for (const PodUid& uid : left) reclaims_.of_victim[uid] = reclaim.name;
  if (!holds) return false;
  if (!spared.empty()) TRANCHE_MARK(reclaim_spares_victims);
  for (const PodUid& uid : spared) {
    reclaims_.of_victim.erase(uid);
    std::erase_if(reclaim.victims, [&](const ReclaimVictim& victim) { return victim.uid == uid; });
  }
  return true;
}

void ReclaimRuns::NextEviction(const std::string& name, Instant now) {
  const auto found = reclaims_.runs.find(name);
  if (found == reclaims_.runs.end()) return;
  ReclaimRun& run = found->second;
  Reclaim& reclaim = reclaims_.all.at(name);
  if (run.asked || (run.retry_at && now < *run.retry_at)) return;
  const auto next =
      std::ranges::find_if(reclaim.victims, [](const auto& victim) { return !IsTaken(victim); });
  if (next == reclaim.victims.end()) return SeeIfReserved(reclaim, now);
  if (run.checked != cluster_.version()) {
    if (!Revalidate(reclaim, now)) {
      TRANCHE_MARK(reclaim_plan_overtaken);
      return Finish(reclaim, ReclaimPhase::kAborted, "Changed", now);
    }
    run.checked = cluster_.version();
    // Perhaps nobody else has to go.
    return NextEviction(name, now);
  }
  // Another reclaim has asked for work of this owner: how that ends decides whether it may go on.
  const bool contested = std::ranges::any_of(reclaims_.runs, [&](const auto& other) {
    if (!other.second.asked || other.first == name) return false;
    const Reclaim& rival = reclaims_.all.at(other.first);
    return std::ranges::any_of(rival.victims, [&](const ReclaimVictim& victim) {
      return victim.uid == *other.second.asked && victim.owner == next->owner;
    });
  });
  if (contested) {
    run.retry_at = now + kRetryFirst;
    return;
  }
  run.retry_at.reset();
  run.asked = next->uid;
  if (reclaim.phase == ReclaimPhase::kPlanned) {
    reclaim.phase = ReclaimPhase::kEvicting;
    Changed(reclaim);
  }
  cluster_.outbox.reclaims().evictions.push_back({name, next->pod, next->uid, next->grace});
}

// Would the pod be taken where its room is kept?
bool ReclaimRuns::FitsItsEarmark(const ReclaimMember& member, Instant now) {
  const NodeId id = cluster_.names.Find(member.node.str());
  const PodRecord* record = cluster_.Find(member.uid);
  if (record == nullptr || id == kNoNode) return false;
  const ScopedRemoval lift(cluster_, member.uid, now, kept_.SharesWith(member.uid));
  const RequestContext context = rules_.ContextOf(*record->request);
  if (context.whole != Reason::kNone || cluster_.nodes[id] == nullptr) return false;
  rules_.ForgetKindAnswers();
  return cluster_.hot[id].closed == Reason::kNone &&
         selection_.Fits(context, id) == Reason::kNone &&
         rules_.AskQuota(context, id, now).reason == Reason::kNone;
}

void ReclaimRuns::SeeIfReserved(Reclaim& reclaim, Instant now) {
  if (reclaim.finished() || reclaim.phase == ReclaimPhase::kReserved) return;
  if (reclaim.gone() < reclaim.victims.size()) return;
  if (reclaim.members.empty()) return Finish(reclaim, ReclaimPhase::kDone, "", now);
  // Others that were leaving already, and were counted on, may still be there.
  const bool ready = std::ranges::all_of(reclaim.members, [&](const ReclaimMember& member) {
    return member.placed || FitsItsEarmark(member, now);
  });
  if (!ready) {
    if (now < LastGone(reclaim) + cluster_.options.reservation_ttl) return;
    return Finish(reclaim, ReclaimPhase::kAborted, "Changed", now);
  }
  reclaim.phase = ReclaimPhase::kReserved;
  reclaim.reserved_at = now;
  Changed(reclaim);
  for (const ReclaimMember& member : reclaim.members) {
    if (member.placed) continue;
    // kube-scheduler may have taken the nomination back, and have tried before we knew.
    cluster_.outbox.reclaims().nominations.push_back({member.pod, member.uid, member.node});
    cluster_.outbox.Requeue(member.pod, member.uid);
  }
}

void ReclaimRuns::Settle(const std::string& name, const PodUid& uid, EvictionOutcome outcome,
                         std::optional<Millis> retry_after, Instant now) {
  const auto found = reclaims_.runs.find(name);
  if (outcome == EvictionOutcome::kAccepted) NoteEvicted(name, uid, now);
  if (found == reclaims_.runs.end() && outcome == EvictionOutcome::kAccepted) {
    // Asked before its reclaim ended.
    const auto ended = reclaims_.all.find(name);
    if (ended != reclaims_.all.end()) {
      const Reclaim reclaim = ended->second;
      EvictRests(reclaim, BrokenGangs(reclaim, Witness::kUs), now);
    }
  }
  if (found == reclaims_.runs.end() || found->second.asked != uid) return;
  ReclaimRun& run = found->second;
  Reclaim& reclaim = reclaims_.all.at(name);
  run.asked.reset();
  switch (outcome) {
    case EvictionOutcome::kAccepted:
      run.tries = 0;
      run.refused_since.reset();
      break;
    case EvictionOutcome::kGone:
      for (ReclaimVictim& victim : reclaim.victims) {
        if (victim.uid == uid && !victim.evicted_at) victim.evicted_at = now;
      }
      // The watch tells when it holds nothing; of one we never heard of nobody will.
      if (cluster_.Find(uid) == nullptr) NoteVictimGone(uid, now);
      break;
    case EvictionOutcome::kBlocked:
      TRANCHE_MARK(reclaim_eviction_blocked);
      if (AsksAgain(reclaim, run, uid, std::max(retry_after.value_or(kRefusalPause), kRefusalPause),
                    now)) {
        return;
      }
      reclaims_.refused_until[uid] =
          now + std::max(retry_after.value_or(kRefusalPause), kRefusalPause);
      return Finish(reclaim, ReclaimPhase::kAborted, "PDBBlocked", now);
    case EvictionOutcome::kForbidden:
      TRANCHE_MARK(reclaim_eviction_forbidden);
      if (AsksAgain(reclaim, run, uid, kForbiddenPause, now)) return;
      reclaims_.refused_until[uid] = now + kForbiddenPause;
      return Finish(reclaim, ReclaimPhase::kAborted, "Forbidden", now);
    case EvictionOutcome::kFailed:
      // Of one that nobody has seen nobody will tell when it goes.
      if (cluster_.Find(uid) == nullptr) {
        NoteVictimGone(uid, now);
        break;
      }
      TRANCHE_MARK(reclaim_eviction_answer_lost);
      run.retry_at = now + std::min(kRetryFirst * (1 << std::min(run.tries++, 5)), kRetryLast);
      return;
  }
  NextEviction(name, now);
}

// The API server took it: history, and what the owner is due.
void ReclaimRuns::NoteEvicted(const std::string& name, const PodUid& uid, Instant now) {
  const auto found = reclaims_.all.find(name);
  if (found == reclaims_.all.end()) return;
  Reclaim& reclaim = found->second;
  const auto victim = std::ranges::find(reclaim.victims, uid, &ReclaimVictim::uid);
  if (victim == reclaim.victims.end() || victim->evicted_at) return;
  const auto of_owner = [&](const ReclaimVictim& other) { return other.owner == victim->owner; };
  const bool first = std::ranges::none_of(reclaim.victims, [&](const ReclaimVictim& other) {
    return of_owner(other) && other.evicted_at;
  });
  victim->evicted_at = now;
  // What had all its time has lost nothing: its owner is due nothing, and protected by nothing.
  if (first && reclaim.rule != ReclaimRule::kMaxRuntime) {
    // A gang counts once, with all its pods.
    reclaims_.history.Note(victim->owner, victim->leaf,
                           std::ranges::count_if(reclaim.victims, of_owner), now);
    reclaims_.returning[victim->owner] = now;
    cluster_.NoteChange();
  }
  if (PodRecord* record = cluster_.Find(uid)) {
    record->traits.evicted_at = now;
    record->traits.evicted_state = victim->state;
    record->traits.evicted_by = reclaim.rule;
  }
  Changed(reclaim);
}

void ReclaimRuns::NoteVictimLeaving(const PodUid& uid, Instant now) {
  const auto found = reclaims_.of_victim.find(uid);
  if (found == reclaims_.of_victim.end()) return;
  Reclaim& reclaim = reclaims_.all.at(found->second);
  for (ReclaimVictim& victim : reclaim.victims) {
    // Somebody else took it away, or the answer to our eviction is still on its way.
    if (victim.uid == uid && !victim.evicted_at && reclaims_.runs.at(reclaim.name).asked != uid) {
      victim.evicted_at = now;
    }
  }
}

void ReclaimRuns::NoteVictimGone(const PodUid& uid, Instant now) {
  const auto found = reclaims_.of_victim.find(uid);
  if (found == reclaims_.of_victim.end()) return;
  const std::string name = found->second;
  Reclaim& reclaim = reclaims_.all.at(name);
  for (ReclaimVictim& victim : reclaim.victims) {
    if (victim.uid != uid || victim.gone_at) continue;
    victim.gone_at = now;
    Changed(reclaim);
  }
  ReclaimRun& run = reclaims_.runs.at(name);
  if (run.asked == uid) run.asked.reset();
  cluster_.NoteChange();
  NextEviction(name, now);
}

void ReclaimRuns::NoteMemberGone(const PodUid& uid, Instant now) {
  preemptors_.Forget(uid);
  reclaims_.returned.erase(uid);
  reclaims_.avoided.erase(uid);
  if (PodRecord* record = cluster_.Find(uid)) nominations_.End(uid, *record, now);
  const auto found = reclaims_.of_member.find(uid);
  if (found == reclaims_.of_member.end()) return;
  TRANCHE_MARK(reclaim_preemptor_gone);
  Finish(reclaims_.all.at(found->second), ReclaimPhase::kAborted, "PreemptorGone", now);
}

void ReclaimRuns::NoteMemberReturned(const PodUid& uid, Instant now) {
  const auto reclaim = reclaims_.of_member.find(uid);
  if (reclaim != reclaims_.of_member.end()) Reearmark(reclaims_.all.at(reclaim->second), now);
}

void ReclaimRuns::NoteMemberPlaced(const PodUid& uid, const NodeName& node, Instant now) {
  preemptors_.Forget(uid);
  reclaims_.avoided.erase(uid);
  PodRecord& record = *cluster_.Find(uid);
  nominations_.End(uid, record, now);
  if (std::exchange(record.within_nominal, false)) {
    cluster_.outbox.reclaims().nominal_waits.push_back(now - record.waits_since);
  }
  if (reclaims_.returned.erase(uid) > 0) reclaims_.returning.erase(record.traits.owner);
  const auto found = reclaims_.of_member.find(uid);
  if (found == reclaims_.of_member.end()) return;
  Reclaim& reclaim = reclaims_.all.at(found->second);
  bool all = true, elsewhere = false;
  for (ReclaimMember& member : reclaim.members) {
    if (member.uid == uid) {
      member.placed = true;
      elsewhere = member.node != node;
    }
    all &= member.placed;
  }
  earmarks_.DropEarmark(uid, record, now);
  const bool entitled = reclaim.rule == ReclaimRule::kR1 || reclaim.rule == ReclaimRule::kR2a;
  if (!entitled) {
    const GpuClass* gpu_class = cluster_.set->ClassOf(record.request->priority_class);
    const Millis rest = gpu_class == nullptr ? GpuClass().cooldown : gpu_class->cooldown;
    record.traits.settled_until = now + std::min(rest, kGuardCap);
  }
  const bool early = elsewhere && reclaim.phase < ReclaimPhase::kReserved;
  if (early) {
    TRANCHE_MARK(reclaim_preemptor_placed_elsewhere);
    Finish(reclaim, ReclaimPhase::kAborted, "PlacedElsewhere", now);
  } else if (all) {
    Finish(reclaim, ReclaimPhase::kDone, "", now);
  } else {
    Changed(reclaim);
  }
}

void ReclaimRuns::Tend(Instant now) {
  std::vector<std::string> names_of_runs;
  for (const auto& [name, run] : reclaims_.runs) names_of_runs.push_back(name);
  for (const std::string& name : names_of_runs) {
    const auto run = reclaims_.runs.find(name);
    if (run == reclaims_.runs.end()) continue;
    Reclaim& reclaim = reclaims_.all.at(name);
    if (reclaim.phase == ReclaimPhase::kReserved) {
      if (now < *reclaim.reserved_at + cluster_.options.reservation_ttl) continue;
      for (const ReclaimMember& member : reclaim.members) {
        if (member.placed) continue;
        AvoidedNode& avoided = reclaims_.avoided[member.uid][member.node];
        avoided.until = now + kAvoidFirst * (1 << std::min(avoided.times++, kMostAvoidDoublings));
      }
      TRANCHE_MARK(reclaim_unclaimed);
      Finish(reclaim, ReclaimPhase::kAborted, "Unclaimed", now);
      continue;
    }
    const bool stuck = std::ranges::any_of(reclaim.victims, [&](const ReclaimVictim& victim) {
      const std::optional<Instant> end = MostPatience(victim);
      return end && now > *end;
    });
    if (!stuck) continue;
    TRANCHE_MARK(reclaim_victim_stuck);
    Finish(reclaim, ReclaimPhase::kAborted, "VictimStuck", now);
  }
  // Only then who goes next: what has ended above may have changed who is in quota.
  for (const std::string& name : names_of_runs) NextEviction(name, now);
  std::vector<PodUid> unclaimed_nominations;
  for (const auto& [uid, until] : reclaims_.nominated_until) {
    if (until <= now) unclaimed_nominations.push_back(uid);
  }
  for (const PodUid& uid : unclaimed_nominations) nominations_.End(uid, *cluster_.Find(uid), now);
  std::erase_if(reclaims_.refused_until, [now](const auto& entry) { return entry.second <= now; });
  std::erase_if(reclaims_.returning,
                [now](const auto& entry) { return now - entry.second > kRecordKept; });
  reclaims_.history.Forget(now);
  while (!reclaims_.ended.empty() && (now - reclaims_.ended.front().first > kRecordKept ||
                                      reclaims_.ended.size() > kMostRecords)) {
    reclaims_.all.erase(reclaims_.ended.front().second);
    reclaims_.ended.pop_front();
  }
}

std::optional<Instant> ReclaimRuns::Due(Instant now) const {
  std::optional<Instant> next;
  const auto sooner = [&next](Instant at) { next = next ? std::min(*next, at) : at; };
  for (const auto& [uid, until] : reclaims_.nominated_until) sooner(until);
  for (const auto& [name, run] : reclaims_.runs) {
    const Reclaim& reclaim = reclaims_.all.at(name);
    if (reclaim.phase == ReclaimPhase::kReserved) {
      sooner(*reclaim.reserved_at + cluster_.options.reservation_ttl);
      continue;
    }
    if (run.retry_at && !run.asked) sooner(std::max(*run.retry_at, now));
    if (reclaim.gone() == reclaim.victims.size()) {
      sooner(LastGone(reclaim) + cluster_.options.reservation_ttl);
    }
    for (const ReclaimVictim& victim : reclaim.victims) {
      if (const std::optional<Instant> end = MostPatience(victim)) sooner(*end + Millis{1});
    }
  }
  return next;
}

void ReclaimRuns::Begin(Reclaim reclaim, Instant now) {
  reclaim.planned_at = now;
  const std::string name = reclaim.name;
  for (const ReclaimMember& member : reclaim.members) {
    reclaims_.of_member[member.uid] = name;
    cluster_.outbox.reclaims().nominations.push_back({member.pod, member.uid, member.node});
  }
  for (const ReclaimVictim& victim : reclaim.victims) reclaims_.of_victim[victim.uid] = name;
  Reclaim& stored = reclaims_.all[name] = std::move(reclaim);
  cluster_.NoteChange();
  ReclaimRun& run = reclaims_.runs[name];
  run.begun_here = true;
  run.checked = cluster_.version();
  Changed(stored);
  NextEviction(name, now);
}

// Its class may have been edited since, or the pod be another one's under the same name. Once a
// member of a gang has left, the others follow.
bool ReclaimRuns::StillEnds(const Reclaim& reclaim, const std::vector<PodUid>& left,
                            Instant now) const {
  bool over = left.size() < reclaim.victims.size();
  std::vector<const PodRecord*> pods;
  for (const PodUid& uid : left) {
    const PodRecord* record = cluster_.Find(uid);
    const HeldWork* work = cluster_.book.Find(uid);
    if (record == nullptr || work == nullptr || !guards_.MayStop(*record, *work)) return false;
    pods.push_back(record);
    const std::optional<Instant> end = RunLimitOf(*cluster_.set, *work);
    over = over || (end && *end <= now && work->workload_class == reclaim.source);
  }
  return over && guards_.BudgetsAllow(pods, now);
}

bool ReclaimRuns::StillReleases(Reclaim& reclaim, const std::vector<PodUid>& left, Instant now) {
  if (reclaim.rule == ReclaimRule::kGang) return GangIsToGo(reclaim, left);
  if (reclaim.rule == ReclaimRule::kMaxRuntime) return StillEnds(reclaim, left, now);
  for (const PodUid& uid : left) {
    const PodRecord* record = cluster_.Find(uid);
    const HeldWork* work = cluster_.book.Find(uid);
    if (record == nullptr || work == nullptr) return false;
    const GuardVerdict verdict = guards_.Of(uid, *record, *work, now);
    if (!verdict.touchable || verdict.guard != Guard::kNone) return false;
    // The record may have been written by somebody else.
    if (reclaim.rule == ReclaimRule::kShrink && work->leaf != reclaim.source) return false;
  }
  if (reclaim.rule == ReclaimRule::kDrain) {
    return std::ranges::any_of(cluster_.book.BudgetsToDrain(), [&](std::size_t budget) {
      return cluster_.set->budgets[budget].name == reclaim.source &&
             std::ranges::all_of(left, [&](const PodUid& uid) {
               return cluster_.book.Meters(budget, *cluster_.book.Find(uid));
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
