// Giving back without anybody who waits: budgets that drain, and quotas that were lowered.
#include <algorithm>
#include <utility>

#include "scheduler/engine/reclaim_case.h"

namespace tranche {
namespace {

// Guards end and pods come and go: what could not be done is looked at again after this.
constexpr Millis kReleaseGap{10'000};

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
void Engine::Impl::NoteShrunk(const PolicySet& before) {
  for (const GpuQuota& leaf : set->quotas) {
    if (!leaf.namespaces || leaf.on_shrink == OnShrink::kKeep) {
      reclaims.shrinking.erase(leaf.name);
      continue;
    }
    for (QuotaId id = book.tree().Find(leaf.name); id != kNoQuota; id = book.tree().parent(id)) {
      const std::string& name = book.tree().name(id);
      const GpuQuota* then = before.QuotaNamed(name);
      if (then != nullptr && !SameLines(then, set->QuotaNamed(name)))
        reclaims.shrinking.insert(leaf.name);
    }
  }
  std::erase_if(reclaims.shrinking,
                [this](const std::string& name) { return set->QuotaNamed(name) == nullptr; });
}

PlanOutcome Engine::Impl::PlanDrain(std::size_t budget, Instant now) {
  Reclaim reclaim;
  reclaim.rule = ReclaimRule::kDrain;
  reclaim.source = set->budgets[budget].name;
  reclaim.leaf = set->budgets[budget].quota_ref;
  reclaim.snapshot = version();
  std::set<std::string> broken;
  PlanOutcome outcome;
  for (const auto& [uid, work] : book.holdings()) {
    const PodRecord* record = Find(uid);
    if (record == nullptr || !book.Meters(budget, work) || reclaims.of_victim.contains(uid) ||
        record->traits.leaves_at) {
      continue;
    }
    const GuardVerdict verdict = guards.Of(uid, *record, work, now);
    if (!verdict.touchable) continue;
    if (verdict.guard != Guard::kNone) {
      outcome.result = PlanOutcome::Result::kBlocked;
      continue;
    }
    ReclaimVictim victim = VictimOf(uid, guards.LossOf(*record, work, CheckpointAges(), now), now);
    victim.state = book.StateOf(uid).value_or(QuotaState::kBorrowed);
    broken.insert(work.gang.empty() ? uid.str() : work.pod.ns + "/" + work.gang);
    reclaim.cost.lost_gpu_ms = AddSaturating(reclaim.cost.lost_gpu_ms, victim.lost_gpu_ms);
    reclaim.victims.push_back(std::move(victim));
  }
  if (reclaim.victims.empty()) return outcome;
  reclaim.cost.pods = static_cast<int64_t>(reclaim.victims.size());
  reclaim.cost.gangs = static_cast<int64_t>(broken.size());
  reclaim.optimal = true;  // there is nothing to choose
  outcome.result = PlanOutcome::Result::kPlan;
  outcome.rule = ReclaimRule::kDrain;
  outcome.optimal = true;
  reclaim.name = ReclaimName("drain-" + reclaim.source, now);
  NextEviction(Begin(std::move(reclaim), now), now);
  return outcome;
}

PlanOutcome Engine::Impl::PlanShrinkOf(const std::string& leaf, Instant now) {
  const GpuQuota& spec = *set->QuotaNamed(leaf);
  Aggressor nobody;
  nobody.context.standing.leaf = book.tree().Find(leaf);
  ReclaimCase reclaim_case(*this, nobody, now, {});
  const ShrinkTarget target =
      spec.on_shrink == OnShrink::kDrain ? ShrinkTarget::kNominal : ShrinkTarget::kReach;
  ShrinkPlan plan = PlanShrink(reclaim_case.problem(), nobody.context.standing.leaf, target);
  PlanOutcome outcome;
  if (plan.victims.empty()) {
    if (plan.meets_target) {
      reclaims.shrinking.erase(leaf);
    } else if (reclaim_case.any_guarded()) {
      outcome.result = PlanOutcome::Result::kBlocked;
    }
    return outcome;
  }
  Reclaim reclaim;
  reclaim.rule = ReclaimRule::kShrink;
  reclaim.source = leaf;
  reclaim.leaf = leaf;
  reclaim.snapshot = version();
  ReclaimPlan chosen;
  chosen.victims = std::move(plan.victims);
  reclaim.victims = VictimsOf(reclaim_case, chosen, now);
  reclaim.cost = std::move(plan.cost);
  reclaim.cost.order.clear();
  reclaim.optimal = plan.optimal;
  outcome.result = PlanOutcome::Result::kPlan;
  outcome.rule = ReclaimRule::kShrink;
  outcome.optimal = plan.optimal;
  reclaim.name = ReclaimName("shrink-" + leaf, now);
  NextEviction(Begin(std::move(reclaim), now), now);
  return outcome;
}

bool Engine::Impl::StillReleases(Reclaim& reclaim, const std::vector<PodUid>& left, Instant now) {
  if (reclaim.rule == ReclaimRule::kGang) {
    const auto gang = gangs.all.find(reclaim.source);
    return gang != gangs.all.end() && !gang->second.started &&
           std::ranges::all_of(left, [&](const PodUid& uid) {
             return gang->second.members.contains(uid) && book.Find(uid) != nullptr;
           });
  }
  for (const PodUid& uid : left) {
    const PodRecord* record = Find(uid);
    const HeldWork* work = book.Find(uid);
    if (record == nullptr || work == nullptr) return false;
    const GuardVerdict verdict = guards.Of(uid, *record, *work, now);
    if (!verdict.touchable || verdict.guard != Guard::kNone) return false;
    // The record may have been written by somebody else.
    if (reclaim.rule == ReclaimRule::kShrink && work->leaf != reclaim.source) return false;
  }
  if (reclaim.rule == ReclaimRule::kDrain) {
    return std::ranges::any_of(book.BudgetsToDrain(), [&](std::size_t budget) {
      return set->budgets[budget].name == reclaim.source &&
             std::ranges::all_of(
                 left, [&](const PodUid& uid) { return book.Meters(budget, *book.Find(uid)); });
    });
  }
  const GpuQuota* spec = set->QuotaNamed(reclaim.source);
  if (spec == nullptr || spec->on_shrink == OnShrink::kKeep) return false;
  Aggressor nobody;
  nobody.context.standing.leaf = book.tree().Find(reclaim.source);
  for (const PodUid& uid : left) reclaims.of_victim.erase(uid);
  ReclaimCase reclaim_case(*this, nobody, now, {});
  const ShrinkTarget target =
      spec->on_shrink == OnShrink::kDrain ? ShrinkTarget::kNominal : ShrinkTarget::kReach;
  const ShrinkPlan plan = PlanShrink(reclaim_case.problem(), nobody.context.standing.leaf, target);
  for (const PodUid& uid : left) reclaims.of_victim[uid] = reclaim.name;
  return !plan.victims.empty();
}

std::optional<PlanOutcome> Engine::Impl::PlanRelease(Instant now) {
  const auto turn = [&](const std::string& key) -> PlanMemory* {
    PlanMemory& memory = reclaims.memory[key];
    if (memory.version != 0 && Rests(memory, version(), now)) return nullptr;
    memory.version = version();
    memory.planned = now;
    memory.not_before = now + kReleaseGap;
    return &memory;
  };
  const auto runs = [&](ReclaimRule rule, const std::string& source) {
    return std::ranges::any_of(reclaims.runs, [&](const auto& run) {
      const Reclaim& reclaim = reclaims.all.at(run.first);
      return reclaim.rule == rule && reclaim.source == source;
    });
  };
  for (const std::size_t budget : book.BudgetsToDrain()) {
    const std::string& name = set->budgets[budget].name;
    if (runs(ReclaimRule::kDrain, name) || turn("drain/" + name) == nullptr) continue;
    return PlanDrain(budget, now);
  }
  for (const std::string& leaf : reclaims.shrinking) {
    if (runs(ReclaimRule::kShrink, leaf) || turn("shrink/" + leaf) == nullptr) continue;
    return PlanShrinkOf(std::string(leaf), now);
  }
  return std::nullopt;
}

std::optional<Instant> Engine::Impl::ReleaseAt(Instant now) {
  std::optional<Instant> next;
  const auto look = [&](const std::string& key) {
    const auto memory = reclaims.memory.find(key);
    const Instant at =
        memory == reclaims.memory.end() ? now : std::max(now, memory->second.not_before);
    next = next ? std::min(*next, at) : at;
  };
  for (const std::size_t budget : book.BudgetsToDrain()) look("drain/" + set->budgets[budget].name);
  for (const std::string& leaf : reclaims.shrinking) look("shrink/" + leaf);
  return next;
}

}  // namespace tranche
