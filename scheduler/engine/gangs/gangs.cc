#include "scheduler/engine/gangs/gangs.h"

#include <algorithm>
#include <tuple>
#include <utility>

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

void Gangs::SetSize(const std::string& key, int size) {
  if (size > 0) {
    books_.declared[key] = size;
  } else {
    books_.declared.erase(key);
  }
  const auto found = books_.all.find(key);
  if (found == books_.all.end()) return;
  Gang& gang = found->second;
  gang.tried = 0;
  // It has grown: the others are to come first.
  if (gang.seated && !CountOf(key, gang).complete()) Unseat(gang, cluster_.latest);
  Note(key);
}

int Gangs::DeclaredSizeOf(const std::string& key) const {
  const auto declared = books_.declared.find(key);
  return declared == books_.declared.end() ? 0 : declared->second;
}

int Gangs::SizeOf(const std::string& key, const Gang& gang) const {
  const int declared = DeclaredSizeOf(key);
  if (gang.sizes.empty()) return declared;
  const int size = std::max(declared, gang.sizes.rbegin()->first);
  if (size > 0 || !gang.sizes.contains(kGangOfAll)) return size;
  const auto number = [&gang](MemberStanding standing) {
    return gang.standing[static_cast<std::size_t>(standing)];
  };
  return static_cast<int>(gang.members.size() + gang.plain.size()) - number(MemberStanding::kNone);
}

bool Gangs::IsLoose(const std::string& key, const Gang& gang, const GangCount& count) const {
  // One that is there alone is kept its place too: the next may be there in the same cycle.
  const bool of_all = gang.sizes.contains(kGangOfAll) && DeclaredSizeOf(key) == 0;
  return gang.started || (count.size <= 1 && !of_all);
}

GangCount Gangs::CountOf(const std::string& key, const Gang& gang) const {
  const auto number = [&gang](MemberStanding standing) {
    return gang.standing[static_cast<std::size_t>(standing)];
  };
  GangCount count;
  count.size = SizeOf(key, gang);
  count.plain = static_cast<int>(gang.plain.size());
  count.bound = number(MemberStanding::kBound);
  count.placed = count.bound + number(MemberStanding::kPlaced);
  count.waiting = number(MemberStanding::kWaiting);
  count.gated = number(MemberStanding::kGated);
  return count;
}

void Gangs::Discount(Gang& gang, const PodUid& uid) {
  const auto known = gang.counted.find(uid);
  if (known == gang.counted.end()) return;
  --gang.standing[static_cast<std::size_t>(known->second.standing)];
  const auto size = gang.sizes.find(known->second.size);
  if (--size->second == 0) gang.sizes.erase(size);
  gang.by_rank.erase(known->second.place);
  if (known->second.standing == MemberStanding::kWaiting) {
    gang.waits_since.erase(gang.waits_since.find(known->second.since));
  }
  gang.counted.erase(known);
}

void Gangs::Recount(const PodUid& uid, const PodRecord& record) {
  if (record.gang.empty()) return;
  Gang& gang = books_.all.at(record.gang);
  const int rank = record.request->gang_rank;
  const CountedMember now{StandingOf(record),
                          record.request->gang_size,
                          {rank < 0 ? INT32_MAX : rank, uid},
                          record.waits_since};
  const auto known = gang.counted.find(uid);
  const bool same = known != gang.counted.end() && known->second.standing == now.standing &&
                    known->second.size == now.size && known->second.place == now.place &&
                    known->second.since == now.since;
  if (same) return;
  Discount(gang, uid);
  gang.counted.emplace(uid, now);
  gang.by_rank.insert(now.place);
  if (now.standing == MemberStanding::kWaiting) gang.waits_since.insert(now.since);
  ++gang.standing[static_cast<std::size_t>(now.standing)];
  ++gang.sizes[now.size];
}

void Gangs::Join(const PodUid& uid, PodRecord& record, Instant now) {
  std::string key = record.terminal ? "" : GangKeyOf(*record.request);
  if (key == record.gang) {
    if (key.empty()) return;
    Gang& gang = books_.all.at(key);
    Recount(uid, record);
    // One that is leaving counts no more.
    if (gang.seated && !CountOf(key, gang).complete()) Unseat(gang, now);
    return Note(key);
  }
  Leave(uid, record, now);
  if (key.empty()) return;
  Gang& gang = books_.all[key];
  if (gang.members.empty() && gang.plain.empty()) gang.progress_at = now;
  gang.members.insert(uid);
  gang.tried = 0;
  record.gang = std::move(key);
  Recount(uid, record);
  Note(record.gang);
}

void Gangs::Leave(const PodUid& uid, PodRecord& record, Instant now) {
  if (record.gang.empty()) return;
  const std::string key = std::exchange(record.gang, "");
  const auto found = books_.all.find(key);
  Gang& gang = found->second;
  gang.members.erase(uid);
  Discount(gang, uid);
  gang.tried = 0;
  if (gang.seated) {
    // Fewer than all need no seats; the rest gathers again.
    const bool kept = record.earmark != nullptr || cluster_.lifted.contains(uid);
    const bool own = kept && !reclaims_.of_member.contains(uid);
    if (own) earmarks_.DropEarmark(uid, record, now);
    const GangCount count = CountOf(key, gang);
    if (!count.complete()) Unseat(gang, now);
  }
  if (gang.members.empty() && gang.plain.empty()) {
    books_.all.erase(found);
    cluster_.open_gangs.erase(key);
    return;
  }
  Note(key);
}

void Gangs::NotePlainMember(const PodRequest& request) {
  std::string key = GangKeyOf(request);
  if (key.empty() || !books_.of_plain.emplace(request.uid, key).second) return;
  Gang& gang = books_.all[key];
  gang.plain.insert(request.uid);
  gang.tried = 0;
  Note(key);
}

void Gangs::ForgetPlainMember(const PodUid& uid) {
  const auto known = books_.of_plain.find(uid);
  if (known == books_.of_plain.end()) return;
  const std::string key = known->second;
  books_.of_plain.erase(known);
  Gang& gang = books_.all.at(key);
  gang.plain.erase(uid);
  gang.tried = 0;
  if (gang.seated && !CountOf(key, gang).complete()) Unseat(gang, cluster_.latest);
  if (gang.members.empty() && gang.plain.empty()) {
    books_.all.erase(key);
    cluster_.open_gangs.erase(key);
    return;
  }
  Note(key);
}

// Something about its members has changed: where does it stand?
void Gangs::Note(const std::string& key) {
  if (key.empty()) return;
  Gang& gang = books_.all.at(key);
  const GangCount count = CountOf(key, gang);
  if (count.bound == 0) gang.started = false;
  if (count.placed == 0) gang.ours = false;
  gang.started |= count.size > 0 && count.bound + count.plain >= count.size && count.bound > 0;
  if (IsLoose(key, gang, count)) {
    cluster_.open_gangs.erase(key);
    if (gang.started) gang.lapses = 0;
    if (count.waiting == 0) gang.seated = false;
  } else {
    cluster_.open_gangs.insert(key);
  }
}

void Gangs::NoteProgress(const PodRecord& record, Instant now) {
  if (record.gang.empty()) return;
  Gang& gang = books_.all.at(record.gang);
  gang.progress_at = now;
  gang.ours = true;
  Recount(record.request->uid, record);
  Note(record.gang);
}

bool Gangs::IsSeated(const PodUid& uid, const PodRecord& record) const {
  if (record.gang.empty() || record.earmark == nullptr) return false;
  return books_.all.at(record.gang).seated && !reclaims_.of_member.contains(uid) &&
         !reclaims_.nominated_until.contains(uid);
}

bool Gangs::IsVictim(const Gang& gang, const GangCount& count) const {
  if (reclaims_.of_victim.empty() || count.size <= 1) return false;
  const auto goes = std::ranges::count_if(gang.members, [this](const PodUid& uid) {
    return reclaims_.of_victim.contains(uid) && !cluster_.pods.at(uid).traits.leaves_at;
  });
  return goes > 0 && count.bound - goes + count.plain < count.size;
}

GangTurn Gangs::TakeTurn(const PodUid& uid, const PodRecord& record, Instant now) {
  if (record.gang.empty()) return {};
  if (const auto own = reclaims_.of_member.find(uid); own != reclaims_.of_member.end()) {
    const Reclaim& reclaim = reclaims_.all.at(own->second);
    if (reclaim.members.size() < 2 || record.earmark == nullptr) return {};
    // Nobody comes before there is room for all.
    if (reclaim.phase != ReclaimPhase::kReserved) return {Reason::kPreemptionInProgress, {}};
    return {Reason::kNone, record.earmark->node};
  }
  if (IsSeated(uid, record)) return {Reason::kNone, record.earmark->node};
  Gang& gang = books_.all.at(record.gang);
  const GangCount count = CountOf(record.gang, gang);
  // Those that come in place of others would stay alone.
  if (IsVictim(gang, count)) return {Reason::kGangIncomplete, {}};
  if (IsLoose(record.gang, gang, count)) return {};
  if (!count.complete()) return {Reason::kGangIncomplete, {}};
  // Its own place may be one of those that can be done without.
  if (Seat(record.gang, gang, now) && IsSeated(uid, record)) {
    return {Reason::kNone, record.earmark->node};
  }
  return {gang.reason == Reason::kNone ? Reason::kGangNoRoom : gang.reason, {}};
}

bool Gangs::Seat(const std::string& key, Gang& gang, Instant now) {
  if (gang.tried == cluster_.version() || (gang.tried != 0 && !IsRested(gang, now))) return false;
  const GangCount count = CountOf(key, gang);
  const std::vector<PodEntry*> waiting = WaitingMembers(cluster_, gang);
  // Others of it may have their places already.
  const auto is_seated = [this](const PodUid& uid) { return IsSeated(uid, cluster_.pods.at(uid)); };
  const auto seated_before = gang.seated ? std::ranges::count_if(gang.members, is_seated) : 0;
  const auto needed = static_cast<std::size_t>(
      std::max<int64_t>(0, count.size - count.placed - count.plain - seated_before));
  if (waiting.empty() || waiting.size() < needed) {
    // Until something changes: room is made for some of them elsewhere.
    gang.tried = cluster_.version();
    gang.tried_at = now;
    return false;
  }
  bool seated = TrySeats(gang, waiting, now);
  if (!seated && needed > 0 && needed < waiting.size()) {
    // A gang may have more pods than it needs to start.
    TRANCHE_MARK(gang_without_its_spare_pods);
    seated = TrySeats(gang, std::span(waiting).first(needed), now);
  }
  if (!seated && needed > 0 && seated_before > 0 && count.placed == 0) {
    // It has grown since the others got their places: all anew, or none of them.
    TRANCHE_MARK(gang_grew_after_it_was_seated);
    Unseat(gang, now);
    seated = TrySeats(gang, WaitingMembers(cluster_, gang), now);
  }
  if (seated) {
    gang.seated = true;
    gang.progress_at = now;
    if (held_nodes_.hold.gang == key) held_nodes_.hold = GangHold();
    gang.misses = 0;
    gang.tried = 0;
    gang.reason = Reason::kNone;
    gang.detail.clear();
    return true;
  }
  gang.tried = cluster_.version();
  gang.tried_at = now;
  gang.not_before = now + kTryGap * (1 << std::min(gang.misses++, kMostDoublings));
  return false;
}

bool Gangs::TrySeats(Gang& gang, std::span<PodEntry* const> waiting, Instant now) {
  std::vector<std::shared_ptr<const PodRequest>> members;
  members.reserve(waiting.size());
  for (PodEntry* const entry : waiting) {
    cluster_.DropTentative(entry->first, entry->second, now);
    members.push_back(entry->second.request);
  }
  const std::vector<NodeName> placed = PlacesOf(cluster_, gang);
  GangSites sites(parts_, members, gang.avoided, now);
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
      const Inventory& inventory = cluster_.nodes[seats[i].node]->state.inventory();
      for (const ModelCharge& part : ChargeOfPicks(inventory, *members[i], seats[i].picks)) {
        Add(parts, part);
      }
    }
    Admission admission;
    const Reason refused = rules_.Admit(context, parts, now, admission);
    if (refused != Reason::kNone && context.membership.mode != QuotaMode::kObserve) {
      gang.reason = refused;
      gang.detail = cluster_.book.Explain(context.membership, admission, parts, now);
      return false;
    }
  }
  for (std::size_t i = 0; i < seats.size(); ++i) {
    auto& [uid, record] = *waiting[i];
    const QuotaMembership membership = rules_.ContextOf(*members[i]).membership;
    nominations_.End(uid, record, now);
    earmarks_.PutEarmark(
        uid, record,
        earmarks_.EarmarkOf(seats[i].node, *members[i], membership, seats[i].picks, now), now);
    judged_.push_back(uid);
    if (record.seen) {
      cluster_.outbox.reclaims().nominations.push_back(
          {members[i]->name, uid, cluster_.names.name(seats[i].node)});
    }
    if (record.last_reason == Reason::kNone) continue;
    record.requeued_at = now;
    cluster_.outbox.Requeue(members[i]->name, uid);
  }
  return true;
}

// Gives back what was kept for members that have not come.
void Gangs::Unseat(Gang& gang, Instant now) {
  gang.seated = false;
  gang.tried = 0;
  std::set<NodeId> freed;
  for (const PodUid& uid : gang.members) {
    PodRecord& record = cluster_.pods.at(uid);
    const bool lifted = cluster_.lifted.contains(uid);
    if ((record.earmark == nullptr && !lifted) || reclaims_.of_member.contains(uid) ||
        reclaims_.nominated_until.contains(uid)) {
      continue;
    }
    const NodeId id = lifted ? kNoNode : cluster_.names.Find(record.earmark->node.str());
    if (id != kNoNode) freed.insert(id);
    // kube-scheduler counts it there while it is nominated.
    if (record.seen && ClusterState::IsPending(record)) {
      cluster_.outbox.reclaims().nominations.push_back({record.request->name, uid, NodeName()});
    }
    earmarks_.DropEarmark(uid, record, now);
  }
  for (const NodeId id : freed) {
    if (cluster_.nodes[id] != nullptr) requeue_.NoteRoom(id, now);
  }
  requeue_.Admitted(now);
}

void Gangs::NoteSeatLost(const PodRecord& record, Instant now) {
  TRANCHE_MARK(gang_seat_lost_with_its_node);
  Unseat(books_.all.at(record.gang), now);
}

// Its time is over: whoever has not come will not, and those who have wait in vain.
bool Gangs::LapseIfOver(const std::string& key, Instant now) {
  Gang& gang = books_.all.at(key);
  const bool under_way = gang.seated || (gang.ours && CountOf(key, gang).bound > 0);
  if (!under_way || now < gang.progress_at + cluster_.options.reservation_ttl) return false;
  const Millis avoid = kAvoid * (1 << std::min(gang.lapses++, kMostDoublings));
  for (const PodUid& uid : gang.members) {
    const PodRecord& record = cluster_.pods.at(uid);
    if (IsSeated(uid, record)) gang.avoided[record.earmark->node] = now + avoid;
  }
  if (gang.seated) Unseat(gang, now);
  gang.not_before = now + avoid;
  gang.tried_at = now - Millis(1);
  gang.tried = cluster_.version();
  gang.progress_at = now;
  gang.reason = Reason::kGangNoRoom;
  gang.detail = "expected every pod to be bound to the node kept for it, found some that were not";
  TRANCHE_MARK(gang_lapsed);
  return true;
}

void Gangs::NoteTurn(const std::string& key, Instant now, std::vector<SeatingTurn>& turns) {
  Gang& gang = books_.all.at(key);
  if (gang.seated || !CountOf(key, gang).complete()) return;
  if (gang.tried == cluster_.version() || !IsRested(gang, now)) return;
  const PodRecord* const first = FirstWaiting(cluster_, gang);
  if (first == nullptr) {
    gang.tried = cluster_.version();
    gang.tried_at = now;
    return;
  }
  SeatingTurn turn{0, first->waits_since, key};
  const QuotaMembership membership = rules_.ContextOf(*first->request).membership;
  // A gang without a class comes after every class, unlike a pod without one.
  if (membership.gpu_class != nullptr) turn.rank = membership.gpu_class->rank;
  turns.push_back(std::move(turn));
}

void Gangs::SeatInTurn(std::vector<SeatingTurn> turns, Instant now) {
  std::ranges::sort(turns, [](const SeatingTurn& left, const SeatingTurn& right) {
    return std::tie(right.rank, left.since, left.key) < std::tie(left.rank, right.since, right.key);
  });
  for (const SeatingTurn& turn : turns) {
    const auto found = books_.all.find(turn.key);
    if (found == books_.all.end()) continue;
    Gang& gang = found->second;
    if (Seat(turn.key, gang, now)) continue;
    // All of them the first time; those who come later are looked at when they come.
    if (gang.misses <= 1) {
      judged_.insert(judged_.end(), gang.members.begin(), gang.members.end());
    } else if (const PodRecord* const first = FirstWaiting(cluster_, gang)) {
      judged_.push_back(first->request->uid);
    }
  }
}

std::vector<PodUid> Gangs::TakeJudged(std::size_t most) {
  const auto end = judged_.begin() + static_cast<std::ptrdiff_t>(std::min(most, judged_.size()));
  std::vector<PodUid> taken(judged_.begin(), end);
  judged_.erase(judged_.begin(), end);
  return taken;
}

std::optional<Instant> Gangs::Due(Instant now) const {
  std::optional<Instant> next;
  const auto sooner = [&next](Instant at) { next = next ? std::min(*next, at) : at; };
  if (!cluster_.cluster_complete) return next;
  if (!judged_.empty()) sooner(now);
  for (const std::string& key : cluster_.open_gangs) {
    const Gang& gang = books_.all.at(key);
    const GangCount count = CountOf(key, gang);
    if (gang.seated || (gang.ours && count.bound > 0))
      sooner(gang.progress_at + cluster_.options.reservation_ttl);
    if (gang.seated || !count.complete() || count.waiting == 0) continue;
    sooner(now + kHoldGap);
    if (gang.tried != cluster_.version()) sooner(std::max(now, gang.not_before));
  }
  return next;
}

// A gang that runs in part was interrupted between two binds, or has lost a pod since it began.
// Which of the two, its age tells.
void Gangs::Restore(Instant now) {
  cluster_.cluster_complete = true;
  for (const std::string& key : std::set<std::string>(cluster_.open_gangs)) {
    Gang& gang = books_.all.at(key);
    gang.progress_at = now;
    for (const PodUid& uid : gang.members) {
      const PodRecord& record = cluster_.pods.at(uid);
      if (record.node.empty() || !record.held_since) continue;
      gang.started |= now - *record.held_since > cluster_.options.reservation_ttl;
    }
    const GangCount count = CountOf(key, gang);
    if (gang.started) {
      cluster_.open_gangs.erase(key);
      continue;
    }
    gang.ours = count.bound > 0;
    if (count.bound > 0 && count.complete()) Seat(key, gang, now);
  }
}

}  // namespace tranche
