// Scheduling gates of ours: who should get one at its creation, and whose gate is taken away.
//
// A pod with our quota gate stands in line like any other that quota refuses: it contends, plans
// are made for it, and it is told why it waits. Only kube-scheduler and cluster autoscalers do not
// see it. Gates go in the order in which quota would be given, each counting those before it, so
// that not all of a team's pods are let through to be refused by filter. A gate that stays too long
// would cost a pod its GPUs, one that goes too early costs a line in a log: doubt takes it away.
#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/index/charge_of.h"

namespace tranche {
namespace {

// A removal that is not seen to have worked is tried again after this.
constexpr Millis kRemovalTime{10'000};
// How long an answer of quota stands while the books do not change: budgets come back by time.
constexpr Millis kLookAgain{1'000};
// Of each namespace and class, how many pods are looked at in one round, and how many are let in.
constexpr std::size_t kMostLooks = 16;
constexpr int kMostLetIn = 64;

// It would fit an emptier node of this kind: what quota says there is what it waits for. A node
// whose GPUs are ill stands for its kind too, although no room that others free would help it.
bool CouldServe(Reason reason) {
  return reason == Reason::kNone || MoreRoomWouldHelp(reason) || reason == Reason::kUnhealthy;
}

}  // namespace

GateBooks& GateKeeper::BooksOf(Engine::Impl& engine) { return engine.gates; }

QuotaWord GateKeeper::Ask(const PodRequest& request, int64_t times, Instant now) {
  QuotaWord word;
  const RequestContext context = engine_.ContextOf(request);
  if (context.whole != Reason::kNone || !context.metered ||
      context.standing.mode != QuotaMode::kEnforce) {
    return word;
  }
  std::set<uint32_t> refused;
  for (const NodeId id : engine_.names.ascending()) {
    const NodeEntry* entry = id < engine_.nodes.size() ? engine_.nodes[id].get() : nullptr;
    if (entry == nullptr || !entry->state.present()) continue;
    if (refused.contains(engine_.hot[id].kind) || !CouldServe(engine_.Fits(context, id))) continue;
    std::vector<ModelCharge> parts;
    ChargeAtMost(entry->state.inventory(), request, parts);
    std::vector<ModelCharge> all = parts;
    for (ModelCharge& part : all) {
      part.charge.compute *= times;
      part.charge.memory *= times;
    }
    Admission admission;
    const Reason reason = engine_.Admit(context, all, now, admission);
    if (reason == Reason::kNone) {
      word.reason = Reason::kNone;
      word.parts = std::move(parts);
      return word;
    }
    refused.insert(engine_.hot[id].kind);
    if (admission.eligible_at &&
        (!word.eligible_at || *admission.eligible_at < *word.eligible_at)) {
      word.eligible_at = admission.eligible_at;
    }
    if (word.reason != Reason::kNone && word.reason <= reason) continue;
    word.reason = reason;
    word.parts = std::move(parts);
  }
  return word;
}

int64_t GateKeeper::UnplacedOf(const PodRequest& request) const {
  const std::string key = Engine::Impl::GangKey(request);
  const auto found = engine_.gangs.all.find(key);
  if (key.empty() || (found != engine_.gangs.all.end() && found->second.started)) return 1;
  const Engine::Impl::GangCount count = found == engine_.gangs.all.end()
                                            ? Engine::Impl::GangCount()
                                            : engine_.CountOf(key, found->second);
  const auto declared = engine_.gangs.declared.find(key);
  const int told = declared == engine_.gangs.declared.end() ? 0 : declared->second;
  const int size = std::max({count.size, told, request.gang_size});
  return std::max(1, size - count.placed - count.plain);
}

GateSet GateKeeper::For(const PodRequest& request, Instant now) {
  GateSet wanted;
  if (!request.asks_gpu() || request.refusal || !engine_.cluster_complete) return wanted;
  const int64_t unplaced = UnplacedOf(request);
  int64_t there = 1;  // itself
  const auto gang = engine_.gangs.all.find(Engine::Impl::GangKey(request));
  if (gang != engine_.gangs.all.end()) {
    const auto count = engine_.CountOf(gang->first, gang->second);
    there += count.waiting + count.gated;
  }
  wanted.gang = there < unplaced;
  wanted.quota = Ask(request, unplaced, now).reason != Reason::kNone;
  return wanted;
}

GateSet Engine::GatesFor(const PodRequest& request, Instant now) {
  impl_->Advance(now);
  return GateKeeper(*impl_).For(request, now);
}

void GateKeeper::Note(const PodUid& uid, const PodRecord& record) {
  const GateSet& own = record.traits.gates;
  const bool waits = record.seen && engine_.IsPending(record) && !record.traits.leaves_at;
  const auto known = gates_.places.find(uid);
  if (waits && own.quota) {
    if (known == gates_.places.end()) {
      const GateBooks::Team team{record.request->name.ns, record.request->priority_class};
      const GateBooks::Turn turn{record.waits_since, uid};
      gates_.for_quota[team].insert(turn);
      gates_.places.emplace(uid, std::pair(team, turn));
      gates_.looked = 0;
    }
  } else if (known != gates_.places.end()) {
    const auto& [team, turn] = known->second;
    const auto group = gates_.for_quota.find(team);
    group->second.erase(turn);
    if (group->second.empty()) gates_.for_quota.erase(group);
    gates_.places.erase(known);
  }
  if (waits && own.gang) {
    gates_.for_gang.insert(uid);
  } else {
    // Its gang held it back from quota's line.
    if (gates_.for_gang.erase(uid) > 0) gates_.looked = 0;
    gates_.completed.erase(uid);
  }
  if (!waits) gates_.admitted.erase(uid);
}

void GateKeeper::Forget(const PodUid& uid) {
  PodRecord none;
  Note(uid, none);
}

void GateKeeper::Tend(Instant now) {
  if (!engine_.cluster_complete) return;
  for (const PodUid& uid : gates_.for_gang) {
    const PodRecord& record = engine_.pods.at(uid);
    const auto gang = engine_.gangs.all.find(record.gang);
    if (gang != engine_.gangs.all.end() && !gang->second.started) {
      const Engine::Impl::GangCount count = engine_.CountOf(record.gang, gang->second);
      if (count.size > 1 && !count.gathered()) continue;
    }
    const auto [retry, first] = gates_.completed.try_emplace(uid, now);
    if (!first && now < retry->second) continue;
    retry->second = now + kRemovalTime;
    engine_.outbox.Ungate(record.request->name, uid, Gate::kGang);
  }
  if (gates_.for_quota.empty() && gates_.admitted.empty()) return;
  if (gates_.looked == engine_.version() && now < gates_.looked_at + kLookAgain) return;
  gates_.looked = engine_.version();
  gates_.looked_at = now;
  LetIn(now);
}

std::vector<PodUid> GateKeeper::Next(Instant now) {
  std::vector<PodUid> turns;
  for (const auto& [team, group] : gates_.for_quota) {
    std::size_t looks = 0;
    for (const auto& [since, uid] : group) {
      // Its gang has to be complete first.
      if (gates_.admitted.contains(uid) || engine_.pods.at(uid).traits.gates.gang) continue;
      turns.push_back(uid);
      if (++looks == kMostLooks) break;
    }
  }
  std::ranges::sort(turns, [&](const PodUid& left, const PodUid& right) {
    return engine_.ComesFirst(engine_.pods.at(left), engine_.pods.at(right), now);
  });
  return turns;
}

void GateKeeper::LetIn(Instant now) {
  std::erase_if(gates_.admitted, [&](const auto& entry) {
    const PodRecord* record = engine_.Find(entry.first);
    return record == nullptr || !engine_.IsPending(*record) || record->earmark != nullptr ||
           now >= entry.second.until;
  });
  // No UID of the cluster looks like this.
  const auto mark = [](const PodUid& uid) { return PodUid("gate/" + uid.str()); };
  for (const auto& [uid, entry] : gates_.admitted) engine_.book.Earmark(mark(uid), entry.work);
  int left = kMostLetIn;
  std::set<std::string> gangs_seen;
  for (const PodUid& uid : Next(now)) {
    PodRecord& record = engine_.pods.at(uid);
    if (!record.gang.empty() && !gangs_seen.insert(record.gang).second) continue;
    if (left <= 0) break;
    const ScopedRemoval lift(engine_, uid, now, engine_.SharesWith(uid));
    const QuotaWord word = Ask(*record.request, UnplacedOf(*record.request), now);
    if (word.reason != Reason::kNone) {
      NoteWaits(uid, record, word, now);
      continue;
    }
    std::set<PodUid> together = {uid};
    if (!record.gang.empty()) together = engine_.gangs.all.at(record.gang).members;
    for (const PodUid& member : together) {
      const PodRecord& other = engine_.pods.at(member);
      if (!gates_.places.contains(member) || gates_.admitted.contains(member)) continue;
      --left;
      engine_.outbox.Ungate(other.request->name, member, Gate::kQuota);
      GateBooks::Admitted entry;
      entry.work = engine_.WorkOf(*other.request, engine_.ContextOf(*other.request).standing, now);
      entry.work.parts = word.parts;
      entry.until = now + kRemovalTime;
      if (other.earmark == nullptr && member != uid) engine_.book.Earmark(mark(member), entry.work);
      if (member == uid && lift.earmark() == nullptr) engine_.book.Earmark(mark(uid), entry.work);
      gates_.admitted.insert_or_assign(member, std::move(entry));
    }
  }
  for (const auto& [uid, entry] : gates_.admitted) engine_.book.Unearmark(mark(uid));
}

void GateKeeper::NoteWaits(const PodUid& uid, PodRecord& record, const QuotaWord& word,
                           Instant now) {
  record.last_reason = word.reason;
  record.asked = word.parts;
  record.eligible_at = word.eligible_at;
  engine_.contenders.insert(uid);
  if (word.eligible_at && *word.eligible_at > now) engine_.wakeups.emplace(*word.eligible_at, uid);
  engine_.NoteHungry(uid, record);
}

}  // namespace tranche
