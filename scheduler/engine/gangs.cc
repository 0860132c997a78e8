// Gangs: pods placed all or none (gangs/gang_seats.h describes their states).
//
// kube-scheduler brings pods one by one, so a member is refused until its whole gang is there and
// fits; then devices are kept for every member at once, each is nominated to its node, and those
// that were refused are brought back. Nothing of that is written down: after a restart the members
// that are bound show what was planned, and the rest is seated again before anybody else is asked.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/gang_sites.h"
#include "scheduler/engine/gangs/gang_seats.h"
#include "scheduler/engine/impl.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

// Between two plans for one gang that does not fit, doubling.
constexpr Millis kTryGap{250};
constexpr int kMostDoublings = 5;
// How often it is looked whether nodes are to be kept for one that waits.
constexpr Millis kHoldGap{10'000};
// A node for which a member did not come is left out for this long, doubling.
constexpr Millis kAvoid{60'000};

bool IsRested(const Gang& gang, Instant now) {
  // A stopped clock does not hold back what has changed since.
  return now >= gang.not_before || now == gang.tried_at;
}

}  // namespace

std::string Engine::Impl::GangKey(const PodRequest& request) {
  return request.gang.empty() ? "" : request.name.ns + "/" + request.gang;
}

int Engine::Impl::SizeOf(const std::string& key, const Gang& gang) const {
  const auto declared = gangs.declared.find(key);
  int size = declared == gangs.declared.end() ? 0 : declared->second;
  for (const PodUid& uid : gang.members) size = std::max(size, pods.at(uid).request->gang_size);
  return size;
}

Engine::Impl::GangCount Engine::Impl::CountOf(const std::string& key, const Gang& gang) const {
  GangCount count;
  count.size = SizeOf(key, gang);
  count.plain = static_cast<int>(gang.plain.size());
  for (const PodUid& uid : gang.members) {
    const PodRecord& record = pods.at(uid);
    if (record.traits.leaves_at) continue;
    if (!record.Place().empty()) {
      ++count.placed;
      count.bound += !record.node.empty();
    } else if (!record.traits.gated) {
      ++count.waiting;
    } else if (!record.traits.foreign_gates) {
      ++count.gated;
    }
  }
  return count;
}

void Engine::Impl::JoinGang(const PodUid& uid, PodRecord& record, Instant now) {
  std::string key = record.terminal ? "" : GangKey(*record.request);
  if (key == record.gang) {
    if (key.empty()) return;
    Gang& gang = gangs.all.at(key);
    // One that is leaving counts no more.
    if (gang.seated && !CountOf(key, gang).complete()) Unseat(gang, now);
    return NoteGang(key);
  }
  LeaveGang(uid, record, now);
  if (key.empty()) return;
  Gang& gang = gangs.all[key];
  if (gang.members.empty() && gang.plain.empty()) gang.progress_at = now;
  gang.members.insert(uid);
  gang.tried = 0;
  record.gang = std::move(key);
  NoteGang(record.gang);
}

void Engine::Impl::LeaveGang(const PodUid& uid, PodRecord& record, Instant now) {
  if (record.gang.empty()) return;
  const std::string key = std::exchange(record.gang, "");
  const auto found = gangs.all.find(key);
  Gang& gang = found->second;
  gang.members.erase(uid);
  gang.tried = 0;
  if (gang.seated) {
    // Fewer than all need no seats; the rest gathers again.
    const bool own = record.earmark != nullptr && !reclaims.of_member.contains(uid);
    if (own) DropEarmark(uid, record, now);
    const GangCount count = CountOf(key, gang);
    if (!count.complete()) Unseat(gang, now);
  }
  if (gang.members.empty() && gang.plain.empty()) {
    gangs.all.erase(found);
    gangs.open.erase(key);
    return;
  }
  NoteGang(key);
}

void Engine::Impl::NotePlainMember(const PodRequest& request, bool lives) {
  const auto known = gangs.of_plain.find(request.uid);
  if (!lives) {
    if (known == gangs.of_plain.end()) return;
    const std::string key = known->second;
    gangs.of_plain.erase(known);
    Gang& gang = gangs.all.at(key);
    gang.plain.erase(request.uid);
    if (gang.members.empty() && gang.plain.empty()) {
      gangs.all.erase(key);
      gangs.open.erase(key);
    }
    return;
  }
  const std::string key = GangKey(request);
  if (key.empty() || known != gangs.of_plain.end()) return;
  gangs.of_plain.emplace(request.uid, key);
  Gang& gang = gangs.all[key];
  gang.plain.insert(request.uid);
  gang.tried = 0;
  NoteGang(key);
}

// Something about its members has changed: where does it stand?
void Engine::Impl::NoteGang(const std::string& key) {
  if (key.empty()) return;
  Gang& gang = gangs.all.at(key);
  const GangCount count = CountOf(key, gang);
  if (count.bound == 0) gang.started = false;
  if (count.placed == 0) gang.ours = false;
  gang.started |= count.size > 0 && count.bound + count.plain >= count.size && count.bound > 0;
  if (gang.started || count.size <= 1) {
    gangs.open.erase(key);
    if (gang.started) gang.lapses = 0;
    if (count.waiting == 0) gang.seated = false;
  } else {
    gangs.open.insert(key);
  }
}

bool Engine::Impl::IsSeated(const PodUid& uid, const PodRecord& record) const {
  if (record.gang.empty() || record.earmark == nullptr) return false;
  return gangs.all.at(record.gang).seated && !reclaims.of_member.contains(uid) &&
         !reclaims.nominated_until.contains(uid);
}

GangTurn Engine::Impl::TakeTurn(const PodUid& uid, const PodRecord& record, Instant now) {
  if (record.gang.empty()) return {};
  if (const auto own = reclaims.of_member.find(uid); own != reclaims.of_member.end()) {
    const Reclaim& reclaim = reclaims.all.at(own->second);
    if (reclaim.members.size() < 2 || record.earmark == nullptr) return {};
    // Nobody comes before there is room for all.
    if (reclaim.phase != ReclaimPhase::kReserved) return {Reason::kPreemptionInProgress, {}};
    return {Reason::kNone, record.earmark->node};
  }
  if (IsSeated(uid, record)) return {Reason::kNone, record.earmark->node};
  Gang& gang = gangs.all.at(record.gang);
  const GangCount count = CountOf(record.gang, gang);
  if (gang.started || count.size <= 1) return {};
  if (!count.complete()) return {Reason::kGangIncomplete, {}};
  // Its own place may be one of those that can be done without.
  if (SeatGang(record.gang, gang, now) && IsSeated(uid, record)) {
    return {Reason::kNone, record.earmark->node};
  }
  return {gang.reason == Reason::kNone ? Reason::kGangNoRoom : gang.reason, {}};
}

// Those that wait, by rank; the ones without last.
std::vector<PodUid> Engine::Impl::WaitingMembers(const Gang& gang) const {
  std::vector<PodUid> waiting;
  for (const PodUid& uid : gang.members) {
    const PodRecord& record = pods.at(uid);
    if (IsPending(record) && !record.traits.gated && !record.traits.leaves_at &&
        record.earmark == nullptr) {
      waiting.push_back(uid);
    }
  }
  std::ranges::stable_sort(waiting, {}, [this](const PodUid& uid) {
    const int rank = pods.at(uid).request->gang_rank;
    return rank < 0 ? INT32_MAX : rank;
  });
  return waiting;
}

bool Engine::Impl::SeatGang(const std::string& key, Gang& gang, Instant now) {
  if (gang.tried == version() || (gang.tried != 0 && !IsRested(gang, now))) return false;
  const GangCount count = CountOf(key, gang);
  std::vector<PodUid> waiting = WaitingMembers(gang);
  // Others of it may have their places already.
  const auto seated_before = std::ranges::count_if(
      gang.members, [this](const PodUid& uid) { return IsSeated(uid, pods.at(uid)); });
  const auto needed = static_cast<std::size_t>(
      std::max<int64_t>(0, count.size - count.placed - count.plain - seated_before));
  if (waiting.empty() || waiting.size() < needed) return false;
  bool seated = TrySeats(gang, waiting, now);
  if (!seated && needed > 0 && needed < waiting.size()) {
    // A gang may have more pods than it needs to start.
    TRANCHE_MARK(gang_without_its_spare_pods);
    waiting.resize(needed);
    seated = TrySeats(gang, waiting, now);
  }
  if (seated) {
    gang.seated = true;
    gang.progress_at = now;
    if (gangs.hold.gang == key) gangs.hold = GangHold();
    gang.misses = 0;
    gang.tried = 0;
    gang.reason = Reason::kNone;
    gang.detail.clear();
    return true;
  }
  gang.tried = version();
  gang.tried_at = now;
  gang.not_before = now + kTryGap * (1 << std::min(gang.misses++, kMostDoublings));
  return false;
}

bool Engine::Impl::TrySeats(Gang& gang, const std::vector<PodUid>& waiting, Instant now) {
  std::vector<std::shared_ptr<const PodRequest>> members;
  for (const PodUid& uid : waiting) {
    DropClaim(uid, pods.at(uid), now);
    members.push_back(pods.at(uid).request);
  }
  std::vector<NodeName> placed;
  for (const PodUid& uid : gang.members) {
    if (!pods.at(uid).Place().empty()) placed.push_back(pods.at(uid).Place());
  }
  GangSites sites(*this, members, gang.avoided, now);
  gang.reason = sites.whole();
  if (gang.reason != Reason::kNone) return false;
  const std::optional<GangPlan> plan = PlanGang(sites.Ask(placed), sites);
  if (!plan) {
    gang.reason = sites.quota() != Reason::kNone ? sites.quota() : Reason::kGangNoRoom;
    gang.detail = sites.Describe();
    return false;
  }
  const std::vector<GangSites::Seat> seats = sites.SeatsOf(*plan);
  const RequestContext& context = sites.context();
  if (context.metered) {
    std::vector<ModelCharge> parts;
    for (std::size_t i = 0; i < seats.size(); ++i) {
      const Inventory& inventory = nodes[seats[i].node]->state.inventory();
      for (const ModelCharge& part : ChargeOfPicks(inventory, *members[i], seats[i].picks)) {
        Add(parts, part);
      }
    }
    Admission admission;
    const Reason refused = Admit(context, parts, now, admission);
    if (refused != Reason::kNone && context.standing.mode != QuotaMode::kObserve) {
      gang.reason = refused;
      gang.detail = book.Explain(context.standing, admission, parts, now);
      return false;
    }
  }
  for (std::size_t i = 0; i < seats.size(); ++i) {
    PodRecord& record = pods.at(waiting[i]);
    const Standing standing = ContextOf(*members[i]).standing;
    EndNominated(waiting[i], record, now);
    PutEarmark(waiting[i], record,
               EarmarkOf(seats[i].node, *members[i], standing, seats[i].picks, now), now);
    ForgetHungry(waiting[i]);
    if (record.seen) {
      outbox.reclaims().nominations.push_back(
          {members[i]->name, waiting[i], names.name(seats[i].node)});
    }
    if (record.last_reason == Reason::kNone) continue;
    record.poked = now;
    outbox.Requeue(members[i]->name, waiting[i]);
  }
  return true;
}

// Gives back what was kept for members that have not come.
void Engine::Impl::Unseat(Gang& gang, Instant now) {
  gang.seated = false;
  gang.tried = 0;
  std::set<NodeId> freed;
  for (const PodUid& uid : gang.members) {
    PodRecord& record = pods.at(uid);
    if (record.earmark == nullptr || reclaims.of_member.contains(uid) ||
        reclaims.nominated_until.contains(uid)) {
      continue;
    }
    const NodeId id = names.Find(record.earmark->node.str());
    if (id != kNoNode) freed.insert(id);
    DropEarmark(uid, record, now);
  }
  for (const NodeId id : freed) {
    if (nodes[id] != nullptr) NoteRoom(id, now);
  }
  PokeAdmitted(now);
}

void Engine::Impl::NoteGangProgress(const PodRecord& record, Instant now) {
  if (record.gang.empty()) return;
  Gang& gang = gangs.all.at(record.gang);
  gang.progress_at = now;
  gang.ours = true;
  NoteGang(record.gang);
}

// Its time is over: whoever has not come will not, and those who have wait in vain.
void Engine::Impl::Lapse(const std::string& key, Gang& gang, Instant now) {
  const Millis avoid = kAvoid * (1 << std::min(gang.lapses++, kMostDoublings));
  for (const PodUid& uid : gang.members) {
    const PodRecord& record = pods.at(uid);
    if (IsSeated(uid, record)) gang.avoided[record.earmark->node] = now + avoid;
  }
  if (gang.seated) Unseat(gang, now);
  gang.not_before = now + avoid;
  gang.tried_at = now - Millis(1);
  gang.tried = version();
  gang.progress_at = now;
  gang.reason = Reason::kGangNoRoom;
  gang.detail = "expected every pod to be bound to the node kept for it, found some that were not";
  TRANCHE_MARK(gang_lapsed);
  EvictPart(key, gang, now);
}

// All or none: a part of a gang that cannot be completed gives back what it has.
void Engine::Impl::EvictPart(const std::string& key, const Gang& gang, Instant now) {
  Reclaim reclaim;
  reclaim.rule = ReclaimRule::kGang;
  reclaim.source = key;
  reclaim.snapshot = version();
  for (const PodUid& uid : gang.members) {
    const PodRecord& record = pods.at(uid);
    if (record.node.empty() || record.traits.leaves_at || reclaims.of_victim.contains(uid))
      continue;
    // Classes that are never preempted stay, and so does what nobody would make anew.
    const HeldWork* work = book.Find(uid);
    if (work == nullptr || !record.traits.evictable) continue;
    const GpuClass* gpu_class = set->ClassNamed(work->workload_class);
    if (gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever) continue;
    const RequestContext context = ContextOf(*record.request);
    if (context.policy->actor == PreemptionActor::kOff) continue;
    const std::optional<Allocation> allocation = AllocationOn(record.node, uid);
    // What others bound is not ours to take away.
    if (!allocation || allocation->epoch < 1) continue;
    ReclaimVictim victim = VictimOf(uid, 0, now);
    reclaim.leaf = victim.leaf;
    reclaim.victims.push_back(std::move(victim));
  }
  if (reclaim.victims.empty()) return;
  reclaim.cost.pods = static_cast<int64_t>(reclaim.victims.size());
  reclaim.cost.gangs = 1;
  reclaim.optimal = true;
  const PodName& first = reclaim.victims.front().pod;
  reclaim.name = ReclaimName("gang-" + first.ns + "-" + first.name, now);
  NextEviction(Begin(std::move(reclaim), now), now);
}

void Engine::Impl::TendGangs(Instant now) {
  if (!cluster_complete) return;
  struct Turn {
    int rank = 0;
    Instant since;
    std::string key;
  };
  std::vector<Turn> turns;
  for (const std::string& key : std::set<std::string>(gangs.open)) {
    Gang& gang = gangs.all.at(key);
    const GangCount count = CountOf(key, gang);
    const bool under_way = gang.seated || (gang.ours && count.bound > 0);
    if (under_way && now >= gang.progress_at + options.reservation_ttl) {
      Lapse(key, gang, now);
      continue;
    }
    if (gang.seated || !count.complete()) continue;
    if (gang.tried == version() || !IsRested(gang, now)) continue;
    const std::vector<PodUid> waiting = WaitingMembers(gang);
    if (waiting.empty()) continue;
    Turn turn{0, pods.at(waiting.front()).waits_since, key};
    const Standing standing = ContextOf(*pods.at(waiting.front()).request).standing;
    // A gang without a class comes after every class, unlike a pod without one.
    if (standing.gpu_class != nullptr) turn.rank = standing.gpu_class->rank;
    turns.push_back(std::move(turn));
  }
  std::ranges::sort(turns, [](const Turn& left, const Turn& right) {
    return std::tie(right.rank, left.since, left.key) < std::tie(left.rank, right.since, right.key);
  });
  for (const Turn& turn : turns) {
    const auto found = gangs.all.find(turn.key);
    if (found == gangs.all.end()) continue;
    if (SeatGang(turn.key, found->second, now)) continue;
    for (const PodUid& uid : found->second.members) NoteHungry(uid, pods.at(uid));
  }
  TendHold(now);
}

std::optional<Instant> Engine::Impl::GangsDue(Instant now) const {
  std::optional<Instant> next;
  const auto sooner = [&next](Instant at) { next = next ? std::min(*next, at) : at; };
  if (!cluster_complete) return next;
  for (const std::string& key : gangs.open) {
    const Gang& gang = gangs.all.at(key);
    const GangCount count = CountOf(key, gang);
    if (gang.seated || (gang.ours && count.bound > 0))
      sooner(gang.progress_at + options.reservation_ttl);
    if (gang.seated || !count.complete() || count.waiting == 0) continue;
    sooner(now + kHoldGap);
    if (gang.tried != version()) sooner(std::max(now, gang.not_before));
  }
  return next;
}

// A gang that runs in part was interrupted between two binds, or has lost a pod since it began.
// Which of the two, its age tells.
void Engine::Impl::RestoreGangs(Instant now) {
  cluster_complete = true;
  for (const std::string& key : std::set<std::string>(gangs.open)) {
    Gang& gang = gangs.all.at(key);
    gang.progress_at = now;
    for (const PodUid& uid : gang.members) {
      const PodRecord& record = pods.at(uid);
      if (record.node.empty() || !record.held_since) continue;
      gang.started |= now - *record.held_since > options.reservation_ttl;
    }
    const GangCount count = CountOf(key, gang);
    if (gang.started) {
      gangs.open.erase(key);
      continue;
    }
    gang.ours = count.bound > 0;
    if (count.bound > 0 && count.complete()) SeatGang(key, gang, now);
  }
}

void Engine::SetGangSize(const std::string& ns, const std::string& gang, int size, Instant now) {
  impl_->Advance(now);
  const std::string key = ns + "/" + gang;
  if (size > 0) {
    impl_->gangs.declared[key] = size;
  } else {
    impl_->gangs.declared.erase(key);
  }
  const auto found = impl_->gangs.all.find(key);
  if (found == impl_->gangs.all.end()) return;
  found->second.tried = 0;
  impl_->NoteGang(key);
}

std::string Engine::Impl::DescribeGang(const PodRecord& record) const {
  if (record.gang.empty()) return "";
  const Gang& gang = gangs.all.at(record.gang);
  const GangCount count = CountOf(record.gang, gang);
  if (gang.started || count.size <= 1) return "";
  if (record.earmark != nullptr && gang.seated) {
    return fmt::format("devices are kept on {} for this pod of gang {}", record.earmark->node.str(),
                       record.request->gang);
  }
  if (!count.complete() && count.gathered()) {
    return fmt::format(
        "expected the scheduling gates of gang {} to be gone, found {} pods with one",
        record.request->gang, count.gated);
  }
  if (!count.complete()) {
    return fmt::format("expected {} pods of gang {}, found {}", count.size, record.request->gang,
                       count.placed + count.waiting + count.gated + count.plain);
  }
  return gang.detail;
}

}  // namespace tranche
