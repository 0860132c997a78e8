// Planning rounds: which waiting pods to make room for, and how.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/reclaim_case.h"
#include "scheduler/engine/shape.h"

namespace tranche {
namespace {

// Between two looks at requests that are alike, doubling while nothing comes of it: what changes in
// a busy cluster seldom helps them. At most this long, or a millisecond for every node: a look
// costs a hundredth of that.
constexpr Millis kPlanGap{250};
constexpr Millis kPlanGapMost{1'000};
constexpr int kMostDoublings = 8;
constexpr std::size_t kMostMemories = 10'000;

// Only room or quota that others have can be taken back: not what a limit forbids for ever, nor
// hours of a budget.
bool MayHelp(Reason reason) {
  return reason == Reason::kNone || MoreRoomWouldHelp(reason) || reason == Reason::kGangNoRoom ||
         reason == Reason::kBorrowLimit || reason == Reason::kLenderLimit ||
         reason == Reason::kWaitingForQuota;
}

}  // namespace

bool Engine::Impl::MayPlan(const RequestContext& context) {
  const Standing& standing = context.standing;
  return context.whole == Reason::kNone && standing.leaf != kNoQuota &&
         standing.mode == QuotaMode::kEnforce && context.policy->actor == PreemptionActor::kPlanner;
}

// Refused by us, or by kube-scheduler without asking us.
void Engine::Impl::NoteHungry(const PodUid& uid, const PodRecord& record) {
  const bool refused = record.last_reason != Reason::kNone || record.traits.unschedulable;
  const bool waits = record.seen && refused && IsPending(record) && !record.traits.held_back() &&
                     !record.traits.leaves_at && MayHelp(record.last_reason) &&
                     !reclaims.of_member.contains(uid);
  const std::optional<Aggressor> aggressor = waits ? AggressorOf(uid) : std::nullopt;
  if (!aggressor) return ForgetHungry(uid);
  std::string key = MemoryKey(*aggressor);
  const auto known = reclaims.hungry_key.find(uid);
  if (known != reclaims.hungry_key.end() && known->second == key) return;
  ForgetHungry(uid);
  HungryGroup& group = reclaims.hungry[key];
  group.rank = RankOf(aggressor->context.standing.gpu_class);
  group.pods.insert(uid);
  reclaims.hungry_key.emplace(uid, std::move(key));
}

void Engine::Impl::ForgetHungry(const PodUid& uid) {
  const auto known = reclaims.hungry_key.find(uid);
  if (known == reclaims.hungry_key.end()) return;
  const auto group = reclaims.hungry.find(known->second);
  group->second.pods.erase(uid);
  if (group->second.pods.empty()) reclaims.hungry.erase(group);
  reclaims.hungry_key.erase(known);
}

// What is alike depends on the policies in force.
void Engine::Impl::RegroupHungry() {
  reclaims.hungry.clear();
  reclaims.hungry_key.clear();
  reclaims.memory.clear();
  for (const PodUid& uid : pending) NoteHungry(uid, *Find(uid));
}

std::optional<Aggressor> Engine::Impl::AggressorOf(const PodUid& uid) {
  PodRecord* record = Find(uid);
  if (record == nullptr || !IsPending(*record) || record->traits.leaves_at ||
      reclaims.of_member.contains(uid)) {
    return std::nullopt;
  }
  Aggressor aggressor;
  const PodRequest& request = *record->request;
  if (request.gang.empty()) {
    aggressor.members.push_back(record->request);
  } else {
    aggressor.gang = GangKey(request);
    const auto found = gangs.all.find(aggressor.gang);
    if (found == gangs.all.end()) return std::nullopt;
    const Gang& gang = found->second;
    // Nobody goes for a gang that is not complete, or has its places.
    const GangCount count = CountOf(aggressor.gang, gang);
    if (gang.seated || count.placed + count.waiting + count.plain < count.size) return std::nullopt;
    for (const PodUid& member : gang.members) {
      const PodRecord& other = pods.at(member);
      // Placed, or room is being made for it already.
      const bool served = !IsPending(other) || reclaims.of_member.contains(member);
      if (served || other.traits.leaves_at || other.traits.gated || !other.seen) continue;
      aggressor.members.push_back(other.request);
    }
    if (aggressor.members.empty()) return std::nullopt;
  }
  aggressor.context = ContextOf(*aggressor.members.front());
  if (!MayPlan(aggressor.context)) return std::nullopt;
  return aggressor;
}

// Requests with equal keys get the same plan.
std::string Engine::Impl::MemoryKey(const Aggressor& aggressor) {
  const PodRequest& request = *aggressor.members.front();
  std::string key = fmt::format("{}/{}/{}/", aggressor.context.standing.leaf,
                                request.priority_class, aggressor.context.policy_index);
  const bool alone =
      !aggressor.gang.empty() || reclaims.avoided.contains(request.uid) || SelectsDevices(request);
  if (alone) return key + request.uid.str();
  AppendShape(request, key);
  if (request.expected_runtime) key += fmt::format("{} ms", request.expected_runtime->count());
  if (request.constraints != nullptr) AppendConstraints(*request.constraints, key);
  return key;
}

namespace {

bool IsDue(const PlanMemory& memory, uint64_t version, Instant now) {
  // A stopped clock does not hold back what has changed since.
  const bool rested = now >= memory.not_before || now == memory.planned;
  const bool freed = memory.block && memory.block->until && *memory.block->until <= now;
  return freed || (memory.version != version && rested);
}

}  // namespace

// Higher classes first; within a class who was evicted, then who waits longest.
std::optional<PodUid> Engine::Impl::NextHungry(Instant now) {
  struct Turn {
    int rank = 0;
    bool returned = false;
    Instant since;
    PodUid uid;
  };
  const auto before = [](const Turn& left, const Turn& right) {
    return std::tie(right.rank, right.returned, left.since, left.uid) <
           std::tie(left.rank, left.returned, right.since, right.uid);
  };
  std::optional<Turn> first;
  for (const auto& [key, group] : reclaims.hungry) {
    if (first && group.rank < first->rank) continue;
    const auto memory = reclaims.memory.find(key);
    if (memory != reclaims.memory.end() && !IsDue(memory->second, version(), now)) continue;
    for (const PodUid& uid : group.pods) {
      Turn turn{group.rank, reclaims.returned.contains(uid), Find(uid)->waits_since, uid};
      if (!first || before(turn, *first)) first = std::move(turn);
    }
  }
  return first ? std::optional(first->uid) : std::nullopt;
}

std::optional<Instant> Engine::Impl::HungryAt(Instant now) const {
  std::optional<Instant> next;
  const auto sooner = [&next](Instant at) { next = next ? std::min(*next, at) : at; };
  for (const auto& [key, group] : reclaims.hungry) {
    const auto memory = reclaims.memory.find(key);
    if (memory == reclaims.memory.end() || IsDue(memory->second, version(), now)) return now;
    const PlanMemory& known = memory->second;
    if (known.version != version()) sooner(known.not_before);
    if (known.block && known.block->until && *known.block->until > now) sooner(*known.block->until);
  }
  return next;
}

ReclaimVictim Engine::Impl::VictimOf(const PodUid& uid, int64_t lost, Instant now) const {
  const PodRecord& record = pods.at(uid);
  const HeldWork& work = *book.Find(uid);
  ReclaimVictim victim;
  victim.pod = record.request->name;
  victim.uid = uid;
  victim.node = record.node;
  victim.gang = record.request->gang;
  victim.owner = record.traits.owner;
  victim.leaf = work.leaf;
  victim.lost_gpu_ms = lost;
  victim.checkpoint = record.traits.checkpoint;
  if (const GpuClass* gpu_class = set->ClassNamed(work.workload_class)) {
    victim.grace = gpu_class->grace_period;
  }
  victim.again = reclaims.history.Evictions(record.traits.owner, now) > 0;
  return victim;
}

std::vector<ReclaimVictim> Engine::Impl::VictimsOf(const ReclaimCase& reclaim_case,
                                                   const ReclaimPlan& plan, Instant now) const {
  std::vector<ReclaimVictim> victims;
  for (const int unit : plan.victims) {
    const VictimUnit& from = reclaim_case.problem().units[static_cast<std::size_t>(unit)];
    for (const PodUid& uid : reclaim_case.pods_of(unit)) {
      ReclaimVictim victim = VictimOf(uid, reclaim_case.LostOf(uid), now);
      victim.state = from.marks.state;
      victims.push_back(std::move(victim));
    }
  }
  return victims;
}

// The pods that would have to go if nothing but time and budgets protected them.
std::optional<PlanBlock> Engine::Impl::FindBlock(const Aggressor& aggressor, Instant now) {
  ReclaimCase relaxed(*this, aggressor, now, {.ignore_guards = true});
  const ReclaimAnswer answer = PlanReclaim(relaxed.problem(), relaxed);
  if (answer.result != ReclaimAnswer::Result::kPlan) return std::nullopt;
  PlanBlock block;
  block.reason = Reason::kEvictionBudget;
  for (const int unit : answer.plan->victims) {
    const GuardVerdict& verdict = relaxed.guard_of(unit);
    const PodRecord& victim = *Find(relaxed.pods_of(unit).front());
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
    const HeldWork* work = nullptr;
    for (const int unit : answer.plan->victims) work = book.Find(relaxed.pods_of(unit).front());
    const GpuQuota* leaf = work == nullptr ? nullptr : set->QuotaNamed(work->leaf);
    if (leaf != nullptr && leaf->max_evictions_per_hour > 0) {
      block.until = reclaims.history.HourFullUntil(leaf->name, leaf->max_evictions_per_hour, now);
    }
    block.detail += " would have to go and is protected by the hourly limit of its team";
  }
  return block;
}

// The room is kept from here on, and the first victim asked to leave.
void Engine::Impl::BeginPlan(const Aggressor& aggressor, ReclaimCase& reclaim_case,
                             const ReclaimAnswer& answer, Instant now) {
  const ReclaimPlan& plan = *answer.plan;
  Reclaim reclaim;
  reclaim.rule = plan.rule;
  reclaim.leaf = book.tree().name(aggressor.context.standing.leaf);
  reclaim.victims = VictimsOf(reclaim_case, plan, now);
  reclaim.cost = plan.cost;
  reclaim.cost.order.clear();
  reclaim.optimal = plan.optimal;
  reclaim.evaluations = answer.evaluations;
  reclaim.snapshot = version();
  const std::vector<ReclaimCase::Seat> seats = reclaim_case.Seats(plan.region, plan.victims);
  std::vector<Earmark> earmarks;
  for (std::size_t i = 0; i < seats.size(); ++i) {
    const PodRequest& request = *aggressor.members[i];
    reclaim.members.push_back({request.name, request.uid, names.name(seats[i].node), false});
    earmarks.push_back(
        EarmarkOf(seats[i].node, request, aggressor.context.standing, seats[i].picks, now));
  }
  const PodName& first = aggressor.members.front()->name;
  reclaim.name = ReclaimName(first.ns + "-" + first.name, now);
  for (std::size_t i = 0; i < earmarks.size(); ++i) {
    const PodUid& member = reclaim.members[i].uid;
    EndNominated(member, *Find(member), now);
    PutEarmark(member, *Find(member), std::move(earmarks[i]), now);
    ForgetHungry(member);
  }
  NextEviction(Begin(std::move(reclaim), now), now);
}

PlanOutcome Engine::Impl::PlanFor(const PodUid& uid, Instant now) {
  const std::optional<Aggressor> found = AggressorOf(uid);
  if (!found) {
    ForgetHungry(uid);
    return {};
  }
  const Aggressor& aggressor = *found;
  if (reclaims.memory.size() > kMostMemories) reclaims.memory.clear();
  const std::string key = MemoryKey(aggressor);
  const uint64_t planned_at = version();
  ReclaimCase reclaim_case(*this, aggressor, now, {});
  ReclaimAnswer answer = PlanReclaim(reclaim_case.problem(), reclaim_case);
  PlanOutcome outcome;
  outcome.evaluations = answer.evaluations;
  using Result = ReclaimAnswer::Result;
  // The Eviction API would refuse: the budgets allow each of them, and not all together.
  const bool breaks_budgets = answer.plan && answer.plan->cost.pdb_violations > 0;
  PlanMemory& memory = reclaims.memory[key];
  memory.version = planned_at;
  memory.planned = now;
  memory.block.reset();
  if (answer.result == Result::kPlan && !breaks_budgets) {
    memory.misses = 0;
    memory.not_before = now;
    outcome.result = PlanOutcome::Result::kPlan;
    outcome.rule = answer.plan->rule;
    outcome.optimal = answer.plan->optimal;
    BeginPlan(aggressor, reclaim_case, answer, now);
    return outcome;
  }
  const Millis most = std::max(kPlanGapMost, Millis(static_cast<int64_t>(nodes.size())));
  const Millis gap = kPlanGap * (1 << std::min(memory.misses++, kMostDoublings));
  memory.not_before = now + std::min(gap, most);
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
      if (reclaim_case.any_guarded() || breaks_budgets) memory.block = FindBlock(aggressor, now);
      if (breaks_budgets && !memory.block) memory.block = PlanBlock{Reason::kPdbBlocked, "", {}};
      outcome.result =
          memory.block ? PlanOutcome::Result::kBlocked : PlanOutcome::Result::kImpossible;
      break;
  }
  return outcome;
}

// Unique and a DNS label: time tells apart what a restart has forgotten.
std::string Engine::Impl::ReclaimName(const std::string& stem, Instant now) {
  std::string name = stem.substr(0, 45);
  std::ranges::replace(name, '.', '-');
  for (;;) {
    const auto part = static_cast<uint64_t>(now.time_since_epoch().count()) + ++reclaims.serial;
    std::string whole = fmt::format("{}-{:x}", name, part);
    if (!reclaims.all.contains(whole)) return whole;
  }
}

std::string Engine::Impl::Begin(Reclaim reclaim, Instant now) {
  reclaim.planned_at = now;
  const std::string name = reclaim.name;
  for (const ReclaimMember& member : reclaim.members) {
    reclaims.of_member[member.uid] = name;
    outbox.reclaims().nominations.push_back({member.pod, member.uid, member.node});
  }
  for (const ReclaimVictim& victim : reclaim.victims) reclaims.of_victim[victim.uid] = name;
  Reclaim& stored = reclaims.all[name] = std::move(reclaim);
  NoteChange();
  ReclaimRun& run = reclaims.runs[name];
  run.checked = version();
  Changed(stored);
  return name;
}

std::optional<PlanOutcome> Engine::PlanNext(Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  impl.TendReclaims(now);
  if (std::optional<PlanOutcome> outcome = impl.PlanRelease(now)) return outcome;
  const std::optional<PodUid> uid = impl.NextHungry(now);
  if (!uid) return std::nullopt;
  return impl.PlanFor(*uid, now);
}

}  // namespace tranche
