#include "scheduler/engine/preemption/preemptor_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/selection/shape.h"

namespace tranche {
namespace {

// Plans remembered of requests that nobody waits with any more.
constexpr std::size_t kMostMemories = 10'000;

bool IsDue(const PlanMemory& memory, uint64_t version, Instant now) {
  // A stopped clock does not hold back what has changed since.
  const bool rested = now >= memory.not_before || now == memory.planned;
  const bool freed = memory.block && memory.block->until && *memory.block->until <= now;
  return freed || (memory.version != version && rested);
}

}  // namespace

bool OthersMayGiveIt(Reason reason) {
  return MoreRoomWouldHelp(reason) || reason == Reason::kGangNoRoom ||
         reason == Reason::kBorrowLimit || reason == Reason::kLenderLimit ||
         reason == Reason::kWaitingForQuota;
}

bool MayPlan(const RequestContext& context) {
  const QuotaMembership& membership = context.membership;
  const bool enforced = membership.leaf != kNoQuota && membership.mode == QuotaMode::kEnforce;
  const bool has_no_team = membership.leaf_found == QuotaMembership::Leaf::kNone;
  return context.whole == Reason::kNone && (enforced || has_no_team) &&
         context.policy->actor == PreemptionActor::kPlanner;
}

Millis PatienceOf(const Preemptor& preemptor) {
  const GpuClass* const gpu_class = preemptor.context.membership.gpu_class;
  return std::min(gpu_class == nullptr ? GpuClass().patience : gpu_class->patience, kGuardCap);
}

// Refused by us, or by a kube-scheduler that asks us, which had no node to ask about.
void PreemptorQueue::Note(const PodUid& uid, const PodRecord& record) {
  const bool refused =
      record.last_reason != Reason::kNone ||
      (record.traits.unschedulable && cluster_.schedulers.Asks(record.request->scheduler));
  const bool may_get = record.last_reason == Reason::kNone || OthersMayGiveIt(record.last_reason);
  const bool waits = record.seen && refused && cluster_.IsPending(record) &&
                     !record.traits.held_back() && !record.traits.leaves_at && may_get &&
                     !reclaims_.of_member.contains(uid);
  const std::optional<Preemptor> preemptor = waits ? Find(uid, Extent::kFirst) : std::nullopt;
  if (!preemptor) return Forget(uid);
  std::string key = KeyOf(*preemptor);
  const auto known = place_of_.find(uid);
  const bool same = known != place_of_.end() && known->second.key == key &&
                    known->second.since == record.waits_since;
  if (same) return;
  Forget(uid);
  WaitingGroup& group = groups_[key];
  group.rank = RankOf(preemptor->context.membership.gpu_class);
  group.pods.emplace(record.waits_since, uid);
  place_of_.emplace(uid, Place{std::move(key), record.waits_since});
}

void PreemptorQueue::Forget(const PodUid& uid) {
  const auto known = place_of_.find(uid);
  if (known == place_of_.end()) return;
  const auto group = groups_.find(known->second.key);
  group->second.pods.erase({known->second.since, uid});
  if (group->second.pods.empty()) groups_.erase(group);
  place_of_.erase(known);
}

// What is alike depends on the policies in force.
void PreemptorQueue::Regroup() {
  groups_.clear();
  place_of_.clear();
  memory_.clear();
  for (const PodUid& uid : cluster_.pending) Note(uid, *cluster_.Find(uid));
}

std::optional<Preemptor> PreemptorQueue::Find(const PodUid& uid, Extent extent) {
  PodRecord* record = cluster_.Find(uid);
  if (record == nullptr || !cluster_.IsPending(*record) || record->traits.leaves_at ||
      reclaims_.of_member.contains(uid)) {
    return std::nullopt;
  }
  Preemptor preemptor;
  const PodRequest& request = *record->request;
  if (request.gang.empty()) {
    preemptor.members.push_back(record->request);
  } else {
    preemptor.gang = GangKeyOf(request);
    const auto found = gangs_.books().all.find(preemptor.gang);
    if (found == gangs_.books().all.end()) return std::nullopt;
    const Gang& gang = found->second;
    // Nobody goes for a gang that is not complete, or has its places.
    const GangCount count = gangs_.CountOf(preemptor.gang, gang);
    if (gang.seated || count.placed + count.waiting + count.plain < count.size) return std::nullopt;
    for (const PodUid& member : gang.members) {
      const PodRecord& other = cluster_.pods.at(member);
      // Placed, or room is being made for it already.
      const bool served = !cluster_.IsPending(other) || reclaims_.of_member.contains(member);
      if (served || other.traits.leaves_at || other.traits.gated || !other.seen) continue;
      preemptor.members.push_back(other.request);
      if (extent == Extent::kFirst) break;
    }
    if (preemptor.members.empty()) return std::nullopt;
  }
  preemptor.context = rules_.ContextOf(*preemptor.members.front());
  if (!MayPlan(preemptor.context)) return std::nullopt;
  return preemptor;
}

// Requests with equal keys get the same plan.
std::string PreemptorQueue::KeyOf(const Preemptor& preemptor) const {
  const PodRequest& request = *preemptor.members.front();
  const QuotaId leaf = preemptor.context.membership.leaf;
  // Budgets of namespaces differ where no team has them.
  std::string key = leaf == kNoQuota ? "of " + request.name.ns : fmt::format("{}", leaf);
  key += fmt::format("/{}/{}/", request.priority_class, preemptor.context.policy_index);
  if (!preemptor.gang.empty()) return key + "gang/" + preemptor.gang;
  const bool alone = reclaims_.avoided.contains(request.uid) || SelectsDevices(request);
  if (alone) return key + request.uid.str();
  AppendShape(request, key);
  if (request.expected_runtime) key += fmt::format("{} ms", request.expected_runtime->count());
  if (request.constraints != nullptr) AppendConstraints(*request.constraints, key);
  return key;
}

// Higher classes first; within a class who was evicted, then who waits longest.
std::optional<PodUid> PreemptorQueue::Next(Instant now) {
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
  const auto is_due = [&](const std::string& key) {
    const auto memory = memory_.find(key);
    return memory == memory_.end() || IsDue(memory->second, cluster_.version(), now);
  };
  std::optional<Turn> first;
  const auto offer = [&](Turn turn) {
    if (!first || before(turn, *first)) first = std::move(turn);
  };
  for (const auto& [key, group] : groups_) {
    if (first && group.rank < first->rank) continue;
    if (!is_due(key)) continue;
    const auto& [since, uid] = *group.pods.begin();
    offer({group.rank, reclaims_.returned.contains(uid), since, uid});
  }
  // They come before the first of their groups.
  for (const PodUid& uid : reclaims_.returned) {
    const auto place = place_of_.find(uid);
    if (place == place_of_.end() || !is_due(place->second.key)) continue;
    offer({groups_.at(place->second.key).rank, true, place->second.since, uid});
  }
  return first ? std::optional(first->uid) : std::nullopt;
}

std::optional<Instant> PreemptorQueue::DueAt(Instant now) const {
  std::optional<Instant> next;
  const auto sooner = [&next](Instant at) { next = next ? std::min(*next, at) : at; };
  for (const auto& [key, group] : groups_) {
    const auto memory = memory_.find(key);
    if (memory == memory_.end() || IsDue(memory->second, cluster_.version(), now)) return now;
    const PlanMemory& known = memory->second;
    if (known.version != cluster_.version()) sooner(known.not_before);
    if (known.block && known.block->until && *known.block->until > now) sooner(*known.block->until);
  }
  return next;
}

PlanMemory& PreemptorQueue::MemoryOf(const Preemptor& preemptor) {
  if (memory_.size() > kMostMemories + groups_.size()) {
    std::erase_if(memory_, [this](const auto& known) { return !groups_.contains(known.first); });
  }
  return memory_[KeyOf(preemptor)];
}

const PlanMemory* PreemptorQueue::FindMemory(const std::string& release) const {
  const auto found = memory_.find(release);
  return found == memory_.end() ? nullptr : &found->second;
}

std::optional<PlanBlock> PreemptorQueue::BlockOf(const PodUid& uid) const {
  const auto place = place_of_.find(uid);
  if (place == place_of_.end()) return std::nullopt;
  const auto memory = memory_.find(place->second.key);
  return memory == memory_.end() ? std::nullopt : memory->second.block;
}

}  // namespace tranche
