#include "scheduler/engine/preemption/releases.h"

#include <algorithm>
#include <utility>

namespace tranche {
namespace {

// Guards end and pods come and go: what could not be done is looked at again after this.
constexpr Millis kReleaseGap{10'000};
// Pods of one record of a drain, or one gang: each step looks at all of them again, and writes them
// all.
constexpr std::size_t kMostDrained = 100;

bool Rests(const PlanMemory& memory, uint64_t version, Instant now) {
  const bool changed = memory.version != version && now == memory.planned;
  return !changed && now < memory.not_before;
}

bool SameLines(const GpuQuota* left, const GpuQuota* right) {
  return left != nullptr && right != nullptr && left->lines == right->lines &&
         left->parent == right->parent;
}

}  // namespace

// Only an edit shrinks: a team that merely borrows is asked back by those who need it.
void Releases::NoteShrunk(const PolicySet& before) {
  for (const GpuQuota& leaf : cluster_.set->quotas) {
    if (!leaf.namespaces || leaf.on_shrink == OnShrink::kKeep) {
      reclaims_.shrinking.erase(leaf.name);
      continue;
    }
    for (QuotaId id = cluster_.book.tree().Find(leaf.name); id != kNoQuota;
         id = cluster_.book.tree().parent(id)) {
      const std::string& name = cluster_.book.tree().name(id);
      const GpuQuota* then = before.QuotaNamed(name);
      if (then != nullptr && !SameLines(then, cluster_.set->QuotaNamed(name)))
        reclaims_.shrinking.insert(leaf.name);
    }
  }
  std::erase_if(reclaims_.shrinking, [this](const std::string& name) {
    return cluster_.set->QuotaNamed(name) == nullptr;
  });
}

bool Releases::Runs(ReclaimRule rule, const std::string& source) const {
  return std::ranges::any_of(reclaims_.runs, [&](const auto& run) {
    const Reclaim& reclaim = reclaims_.all.at(run.first);
    if (reclaim.rule != rule || reclaim.source != source) return false;
    // A drain goes on with its next pods while those asked before are still leaving.
    return rule != ReclaimRule::kDrain ||
           std::ranges::any_of(reclaim.victims, [](const ReclaimVictim& victim) {
             return !victim.evicted_at && !victim.gone_at;
           });
  });
}

std::optional<PlanOutcome> Releases::Plan(Instant now) {
  const auto turn = [&](const std::string& key) -> PlanMemory* {
    PlanMemory& memory = preemptors_.MemoryOf(key);
    if (memory.version != 0 && Rests(memory, cluster_.version(), now)) return nullptr;
    memory.version = cluster_.version();
    memory.planned = now;
    memory.not_before = now + kReleaseGap;
    return &memory;
  };
  for (const std::size_t budget : cluster_.book.BudgetsToDrain()) {
    const std::string& name = cluster_.set->budgets[budget].name;
    if (Runs(ReclaimRule::kDrain, name) || turn("drain/" + name) == nullptr) continue;
    return PlanDrain(budget, now);
  }
  for (const std::string& leaf : reclaims_.shrinking) {
    if (Runs(ReclaimRule::kShrink, leaf) || turn("shrink/" + leaf) == nullptr) continue;
    return PlanShrinkOf(std::string(leaf), now);
  }
  if (const std::optional<PodUid> uid = limits_.Next(now)) return PlanEndOf(*uid, now);
  return std::nullopt;
}

std::optional<Instant> Releases::DueAt(Instant now) const {
  std::optional<Instant> next;
  const auto look = [&](ReclaimRule rule, const std::string& source, const std::string& key) {
    // Nothing more is planned until it is through.
    if (Runs(rule, source)) return;
    const PlanMemory* memory = preemptors_.FindMemory(key);
    const Instant at = memory == nullptr ? now : std::max(now, memory->not_before);
    next = next ? std::min(*next, at) : at;
  };
  for (const std::size_t budget : cluster_.book.BudgetsToDrain())
    look(ReclaimRule::kDrain, cluster_.set->budgets[budget].name,
         "drain/" + cluster_.set->budgets[budget].name);
  for (const std::string& leaf : reclaims_.shrinking)
    look(ReclaimRule::kShrink, leaf, "shrink/" + leaf);
  return next;
}

std::map<std::string, Releases::Drained> Releases::UnitsToDrain(std::size_t budget,
                                                                Instant now) const {
  std::map<std::string, Drained> units;
  const auto goes = [&](const PodUid& uid) {
    const PodRecord* record = parts_.claims.Find(uid);
    return record == nullptr || reclaims_.of_victim.contains(uid) || record->traits.leaves_at;
  };
  for (const auto& [key, work] : cluster_.book.holdings()) {
    if (!cluster_.book.Meters(budget, work)) continue;
    // A claim is held by all who use it.
    const std::vector<PodUid> pods =
        IsKeyOfClaim(key) ? parts_.claims.UsersOf(key).value_or(std::vector<PodUid>())
                          : std::vector<PodUid>{key};
    if (pods.empty() || std::ranges::any_of(pods, goes)) continue;
    const PodRecord& first = *parts_.claims.Find(pods.front());
    const std::string gang = GangKeyOf(*first.request);
    Drained& unit = units[gang.empty() ? pods.front().str() : gang];
    for (const PodUid& uid : pods) {
      const PodRecord& record = *parts_.claims.Find(uid);
      const HeldWork own = IsKeyOfClaim(key) ? parts_.claims.AsWorkOf(record, work) : work;
      const GuardVerdict verdict = guards_.Of(uid, record, own, now);
      if (std::ranges::find(unit.pods, uid) == unit.pods.end()) unit.pods.push_back(uid);
      unit.untouchable |=
          !verdict.touchable || work.quota == kNoQuota || guards_.IsWithinNominal(own);
      unit.guarded |= verdict.guard != Guard::kNone;
    }
  }
  return units;
}

PlanOutcome Releases::PlanDrain(std::size_t budget, Instant now) {
  Reclaim reclaim;
  reclaim.rule = ReclaimRule::kDrain;
  reclaim.source = cluster_.set->budgets[budget].name;
  reclaim.leaf = cluster_.set->budgets[budget].quota_ref;
  reclaim.snapshot = cluster_.version();
  PlanOutcome outcome;
  cluster_.book.RefreshMarks();
  for (const auto& [key, unit] : UnitsToDrain(budget, now)) {
    if (unit.untouchable) continue;
    if (unit.guarded) {
      outcome.result = PlanOutcome::Result::kBlocked;
      continue;
    }
    if (!reclaim.victims.empty() && reclaim.victims.size() + unit.pods.size() > kMostDrained) {
      // The rest follows as soon as these have been asked.
      preemptors_.MemoryOf("drain/" + reclaim.source).not_before = now;
      break;
    }
    ++reclaim.cost.gangs;
    for (const PodUid& uid : unit.pods) {
      const bool known =
          std::ranges::find(reclaim.victims, uid, &ReclaimVictim::uid) != reclaim.victims.end();
      if (!known) AddVictim(uid, reclaim, now);
    }
  }
  if (reclaim.victims.empty()) return outcome;
  const std::string stem = "drain-" + reclaim.source;
  return BeginAll(std::move(reclaim), stem, now);
}

void Releases::AddVictim(const PodUid& uid, Reclaim& reclaim, Instant now) {
  const HeldWork work = *parts_.claims.WorkOf(uid);
  const PodRecord& record = *parts_.claims.Find(uid);
  ReclaimVictim victim =
      runs_.VictimOf(uid, guards_.LossOf(record, work, CheckpointAges(), now), now);
  // A claim is marked, not the pods that use it.
  const bool by_itself = cluster_.book.Find(uid) != nullptr;
  victim.state =
      by_itself ? cluster_.book.StateOf(uid).value_or(QuotaState::kBorrowed) : work.marks.state;
  reclaim.cost.lost_gpu_ms = AddSaturating(reclaim.cost.lost_gpu_ms, victim.lost_gpu_ms);
  reclaim.victims.push_back(std::move(victim));
}

PlanOutcome Releases::BeginAll(Reclaim reclaim, const std::string& stem, Instant now) {
  reclaim.cost.pods = static_cast<int64_t>(reclaim.victims.size());
  reclaim.optimal = true;  // there is nothing to choose
  PlanOutcome outcome;
  outcome.result = PlanOutcome::Result::kPlan;
  outcome.rule = reclaim.rule;
  outcome.optimal = true;
  reclaim.name = runs_.NameOf(stem, now);
  runs_.Begin(std::move(reclaim), now);
  return outcome;
}

PlanOutcome Releases::PlanShrinkOf(const std::string& leaf, Instant now) {
  const GpuQuota& spec = *cluster_.set->QuotaNamed(leaf);
  Preemptor nobody;
  nobody.context.membership.leaf = cluster_.book.tree().Find(leaf);
  ReclaimCase reclaim_case(parts_, nobody, now, {});
  const ShrinkTarget target =
      spec.on_shrink == OnShrink::kDrain ? ShrinkTarget::kNominal : ShrinkTarget::kReach;
  ShrinkPlan plan = PlanShrink(reclaim_case.problem(), nobody.context.membership.leaf, target);
  PlanOutcome outcome;
  if (plan.victims.empty()) {
    if (plan.meets_target) {
      reclaims_.shrinking.erase(leaf);
    } else if (reclaim_case.any_guarded()) {
      outcome.result = PlanOutcome::Result::kBlocked;
    }
    return outcome;
  }
  Reclaim reclaim;
  reclaim.rule = ReclaimRule::kShrink;
  reclaim.source = leaf;
  reclaim.leaf = leaf;
  reclaim.snapshot = cluster_.version();
  ReclaimPlan chosen;
  chosen.victims = std::move(plan.victims);
  reclaim.victims = planner_.VictimsOf(reclaim_case, chosen, now);
  reclaim.cost = std::move(plan.cost);
  reclaim.cost.order.clear();
  reclaim.optimal = plan.optimal;
  outcome.result = PlanOutcome::Result::kPlan;
  outcome.rule = ReclaimRule::kShrink;
  outcome.optimal = plan.optimal;
  reclaim.name = runs_.NameOf("shrink-" + leaf, now);
  runs_.Begin(std::move(reclaim), now);
  return outcome;
}

// A gang goes whole: what is left of one does nothing with its devices.
PlanOutcome Releases::PlanEndOf(const PodUid& uid, Instant now) {
  PlanOutcome outcome;
  // Other work may be borrowed by now.
  if (cluster_.emptied_nodes > 0) cluster_.book.RefreshMarks();
  const std::optional<RunEnd> end = limits_.EndOf(uid);
  if (!end) {
    // It holds nothing that anybody knows of, or may run on.
    limits_.Forget(uid);
    return outcome;
  }
  if (end->at > now) {
    // What was measured of it is too old by now, and it ends by another rule.
    limits_.Note(uid);
    return outcome;
  }
  // Until its pods have gone, or whatever stands in the way has.
  limits_.Postpone(uid, now + kReleaseGap);
  const auto gang = gangs_.books().all.find(parts_.claims.Find(uid)->gang);
  const std::set<PodUid> together =
      gang == gangs_.books().all.end() ? std::set<PodUid>{uid} : gang->second.members;
  Reclaim reclaim;
  reclaim.rule = end->rule;
  reclaim.source = end->source;
  reclaim.snapshot = cluster_.version();
  reclaim.cost.gangs = 1;
  std::vector<const PodRecord*> pods;
  for (const PodUid& member : together) {
    const PodRecord& record = *parts_.claims.Find(member);
    const std::optional<HeldWork> work = parts_.claims.WorkOf(member);
    const bool leaves = record.traits.leaves_at || reclaims_.of_victim.contains(member);
    if (!work || record.node.empty() || leaves) continue;
    const RequestContext context = rules_.ContextOf(*record.request);
    const bool off = context.policy->actor == PreemptionActor::kOff;
    const bool stays =
        (!HadItsTime(end->rule) && guards_.IsNeverEvicted(*work)) ||
        (MovesWork(end->rule) && guards_.Of(member, record, *work, now).guard != Guard::kNone);
    if (off || stays || !guards_.MayStop(record, *work)) return outcome;
    pods.push_back(&record);
    AddVictim(member, reclaim, now);
    reclaim.leaf = work->leaf;
  }
  if (reclaim.victims.empty()) return outcome;
  outcome.result = PlanOutcome::Result::kBlocked;
  if (!guards_.BudgetsAllow(pods, now)) return outcome;
  const PodName& first = reclaim.victims.front().pod;
  const char* const why = end->rule == ReclaimRule::kMaintenance    ? "pool"
                          : end->rule == ReclaimRule::kUnhealthy    ? "ill"
                          : end->rule == ReclaimRule::kIdle         ? "idle"
                          : end->rule == ReclaimRule::kInterruption ? "gone"
                          : MovesWork(end->rule)                    ? "move"
                                                                    : "time";
  const std::string stem = fmt::format("{}-", why) + first.ns + "-" + first.name;
  return BeginAll(std::move(reclaim), stem, now);
}

// All or none: a part of a gang that cannot be completed gives back what it has.
void Releases::EvictPart(const std::string& key, Instant now) {
  const Gang& gang = gangs_.books().all.at(key);
  Reclaim reclaim;
  reclaim.rule = ReclaimRule::kGang;
  reclaim.source = key;
  reclaim.snapshot = cluster_.version();
  for (const PodUid& uid : gang.members) {
    const PodRecord& record = cluster_.pods.at(uid);
    if (record.node.empty() || record.traits.leaves_at || reclaims_.of_victim.contains(uid))
      continue;
    // Classes that are never preempted stay, and so does what nobody would make anew.
    const HeldWork* work = cluster_.book.Find(uid);
    if (work == nullptr || !record.traits.evictable) continue;
    if (guards_.IsNeverEvicted(*work)) continue;
    const RequestContext context = rules_.ContextOf(*record.request);
    if (context.policy->actor == PreemptionActor::kOff) continue;
    const std::optional<Allocation> allocation = AllocationOn(cluster_, record.node, uid);
    // What others bound is not ours to take away.
    if (!allocation || allocation->epoch < 1) continue;
    ReclaimVictim victim = runs_.VictimOf(uid, 0, now);
    reclaim.leaf = victim.leaf;
    reclaim.victims.push_back(std::move(victim));
  }
  if (reclaim.victims.empty()) return;
  reclaim.cost.pods = static_cast<int64_t>(reclaim.victims.size());
  reclaim.cost.gangs = 1;
  reclaim.optimal = true;
  const PodName& first = reclaim.victims.front().pod;
  reclaim.name = runs_.NameOf("gang-" + first.ns + "-" + first.name, now);
  runs_.Begin(std::move(reclaim), now);
}

}  // namespace tranche
