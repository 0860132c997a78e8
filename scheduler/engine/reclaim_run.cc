// Reclaims under way: evictions one by one, each after another look at the plan; what is freed
// stays with the preemptor until it comes, is gone, or has had its time.
#include <algorithm>
#include <utility>

#include "scheduler/engine/reclaim_case.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

constexpr Millis kRetryFirst{1'000};
constexpr Millis kRetryLast{30'000};
// A budget that refused is asked again after this at the earliest.
constexpr Millis kRefusalPause{10'000};
constexpr Millis kForbiddenPause{60'000};
constexpr Millis kStuckSlack{60'000};
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

void Engine::Impl::Changed(Reclaim& reclaim) {
  reclaim.version = ++reclaims.serial;
  outbox.reclaims().changed.push_back(reclaim);
}

void Engine::Impl::Finish(Reclaim& reclaim, ReclaimPhase phase, std::string reason, Instant now) {
  reclaim.phase = phase;
  reclaim.reason = std::move(reason);
  reclaim.finished_at = now;
  reclaims.runs.erase(reclaim.name);
  reclaims.ended.emplace_back(now, reclaim.name);
  for (const ReclaimVictim& victim : reclaim.victims) reclaims.of_victim.erase(victim.uid);
  for (const ReclaimMember& member : reclaim.members) {
    reclaims.of_member.erase(member.uid);
    PodRecord* record = Find(member.uid);
    if (record == nullptr) continue;
    NodeId id = kNoNode;
    if (record->earmark != nullptr) id = names.Find(record->earmark->node.str());
    DropEarmark(member.uid, *record, now);
    NoteHungry(member.uid, *record);
    if (id != kNoNode && nodes[id] != nullptr) NoteRoom(id, now);
  }
  NoteChange();
  Changed(reclaim);
  // What was kept may let others in, who hear of it from nobody.
  if (phase == ReclaimPhase::kAborted) PokeAdmitted(now);
}

bool Engine::Impl::Revalidate(Reclaim& reclaim, Instant now) {
  guards.LookAgainAt(&reclaim);
  const bool holds = LookAgain(reclaim, now);
  guards.LookAgainAt(nullptr);
  return holds;
}

bool Engine::Impl::LookAgain(Reclaim& reclaim, Instant now) {
  std::vector<PodUid> left;
  for (const ReclaimVictim& victim : reclaim.victims) {
    if (!IsTaken(victim)) left.push_back(victim.uid);
  }
  if (reclaim.members.empty()) return StillReleases(reclaim, left, now);
  // The members as they wait now; those that have come need nothing more.
  Aggressor aggressor;
  std::vector<NodeId> only;
  for (const ReclaimMember& member : reclaim.members) {
    if (member.placed) continue;
    const PodRecord* record = Find(member.uid);
    if (record == nullptr || !IsPending(*record)) return false;
    aggressor.members.push_back(record->request);
    only.push_back(names.Find(member.node.str()));
    if (only.back() == kNoNode) return false;
    if (!record->request->gang.empty()) {
      aggressor.gang = record->request->name.ns + "/" + record->request->gang;
    }
  }
  if (only.empty()) return false;
  std::ranges::sort(only);
  only.erase(std::unique(only.begin(), only.end()), only.end());
  aggressor.context = ContextOf(*aggressor.members.front());
  if (!MayPlan(aggressor.context)) return false;
  // Judged as if nothing of this plan were under way, but what has been evicted is leaving.
  for (const PodUid& uid : left) reclaims.of_victim.erase(uid);
  std::vector<std::unique_ptr<ScopedRemoval>> lifts;
  for (const auto& member : aggressor.members) {
    lifts.push_back(
        std::make_unique<ScopedRemoval>(*this, member->uid, now, SharesWith(member->uid)));
  }
  ReclaimCase reclaim_case(*this, aggressor, now, {.only = &only});
  const auto region = reclaim_case.RegionOf(names.name(only.front()));
  bool holds = false;
  std::vector<PodUid> spared;
  if (region) {
    const bool needs_nobody =
        StillHolds(reclaim_case.problem(), reclaim.rule, *region, {}, reclaim_case);
    const auto units = needs_nobody ? std::vector<int>() : reclaim_case.UnitsOf(left);
    if (needs_nobody) spared = left;
    holds = needs_nobody || (units && StillHolds(reclaim_case.problem(), reclaim.rule, *region,
                                                 *units, reclaim_case));
  }
  for (const PodUid& uid : left) reclaims.of_victim[uid] = reclaim.name;
  if (!holds) return false;
  if (!spared.empty()) TRANCHE_MARK(reclaim_spares_victims);
  for (const PodUid& uid : spared) {
    reclaims.of_victim.erase(uid);
    std::erase_if(reclaim.victims, [&](const ReclaimVictim& victim) { return victim.uid == uid; });
  }
  return true;
}

void Engine::Impl::NextEviction(const std::string& name, Instant now) {
  const auto found = reclaims.runs.find(name);
  if (found == reclaims.runs.end()) return;
  ReclaimRun& run = found->second;
  Reclaim& reclaim = reclaims.all.at(name);
  if (run.asked || (run.retry_at && now < *run.retry_at)) return;
  const auto next =
      std::ranges::find_if(reclaim.victims, [](const auto& victim) { return !IsTaken(victim); });
  if (next == reclaim.victims.end()) return SeeIfReserved(reclaim, now);
  if (run.checked != version()) {
    if (!Revalidate(reclaim, now)) {
      TRANCHE_MARK(reclaim_plan_overtaken);
      return Finish(reclaim, ReclaimPhase::kAborted, "Changed", now);
    }
    run.checked = version();
    // Perhaps nobody else has to go.
    return NextEviction(name, now);
  }
  // Another reclaim has asked for work of this owner: how that ends decides whether it may go on.
  const bool contested = std::ranges::any_of(reclaims.runs, [&](const auto& other) {
    if (!other.second.asked || other.first == name) return false;
    const Reclaim& rival = reclaims.all.at(other.first);
    return std::ranges::any_of(rival.victims, [&](const ReclaimVictim& victim) {
      return victim.uid == *other.second.asked && victim.owner == next->owner;
    });
  });
  if (contested) return;
  run.retry_at.reset();
  run.asked = next->uid;
  if (reclaim.phase == ReclaimPhase::kPlanned) {
    reclaim.phase = ReclaimPhase::kEvicting;
    Changed(reclaim);
  }
  outbox.reclaims().evictions.push_back({name, next->pod, next->uid, next->grace});
}

// Would the pod be taken where its room is kept?
bool Engine::Impl::FitsItsEarmark(const ReclaimMember& member, Instant now) {
  const NodeId id = names.Find(member.node.str());
  const PodRecord* record = Find(member.uid);
  if (record == nullptr || id == kNoNode) return false;
  const ScopedRemoval lift(*this, member.uid, now, SharesWith(member.uid));
  const RequestContext context = ContextOf(*record->request);
  if (context.whole != Reason::kNone || nodes[id] == nullptr) return false;
  ForgetKindAnswers();
  return hot[id].closed == Reason::kNone && Fits(context, id) == Reason::kNone &&
         AskQuota(context, id, now).reason == Reason::kNone;
}

void Engine::Impl::SeeIfReserved(Reclaim& reclaim, Instant now) {
  if (reclaim.finished() || reclaim.phase == ReclaimPhase::kReserved) return;
  if (reclaim.gone() < reclaim.victims.size()) return;
  if (reclaim.members.empty()) return Finish(reclaim, ReclaimPhase::kDone, "", now);
  // Others that were leaving already, and were counted on, may still be there.
  const bool ready = std::ranges::all_of(reclaim.members, [&](const ReclaimMember& member) {
    return member.placed || FitsItsEarmark(member, now);
  });
  if (!ready) {
    if (now < LastGone(reclaim) + options.reservation_ttl) return;
    return Finish(reclaim, ReclaimPhase::kAborted, "Changed", now);
  }
  reclaim.phase = ReclaimPhase::kReserved;
  reclaim.reserved_at = now;
  Changed(reclaim);
  for (const ReclaimMember& member : reclaim.members) {
    if (member.placed) continue;
    // kube-scheduler may have taken the nomination back, and have tried before we knew.
    outbox.reclaims().nominations.push_back({member.pod, member.uid, member.node});
    outbox.Requeue(member.pod, member.uid);
  }
}

void Engine::SettleEviction(const std::string& name, const PodUid& uid, EvictionOutcome outcome,
                            std::optional<Millis> retry_after, Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  PreemptionState& books = impl.reclaims;
  const auto found = books.runs.find(name);
  if (outcome == EvictionOutcome::kAccepted) impl.NoteEvicted(name, uid, now);
  if (found == books.runs.end() || found->second.asked != uid) return;
  ReclaimRun& run = found->second;
  Reclaim& reclaim = books.all.at(name);
  run.asked.reset();
  switch (outcome) {
    case EvictionOutcome::kAccepted:
      run.tries = 0;
      break;
    case EvictionOutcome::kGone:
      for (ReclaimVictim& victim : reclaim.victims) {
        if (victim.uid == uid && !victim.evicted_at) victim.evicted_at = now;
      }
      // The watch tells when it holds nothing; of one we never heard of nobody will.
      if (impl.Find(uid) == nullptr) impl.NoteVictimGone(uid, now);
      break;
    case EvictionOutcome::kBlocked:
      TRANCHE_MARK(reclaim_eviction_blocked);
      books.refused_until[uid] = now + std::max(retry_after.value_or(kRefusalPause), kRefusalPause);
      return impl.Finish(reclaim, ReclaimPhase::kAborted, "PDBBlocked", now);
    case EvictionOutcome::kForbidden:
      TRANCHE_MARK(reclaim_eviction_forbidden);
      books.refused_until[uid] = now + kForbiddenPause;
      return impl.Finish(reclaim, ReclaimPhase::kAborted, "Forbidden", now);
    case EvictionOutcome::kFailed:
      TRANCHE_MARK(reclaim_eviction_answer_lost);
      run.retry_at = now + std::min(kRetryFirst * (1 << std::min(run.tries++, 5)), kRetryLast);
      return;
  }
  impl.NextEviction(name, now);
}

// The API server took it: history, and what the owner is due.
void Engine::Impl::NoteEvicted(const std::string& name, const PodUid& uid, Instant now) {
  const auto found = reclaims.all.find(name);
  if (found == reclaims.all.end()) return;
  Reclaim& reclaim = found->second;
  const auto victim = std::ranges::find(reclaim.victims, uid, &ReclaimVictim::uid);
  if (victim == reclaim.victims.end() || victim->evicted_at) return;
  const auto of_owner = [&](const ReclaimVictim& other) { return other.owner == victim->owner; };
  const bool first = std::ranges::none_of(reclaim.victims, [&](const ReclaimVictim& other) {
    return of_owner(other) && other.evicted_at;
  });
  victim->evicted_at = now;
  if (first) {
    // A gang counts once, with all its pods.
    reclaims.history.Note(victim->owner, victim->leaf,
                          std::ranges::count_if(reclaim.victims, of_owner), now);
    reclaims.returning[victim->owner] = now;
    NoteChange();
  }
  if (PodRecord* record = Find(uid)) {
    record->traits.evicted_at = now;
    record->traits.evicted_state = victim->state;
  }
  Changed(reclaim);
}

// ---- news about pods --------------------------------------------------------------------------

void Engine::Impl::NoteVictimLeaving(const PodUid& uid, Instant now) {
  const auto found = reclaims.of_victim.find(uid);
  if (found == reclaims.of_victim.end()) return;
  Reclaim& reclaim = reclaims.all.at(found->second);
  for (ReclaimVictim& victim : reclaim.victims) {
    // Somebody else took it away, or the answer to our eviction is still on its way.
    if (victim.uid == uid && !victim.evicted_at && reclaims.runs.at(reclaim.name).asked != uid) {
      victim.evicted_at = now;
    }
  }
}

void Engine::Impl::NoteVictimGone(const PodUid& uid, Instant now) {
  const auto found = reclaims.of_victim.find(uid);
  if (found == reclaims.of_victim.end()) return;
  const std::string name = found->second;
  Reclaim& reclaim = reclaims.all.at(name);
  for (ReclaimVictim& victim : reclaim.victims) {
    if (victim.uid != uid || victim.gone_at) continue;
    victim.gone_at = now;
    Changed(reclaim);
  }
  ReclaimRun& run = reclaims.runs.at(name);
  if (run.asked == uid) run.asked.reset();
  NoteChange();
  NextEviction(name, now);
}

void Engine::Impl::NoteMemberGone(const PodUid& uid, Instant now) {
  ForgetHungry(uid);
  reclaims.returned.erase(uid);
  reclaims.avoided.erase(uid);
  if (PodRecord* record = Find(uid)) EndNominated(uid, *record, now);
  const auto found = reclaims.of_member.find(uid);
  if (found == reclaims.of_member.end()) return;
  TRANCHE_MARK(reclaim_preemptor_gone);
  Finish(reclaims.all.at(found->second), ReclaimPhase::kAborted, "PreemptorGone", now);
}

void Engine::Impl::NoteMemberPlaced(const PodUid& uid, const NodeName& node, Instant now) {
  ForgetHungry(uid);
  reclaims.avoided.erase(uid);
  PodRecord& record = *Find(uid);
  EndNominated(uid, record, now);
  if (std::exchange(record.within_nominal, false)) {
    outbox.reclaims().nominal_waits.push_back(now - record.waits_since);
  }
  if (reclaims.returned.erase(uid) > 0) reclaims.returning.erase(record.traits.owner);
  const auto found = reclaims.of_member.find(uid);
  if (found == reclaims.of_member.end()) return;
  Reclaim& reclaim = reclaims.all.at(found->second);
  bool all = true, elsewhere = false;
  for (ReclaimMember& member : reclaim.members) {
    if (member.uid == uid) {
      member.placed = true;
      elsewhere = member.node != node;
    }
    all &= member.placed;
  }
  DropEarmark(uid, record, now);
  const bool entitled = reclaim.rule == ReclaimRule::kR1 || reclaim.rule == ReclaimRule::kR2a;
  if (!entitled) {
    const GpuClass* gpu_class = set->ClassOf(record.request->priority_class);
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

// ---- time -------------------------------------------------------------------------------------

void Engine::Impl::TendReclaims(Instant now) {
  std::vector<std::string> names_of_runs;
  for (const auto& [name, run] : reclaims.runs) names_of_runs.push_back(name);
  for (const std::string& name : names_of_runs) {
    const auto run = reclaims.runs.find(name);
    if (run == reclaims.runs.end()) continue;
    Reclaim& reclaim = reclaims.all.at(name);
    if (reclaim.phase == ReclaimPhase::kReserved) {
      if (now < *reclaim.reserved_at + options.reservation_ttl) continue;
      for (const ReclaimMember& member : reclaim.members) {
        if (member.placed) continue;
        AvoidedNode& avoided = reclaims.avoided[member.uid][member.node];
        avoided.until = now + kAvoidFirst * (1 << std::min(avoided.times++, kMostAvoidDoublings));
      }
      TRANCHE_MARK(reclaim_unclaimed);
      Finish(reclaim, ReclaimPhase::kAborted, "Unclaimed", now);
      continue;
    }
    const bool stuck = std::ranges::any_of(reclaim.victims, [&](const ReclaimVictim& victim) {
      const PodRecord* record = Find(victim.uid);
      return !victim.gone_at && record != nullptr && record->traits.leaves_at &&
             now > *record->traits.leaves_at + kStuckSlack;
    });
    if (!stuck) continue;
    TRANCHE_MARK(reclaim_victim_stuck);
    Finish(reclaim, ReclaimPhase::kAborted, "VictimStuck", now);
  }
  // Only then who goes next: what has ended above may have changed who is in quota.
  for (const std::string& name : names_of_runs) NextEviction(name, now);
  std::vector<PodUid> unclaimed_nominations;
  for (const auto& [uid, until] : reclaims.nominated_until) {
    if (until <= now) unclaimed_nominations.push_back(uid);
  }
  for (const PodUid& uid : unclaimed_nominations) EndNominated(uid, *Find(uid), now);
  std::erase_if(reclaims.refused_until, [now](const auto& entry) { return entry.second <= now; });
  std::erase_if(reclaims.returning,
                [now](const auto& entry) { return now - entry.second > kRecordKept; });
  reclaims.history.Forget(now);
  while (!reclaims.ended.empty() && (now - reclaims.ended.front().first > kRecordKept ||
                                     reclaims.ended.size() > kMostRecords)) {
    reclaims.all.erase(reclaims.ended.front().second);
    reclaims.ended.pop_front();
  }
}

std::optional<Instant> Engine::Impl::ReclaimsDue(Instant now) const {
  std::optional<Instant> next;
  const auto sooner = [&next](Instant at) { next = next ? std::min(*next, at) : at; };
  for (const auto& [uid, until] : reclaims.nominated_until) sooner(until);
  for (const auto& [name, run] : reclaims.runs) {
    const Reclaim& reclaim = reclaims.all.at(name);
    if (reclaim.phase == ReclaimPhase::kReserved) {
      sooner(*reclaim.reserved_at + options.reservation_ttl);
      continue;
    }
    if (run.retry_at) sooner(std::max(*run.retry_at, now));
    if (reclaim.gone() == reclaim.victims.size()) {
      sooner(LastGone(reclaim) + options.reservation_ttl);
    }
    for (const ReclaimVictim& victim : reclaim.victims) {
      const auto record = pods.find(victim.uid);
      if (victim.gone_at || record == pods.end() || !record->second.traits.leaves_at) continue;
      sooner(*record->second.traits.leaves_at + kStuckSlack + Millis{1});
    }
  }
  return next;
}

// ---- metering ---------------------------------------------------------------------------------

// In-quota victims, and those that publish checkpoints, get back the hours of the work they lost.
void Engine::Impl::RefundLostWork(const PodUid& uid, const PodRecord& record, Instant at) {
  const PodTraits& traits = record.traits;
  const HeldWork* work = book.Find(uid);
  if (!traits.evicted_at || work == nullptr || !work->running) return;
  if (traits.evicted_state != QuotaState::kInQuota && !traits.checkpoint) return;
  const GpuClass* gpu_class = set->ClassNamed(work->workload_class);
  WorkAtRisk risk;
  risk.running = work->running;
  risk.checkpoint = traits.checkpoint;
  risk.cap = gpu_class == nullptr ? GpuClass().lost_work_cap : gpu_class->lost_work_cap;
  // What a lost node has been refunded for already ends where its silence begins.
  const NodeId id = names.Find(record.Place().str());
  Instant until = at;
  if (id != kNoNode && nodes[id] != nullptr && nodes[id]->lost_since) {
    until = std::min(until, *nodes[id]->lost_since);
  }
  const Instant from = std::max(at - LostRuntime(risk, std::nullopt, at), work->since);
  if (from >= until) return;
  MeterEvent refund = Event(MeterKind::kRefund, uid, record.interval, record.Place(), *work, from);
  refund.until = until;
  refund.note = "LostWork";
  TRANCHE_MARK(lost_work_refunded);
  outbox.Journal(std::move(refund));
  book.Refund(uid, {from, until});
}

}  // namespace tranche
