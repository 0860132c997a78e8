// What the engine wants done to the cluster, done at once.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "scheduler/foresight/rehearsal.h"

namespace tranche {
namespace {

// In one round.
constexpr int kMostPlansAtOnce = 16;

}  // namespace

EvictionOutcome Rehearsal::Disrupt(const PodFacts& pod) {
  static const Labels kNoLabels;
  const Labels& labels = pod.labels ? *pod.labels : kNoLabels;
  const PodName& name = pod.request.name;
  std::vector<DisruptionBudget*> covering;
  for (DisruptionBudget& budget : disruption_budgets_) {
    if (!budget.Covers(name.ns, name.name, labels)) continue;
    if (budget.allowed <= 0) return EvictionOutcome::kBlocked;
    covering.push_back(&budget);
  }
  for (DisruptionBudget* budget : covering) {
    --budget->allowed;
    budget->disrupted.insert(name.name);
    engine_.SetDisruptionBudget(*budget, now_);
  }
  return EvictionOutcome::kAccepted;
}

void Rehearsal::Evict(const EvictionOrder& order) {
  const auto found = pods_.find(order.uid);
  EvictionOutcome outcome = EvictionOutcome::kGone;
  if (found != pods_.end()) {
    PodFacts& facts = found->second.pod.facts;
    outcome = facts.terminating ? EvictionOutcome::kAccepted : Disrupt(facts);
    if (outcome == EvictionOutcome::kAccepted && !facts.terminating) {
      evicted_.emplace(order.uid, order.pod);
      Tell(Rehearsed::What::kEvicted, found->second);
      facts.terminating = true;
      facts.deletion_at = now_ + order.grace.value_or(facts.grace);
      engine_.UpsertPod(facts, now_);
      coming_.insert({*facts.deletion_at, order.uid, What::kGone});
    }
  }
  engine_.SettleEviction(order.reclaim, order.uid, outcome, std::nullopt, now_);
}

void Rehearsal::TendPlaceholders(AgentWork work) {
  for (const PlaceholderOrder& order : work.placeholders) {
    PodFacts pod;
    pod.request.uid = PodUid(fmt::format("rehearsed-placeholder-{}", ++serial_));
    pod.request.name = order.pod;
    pod.node = order.node;
    pod.phase = PodPhase::kRunning;
    pod.allocation = order.record;
    pod.placeholder = PlaceholderFacts{GpuUuid(fmt::format("GPU-rehearsed-{}", serial_))};
    engine_.UpsertPod(std::move(pod), now_);
  }
  for (const PlaceholderEnd& end : work.placeholder_ends) {
    if (end.uid.empty()) continue;
    engine_.DeletePod(end.uid, now_);
  }
  for (AgentTurn& turn : work.turns) {
    if (turn.granted && turn.allocation) turns_[turn.uid] = *std::move(turn.allocation);
  }
}

void Rehearsal::TakeEffects() {
  // Answers may have effects of their own.
  for (int round = 0; round < kMostRounds; ++round) {
    Effects effects = std::exchange(engine_.effects(), {});
    if (effects.empty()) return;
    if (rules_.metered) {
      for (const MeterEvent& event : effects.metering) rules_.metered(event);
    }
    for (const EvictionOrder& order : effects.reclaims.evictions) Evict(order);
    for (const Nomination& nomination : effects.reclaims.nominations) {
      if (!nomination.node.empty()) urgent_.emplace_back(nomination.uid, nomination.node);
    }
    for (const auto& [name, uid] : effects.requeue) {
      const auto found = pods_.find(uid);
      if (found == pods_.end() || found->second.kind == nullptr) continue;
      Kind& kind = *found->second.kind;
      // Room that no end gave back: any node may have it.
      if (kind.wants_room() && kind.seen == freed_.size()) kind.refused = false;
      ready_.insert({kind.waiting.begin()->first, &kind});
      // Others of its kind may be refused for what concerns them alone.
      if (kind.waiting.begin()->second != &found->second) urgent_.emplace_back(uid, NodeName());
    }
    for (const GateRemoval& removal : effects.ungate) {
      const auto found = pods_.find(removal.uid);
      if (found == pods_.end()) continue;
      PodFacts& facts = found->second.pod.facts;
      (removal.gate == Gate::kQuota ? facts.our_gates.quota : facts.our_gates.gang) = false;
      facts.gated = facts.foreign_gates || facts.our_gates.quota || facts.our_gates.gang;
      engine_.UpsertPod(facts, now_);
      Queue(found->second);
    }
    TendPlaceholders(std::move(effects.agents));
  }
}

bool Rehearsal::Plan() {
  bool planned = false;
  for (int i = 0; i < kMostPlansAtOnce && plans_ < rules_.most_plans; ++i) {
    ++plans_;
    const std::optional<PlanOutcome> outcome = engine_.PlanNext(now_);
    TakeEffects();
    if (!outcome) {
      --plans_;  // nothing was looked for
      break;
    }
    planned = planned || outcome->result == PlanOutcome::Result::kPlan;
  }
  return planned;
}

}  // namespace tranche
