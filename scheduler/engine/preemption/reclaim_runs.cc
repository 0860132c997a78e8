#include "scheduler/engine/preemption/reclaim_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/selection/pool_windows.h"
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
    if (!member.placed) Unnominate(member);
    told_.erase(member.uid);
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
  run.contested = contested;
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
  return ShutTo(cluster_, context, id, now) == Reason::kNone &&
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
    told_.erase(member.uid);
    cluster_.outbox.Requeue(member.pod, member.uid);
  }
  TellNominations();
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
      if (parts_.claims.Find(uid) == nullptr) NoteVictimGone(uid, now);
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
      if (parts_.claims.Find(uid) == nullptr) {
        NoteVictimGone(uid, now);
        break;
      }
      TRANCHE_MARK(reclaim_eviction_answer_lost);
      run.doubted.insert(uid);
      run.retry_at = now + std::min(kRetryFirst * (1 << std::min(run.tries++, 5)), kRetryLast);
      return;
  }
  NextEviction(name, now);
  WakeRivals(name, uid, now);
  TellNominations();
}

// One after another: where this reclaim has asked for another pod of the owner, the answer to that
// wakes the others.
void ReclaimRuns::WakeRivals(const std::string& name, const PodUid& uid, Instant now) {
  const auto owner_of = [&](const PodUid& victim) {
    const std::vector<ReclaimVictim>& victims = reclaims_.all.at(name).victims;
    const auto found = std::ranges::find(victims, victim, &ReclaimVictim::uid);
    return found == victims.end() ? std::string() : found->owner;
  };
  const std::string owner = owner_of(uid);
  const auto own = reclaims_.runs.find(name);
  if (own != reclaims_.runs.end() && own->second.asked && owner_of(*own->second.asked) == owner) {
    return;
  }
  std::vector<std::string> rivals;
  for (const auto& [rival, run] : reclaims_.runs) {
    const std::vector<ReclaimVictim>& victims = reclaims_.all.at(rival).victims;
    const auto next = std::ranges::find_if_not(victims, IsTaken);
    if (run.contested && next != victims.end() && next->owner == owner) rivals.push_back(rival);
  }
  for (const std::string& rival : rivals) {
    const auto run = reclaims_.runs.find(rival);
    if (run == reclaims_.runs.end()) continue;
    run->second.retry_at.reset();
    NextEviction(rival, now);
    const auto after = reclaims_.runs.find(rival);
    if (after != reclaims_.runs.end() && after->second.asked) return;
  }
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
  const bool counts = CountsAsEviction(reclaim.rule);
  if (!first && counts) reclaims_.history.NoteMore(victim->leaf, 1, now);
  // A gang counts once.
  if (first && counts) reclaims_.history.Note(victim->owner, victim->leaf, 1, now);
  if (first && !HadItsTime(reclaim.rule)) {
    reclaims_.returning[victim->owner] = now;
    cluster_.NoteChange();
  }
  if (PodRecord* record = parts_.claims.Find(uid)) {
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
  // The answer is late: until it comes, the eviction may have happened.
  if (run.asked == uid) {
    run.asked.reset();
    run.doubted.insert(uid);
  }
  cluster_.NoteChange();
  NextEviction(name, now);
  TellNominations();
}

void ReclaimRuns::NoteMemberGone(const PodUid& uid, Instant now) {
  told_.erase(uid);
  preemptors_.Forget(uid);
  reclaims_.returned.erase(uid);
  reclaims_.avoided.erase(uid);
  if (PodRecord* record = cluster_.Find(uid)) nominations_.End(uid, *record, now);
  const auto found = reclaims_.of_member.find(uid);
  if (found == reclaims_.of_member.end()) return;
  TRANCHE_MARK(reclaim_preemptor_gone);
  Finish(reclaims_.all.at(found->second), ReclaimPhase::kAborted, "PreemptorGone", now);
}

void ReclaimRuns::NoteRoomLost(const PodUid& uid, Instant now) {
  const auto found = reclaims_.of_member.find(uid);
  if (found == reclaims_.of_member.end()) return;
  TRANCHE_MARK(reclaim_room_lost_with_its_node);
  Finish(reclaims_.all.at(found->second), ReclaimPhase::kAborted, "Changed", now);
}

void ReclaimRuns::NoteMemberReturned(const PodUid& uid, Instant now) {
  const auto found = reclaims_.of_member.find(uid);
  if (found == reclaims_.of_member.end()) return;
  Reclaim& reclaim = reclaims_.all.at(found->second);
  if (Reearmark(reclaim, now)) return;
  // While it was about to be bound elsewhere somebody came who asked nobody.
  TRANCHE_MARK(reclaim_room_gone_meanwhile);
  Finish(reclaim, ReclaimPhase::kAborted, "Changed", now);
}

void ReclaimRuns::NoteStart(const PodUid& uid, PodRecord& record, Instant now) {
  const auto starting = std::exchange(record.starting, PodRecord::Starting::kNo);
  if (starting == PodRecord::Starting::kNo) return;
  StartedWork start;
  start.waited = now - record.waits_since;
  start.within_nominal = starting == PodRecord::Starting::kWithinNominal;
  if (const HeldWork* work = cluster_.book.Find(uid)) {
    start.leaf = work->leaf;
    start.workload_class = work->workload_class;
  }
  cluster_.outbox.reclaims().starts.push_back(std::move(start));
}

void ReclaimRuns::NoteMemberPlaced(const PodUid& uid, const NodeName& node, Instant now) {
  preemptors_.Forget(uid);
  reclaims_.avoided.erase(uid);
  PodRecord& record = *cluster_.Find(uid);
  nominations_.End(uid, record, now);
  NoteStart(uid, record, now);
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
  TellNominations();
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
  TellNominations();
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

}  // namespace tranche
