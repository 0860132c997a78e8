#include "scheduler/engine/preemption/reclaim_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace tranche {
namespace {

// Between two looks at requests that are alike, doubling while nothing comes of it: what changes in
// a busy cluster seldom helps them. At most this long, or a millisecond for every node: a look
// costs a hundredth of that.
constexpr Millis kPlanGap{250};
constexpr Millis kPlanGapMost{1'000};
constexpr int kMostDoublings = 8;

}  // namespace

// Nothing came of it, and what planning itself touched is no news.
void ReclaimPlanner::Rest(PlanMemory& memory, Instant now) const {
  const Millis most = std::max(kPlanGapMost, Millis(static_cast<int64_t>(cluster_.nodes.size())));
  const Millis gap = kPlanGap * (1 << std::min(memory.misses++, kMostDoublings));
  memory.not_before = now + std::min(gap, most);
  memory.version = cluster_.version();
}

bool ReclaimPlanner::FitsNow(const Preemptor& preemptor, Instant now) const {
  const PodRequest& request = *preemptor.members.front();
  if (preemptor.members.size() != 1 || reclaims_.avoided.contains(request.uid)) return false;
  Selection& selection = parts_.selection;
  Shape* const shape = selection.ShapeOf(preemptor.context);
  selection.BeginFits(request);
  std::set<ChargeKind> refusing;  // kinds of node on which quota refuses
  std::vector<ModelCharge> charge;
  for (const NodeId id : cluster_.names.ascending()) {
    const NodeHot& hot = cluster_.hot[id];
    if (hot.closed != Reason::kNone || refusing.contains(hot.kind)) continue;
    if (selection.Lookup(shape, preemptor.context, id, Taken::kFirmly).reason != Reason::kNone) {
      continue;
    }
    const NodeState& state = cluster_.nodes[id]->state;
    const NodeFacts& facts = state.facts();
    const bool allowed =
        request.constraints == nullptr
            ? Tolerates({}, facts.taints)
            : Suits(*request.constraints, facts.name.str(), facts.labels, facts.taints);
    if (!allowed) continue;
    ChargeAtMost(state.inventory(), request, charge);
    const Admission admission =
        cluster_.book.Admit(preemptor.context.membership, charge, request.expected_runtime, now);
    if (admission.code == AdmissionCode::kAdmitted) return true;
    refusing.insert(hot.kind);
  }
  return false;
}

bool ReclaimPlanner::IsHopeless(const Preemptor& preemptor) const {
  if (preemptor.context.membership.leaf != kNoQuota) return false;
  const int rank = RankOf(preemptor.context.membership.gpu_class);
  return std::ranges::none_of(cluster_.book.work_by_class(), [&](const auto& work) {
    return work.second > 0 && RankOf(cluster_.set->ClassNamed(work.first)) < rank;
  });
}

PlanOutcome ReclaimPlanner::RestWith(const Preemptor& preemptor, PlanOutcome::Result result,
                                     Instant now) {
  PlanMemory& memory = preemptors_.MemoryOf(preemptor);
  memory.planned = now;
  memory.block.reset();
  Rest(memory, now);
  PlanOutcome outcome;
  outcome.result = result;
  return outcome;
}

std::optional<PlanBlock> ReclaimPlanner::BlockOf(const Preemptor& preemptor,
                                                 const ReclaimCase& reclaim_case,
                                                 const ReclaimAnswer& answer, Instant now) const {
  if (!answer.plan) {
    return reclaim_case.any_guarded() ? FindBlock(preemptor, now) : std::nullopt;
  }
  // The Eviction API would refuse: the budgets allow each of them, and not all together.
  const PodUid& first = reclaim_case.pods_of(answer.plan->victims.front()).front();
  return PlanBlock{
      Reason::kPdbBlocked,
      fmt::format("{} and others would have to go, and PodDisruptionBudgets do not allow all of "
                  "them",
                  parts_.claims.Find(first)->request->name.str()),
      {}};
}

PlanOutcome ReclaimPlanner::PlanFor(const PodUid& uid, Instant now) {
  // Others of its gang may have come or gone since it stood in line: it waits with those it has
  // now.
  if (const PodRecord* record = cluster_.Find(uid)) preemptors_.Note(uid, *record);
  const std::optional<Preemptor> found = preemptors_.Of(uid);
  if (!found) {
    preemptors_.Forget(uid);
    return {};
  }
  const Preemptor& preemptor = *found;
  const uint64_t planned_at = cluster_.version();
  if (IsHopeless(preemptor)) return RestWith(preemptor, PlanOutcome::Result::kImpossible, now);
  if (FitsNow(preemptor, now)) return RestWith(preemptor, PlanOutcome::Result::kFits, now);
  const AskedPlan asked = AskPlan(parts_, preemptor, now, {});
  ReclaimCase& reclaim_case = *asked.reclaim_case;
  const ReclaimAnswer& answer = asked.answer;
  PlanOutcome outcome;
  outcome.evaluations = answer.evaluations;
  using Result = ReclaimAnswer::Result;
  const bool breaks_budgets = answer.plan && answer.plan->cost.pdb_violations > 0;
  PlanMemory& memory = preemptors_.MemoryOf(preemptor);
  memory.version = planned_at;
  memory.planned = now;
  memory.block.reset();
  if (answer.result == Result::kPlan && !breaks_budgets) {
    memory.misses = 0;
    memory.not_before = now;
    outcome.result = PlanOutcome::Result::kPlan;
    outcome.rule = answer.plan->rule;
    outcome.optimal = answer.plan->optimal;
    BeginPlan(preemptor, reclaim_case, answer, now);
    return outcome;
  }
  Rest(memory, now);
  switch (answer.result) {
    case Result::kFits:
      outcome.result = PlanOutcome::Result::kFits;
      if (reclaim_case.any_leaving()) {
        memory.block = PlanBlock{Reason::kPreemptionDelayed,
                                 "it fits once pods that are leaving have gone", std::nullopt};
      }
      break;
    case Result::kUnresolved:
      outcome.result = PlanOutcome::Result::kUnresolved;
      break;
    default:
      memory.block = BlockOf(preemptor, reclaim_case, answer, now);
      outcome.result =
          memory.block ? PlanOutcome::Result::kBlocked : PlanOutcome::Result::kImpossible;
      break;
  }
  // What is over already is nothing to wait for, and what planning itself touched is no news.
  if (memory.block && memory.block->until && *memory.block->until <= now)
    memory.block->until.reset();
  memory.version = cluster_.version();
  return outcome;
}

// The pods that would have to go if nothing but time and budgets protected them.
std::optional<PlanBlock> ReclaimPlanner::FindBlock(const Preemptor& preemptor, Instant now) const {
  const AskedPlan asked = AskPlan(parts_, preemptor, now, {.ignore_guards = true});
  const ReclaimCase& relaxed = *asked.reclaim_case;
  const ReclaimAnswer& answer = asked.answer;
  if (answer.result != ReclaimAnswer::Result::kPlan) return std::nullopt;
  PlanBlock block;
  block.reason = Reason::kEvictionBudget;
  for (const int unit : answer.plan->victims) {
    const GuardVerdict& verdict = relaxed.guard_of(unit);
    const PodRecord& victim = *parts_.claims.Find(relaxed.pods_of(unit).front());
    if (verdict.guard == Guard::kNone) {
      if (block.detail.empty()) block.detail = victim.request->name.str();
      continue;
    }
    const bool by_budget = verdict.guard == Guard::kDisruptionBudget;
    block.reason = by_budget || block.reason == Reason::kPdbBlocked ? Reason::kPdbBlocked
                                                                    : Reason::kVictimsProtected;
    const bool later = verdict.until && (!block.until || *verdict.until > *block.until);
    if (later) block.until = verdict.until;
    block.detail = fmt::format("{} would have to go and is protected {}",
                               victim.request->name.str(), GuardName(verdict.guard));
  }
  if (block.reason == Reason::kEvictionBudget) {
    std::optional<HeldWork> work;
    for (const int unit : answer.plan->victims)
      work = parts_.claims.WorkOf(relaxed.pods_of(unit).front());
    const GpuQuota* leaf = !work ? nullptr : cluster_.set->QuotaNamed(work->leaf);
    if (leaf != nullptr && leaf->max_evictions_per_hour > 0) {
      block.until = reclaims_.history.HourFullUntil(leaf->name, leaf->max_evictions_per_hour, now);
    }
    block.detail += " would have to go and is protected by the hourly limit of its team";
  }
  return block;
}

std::vector<ReclaimVictim> ReclaimPlanner::VictimsOf(const ReclaimCase& reclaim_case,
                                                     const ReclaimPlan& plan, Instant now) const {
  std::vector<ReclaimVictim> victims;
  for (const int unit : plan.victims) {
    const VictimUnit& from = reclaim_case.problem().units[static_cast<std::size_t>(unit)];
    for (const PodUid& uid : reclaim_case.pods_of(unit)) {
      ReclaimVictim victim = runs_.VictimOf(uid, reclaim_case.LostOf(uid), now);
      victim.state = from.marks.state;
      victims.push_back(std::move(victim));
    }
  }
  return victims;
}

// The room is kept from here on, and the first victim asked to leave.
void ReclaimPlanner::BeginPlan(const Preemptor& preemptor, ReclaimCase& reclaim_case,
                               const ReclaimAnswer& answer, Instant now) {
  const ReclaimPlan& plan = *answer.plan;
  Reclaim reclaim;
  reclaim.rule = plan.rule;
  const QuotaId leaf = preemptor.context.membership.leaf;
  if (leaf != kNoQuota) reclaim.leaf = cluster_.book.tree().name(leaf);
  reclaim.victims = VictimsOf(reclaim_case, plan, now);
  reclaim.cost = plan.cost;
  reclaim.cost.order.clear();
  reclaim.optimal = plan.optimal;
  reclaim.evaluations = answer.evaluations;
  reclaim.snapshot = cluster_.version();
  const std::vector<ReclaimCase::Seat> seats = reclaim_case.Seats(plan.region, plan.victims);
  std::vector<Earmark> earmarks;
  for (std::size_t i = 0; i < seats.size(); ++i) {
    const PodRequest& request = *preemptor.members[i];
    reclaim.members.push_back(
        {request.name, request.uid, cluster_.names.name(seats[i].node), false});
    earmarks.push_back(earmarks_.EarmarkOf(seats[i].node, request, preemptor.context.membership,
                                           seats[i].picks, now));
  }
  const PodName& first = preemptor.members.front()->name;
  reclaim.name = runs_.NameOf(first.ns + "-" + first.name, now);
  for (std::size_t i = 0; i < earmarks.size(); ++i) {
    const PodUid& member = reclaim.members[i].uid;
    nominations_.End(member, *cluster_.Find(member), now);
    earmarks_.PutEarmark(member, *cluster_.Find(member), std::move(earmarks[i]), now);
    preemptors_.Forget(member);
  }
  runs_.Begin(std::move(reclaim), now);
}

}  // namespace tranche
