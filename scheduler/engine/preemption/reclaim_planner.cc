#include "scheduler/engine/preemption/reclaim_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "scheduler/engine/selection/pool_windows.h"
#include "scheduler/engine/state/demands.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

// Between two looks at requests that are alike, doubling while nothing comes of it: what changes in
// a busy cluster seldom helps them. At most this long, or a millisecond for every node: a look
// costs a hundredth of that.
constexpr Millis kPlanGap{250};
constexpr Millis kPlanGapMost{1'000};
constexpr int kMostDoublings = 8;

}  // namespace

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
    if (ShutTo(cluster_, preemptor.context, id, now) != Reason::kNone) continue;
    if (selection.Lookup(shape, preemptor.context, id, Taken::kFirmly).reason != Reason::kNone) {
      continue;
    }
    const NodeState& state = cluster_.nodes[id]->state;
    if (!MeetsDemands(state.facts(), request)) continue;
    ChargeAtMost(state.inventory(), request, charge);
    const Admission admission =
        cluster_.book.Admit(preemptor.context.membership, charge, request.expected_runtime, now);
    if (admission.code == AdmissionCode::kAdmitted) return true;
    refusing.insert(hot.kind);
  }
  return false;
}

Millis ReclaimPlanner::Round() const {
  return std::max(kPlanGapMost, Millis(static_cast<int64_t>(cluster_.nodes.size())));
}

bool ReclaimPlanner::IsHopeless(const Preemptor& preemptor) const {
  if (preemptor.context.membership.leaf != kNoQuota) return false;
  const int rank = RankOf(preemptor.context.membership.gpu_class);
  return std::ranges::none_of(cluster_.book.work_by_class(), [&](const auto& work) {
    return work.second > 0 && RankOf(cluster_.set->ClassNamed(work.first)) < rank;
  });
}

void ReclaimPlanner::EndWith(PlanWalk& walk, const Preemptor& preemptor, PlanOutcome::Result result,
                             Instant now) {
  PlanMemory& memory = preemptors_.MemoryOf(preemptor);
  const Millis gap = kPlanGap * (1 << std::min(memory.misses++, kMostDoublings));
  memory.planned = now;
  memory.not_before = now + std::min(gap, Round());
  // What happened between two questions is news.
  memory.version = *walk.version;
  memory.block = walk.block;
  memory.patient_since.reset();
  // What is over already is nothing to wait for.
  if (memory.block && memory.block->until && *memory.block->until <= now) {
    memory.block->until.reset();
  }
  PlanOutcome outcome;
  outcome.result = result;
  outcome.evaluations = walk.evaluations;
  walk.End(outcome);
}

void ReclaimPlanner::Step(PlanWalk& walk, Instant now) {
  using Result = PlanOutcome::Result;
  // Others of its gang may have come or gone since it stood in line: it waits with those it has
  // now.
  if (const PodRecord* record = cluster_.Find(*walk.uid)) preemptors_.Note(*walk.uid, *record);
  const std::optional<Preemptor> preemptor = preemptors_.Of(*walk.uid);
  if (!preemptor) {
    preemptors_.Forget(*walk.uid);
    return walk.End(PlanOutcome{});
  }
  if (!walk.version) {
    walk.version = cluster_.version();
    if (IsHopeless(*preemptor)) return EndWith(walk, *preemptor, Result::kImpossible, now);
    if (FitsNow(*preemptor, now)) return EndWith(walk, *preemptor, Result::kFits, now);
    walk.block = awaited_.HoldOf(*preemptor, now);
    if (!walk.block) return;
    TRANCHE_MARK(plan_waits_for_a_node);
    return EndWith(walk, *preemptor, Result::kBlocked, now);
  }
  const AskedPlan asked = AskNext(walk.questions, parts_, *preemptor, now, {});
  walk.spent = asked.reclaim_case;
  walk.evaluations += asked.answer.evaluations;
  if (asked.MayBegin()) {
    const Instant since = preemptors_.MemoryOf(*preemptor).patient_since.value_or(now);
    const std::optional<PlanBlock> moment = BetterMomentFor(asked, *preemptor, since, now);
    if (!moment) return walk.End(BeginPlan(*preemptor, asked, now));
    TRANCHE_MARK(plan_waits_for_a_checkpoint);
    walk.block = moment;
    EndWith(walk, *preemptor, Result::kBlocked, now);
    preemptors_.MemoryOf(*preemptor).patient_since = since;
    return;
  }
  if (const auto block = BlockOf(asked, now)) walk.block = block;
  if (!walk.questions.done()) return;
  switch (walk.questions.result()) {
    case ReclaimAnswer::Result::kFits:
      if (asked.reclaim_case->any_leaving()) {
        walk.block = PlanBlock{Reason::kPreemptionDelayed,
                               "it fits once pods that are leaving have gone", std::nullopt};
      }
      return EndWith(walk, *preemptor, Result::kFits, now);
    case ReclaimAnswer::Result::kUnresolved:
      walk.block.reset();
      return EndWith(walk, *preemptor, Result::kUnresolved, now);
    case ReclaimAnswer::Result::kPlan:
    case ReclaimAnswer::Result::kImpossible:
      return EndWith(walk, *preemptor, walk.block ? Result::kBlocked : Result::kImpossible, now);
  }
}

std::optional<PlanBlock> ReclaimPlanner::BetterMomentFor(const AskedPlan& asked,
                                                         const Preemptor& preemptor, Instant since,
                                                         Instant now) const {
  const ReclaimCase& reclaim_case = *asked.reclaim_case;
  const ReclaimPlan& plan = *asked.answer.plan;
  const std::vector<WorkInTime> risks = reclaim_case.RisksOf(plan.victims);
  const Charge waiting = TotalOf(reclaim_case.problem().regions[plan.region].parts);
  const std::optional<Instant> moment =
      BetterMoment(risks, waiting, now, since + PatienceOf(preemptor));
  if (!moment) return std::nullopt;
  PlanBlock block;
  block.reason = Reason::kVictimsProtected;
  block.until = moment;
  std::size_t next = 0;
  for (const int unit : plan.victims) {
    for (const PodUid& uid : reclaim_case.pods_of(unit)) {
      const WorkInTime& risk = risks[next++];
      const std::optional<Instant> due = NextCheckpoint(risk, now);
      if (!due || *due > *moment || (*moment - *due) % risk.gap != Millis(0)) continue;
      block.detail = fmt::format("{} would have to go and is about to write a checkpoint",
                                 parts_.claims.Find(uid)->request->name.str());
      return block;
    }
  }
  return block;
}

std::optional<PlanBlock> ReclaimPlanner::BlockOf(const AskedPlan& asked, Instant now) const {
  if (!asked.answer.plan || asked.MayBegin()) return std::nullopt;
  if (IgnoresGuards(asked.question)) return GuardsOf(asked, now);
  // The Eviction API would refuse: the budgets allow each of them, and not all together.
  const PodUid& first = asked.reclaim_case->pods_of(asked.answer.plan->victims.front()).front();
  return PlanBlock{
      Reason::kPdbBlocked,
      fmt::format("{} and others would have to go, and PodDisruptionBudgets do not allow all of "
                  "them",
                  parts_.claims.Find(first)->request->name.str()),
      {}};
}

PlanBlock ReclaimPlanner::GuardsOf(const AskedPlan& asked, Instant now) const {
  const ReclaimCase& relaxed = *asked.reclaim_case;
  const std::vector<int>& victims = asked.answer.plan->victims;
  PlanBlock block;
  block.reason = Reason::kEvictionBudget;
  for (const int unit : victims) {
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
    for (const int unit : victims) work = parts_.claims.WorkOf(relaxed.pods_of(unit).front());
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

PlanOutcome ReclaimPlanner::BeginPlan(const Preemptor& preemptor, const AskedPlan& asked,
                                      Instant now) {
  ReclaimCase& reclaim_case = *asked.reclaim_case;
  const ReclaimPlan& plan = *asked.answer.plan;
  preemptors_.MemoryOf(preemptor) = {.version = cluster_.version(),
                                     .planned = now,
                                     .not_before = now,
                                     .misses = 0,
                                     .block = std::nullopt,
                                     .patient_since = std::nullopt};
  Reclaim reclaim;
  reclaim.rule = plan.rule;
  const QuotaId leaf = preemptor.context.membership.leaf;
  if (leaf != kNoQuota) reclaim.leaf = cluster_.book.tree().name(leaf);
  reclaim.victims = VictimsOf(reclaim_case, plan, now);
  reclaim.cost = plan.cost;
  reclaim.cost.order.clear();
  reclaim.optimal = plan.optimal;
  reclaim.evaluations = asked.answer.evaluations;
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
  PlanOutcome outcome;
  outcome.result = PlanOutcome::Result::kPlan;
  outcome.rule = plan.rule;
  outcome.optimal = plan.optimal;
  outcome.evaluations = asked.answer.evaluations;
  runs_.Begin(std::move(reclaim), now);
  return outcome;
}

}  // namespace tranche
