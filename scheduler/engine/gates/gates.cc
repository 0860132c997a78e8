#include "scheduler/engine/gates/gates.h"

#include <algorithm>
#include <utility>

#include "policy/line_name.h"
#include "scheduler/engine/state/demands.h"
#include "scheduler/index/charge_of.h"
#include "topology/base/limit.h"

namespace tranche {
namespace {

// A removal that is not seen to have worked is tried again after this.
constexpr Millis kRemovalTime{10'000};
// How long an answer of quota stands while the books do not change: budgets come back by time.
constexpr Millis kLookAgain{1'000};
// Machines that autoscalers raise for pods that were let in are there by then, or do not come.
constexpr Millis kCountsInside{300'000};
constexpr int kMostInside = 1'000;  // of a team; more are not counted
// Of each namespace and class, how many pods are looked_ at in one round, and how many are let in.
constexpr std::size_t kMostLooks = 16;
constexpr int kMostLetIn = 64;

// It would fit an emptier node of this kind: what quota says there is what it waits for. A node
// whose GPUs are ill stands for its kind too, although no room that others free would help it.
bool CouldServe(Reason reason) {
  return reason == Reason::kNone || MoreRoomWouldHelp(reason) || reason == Reason::kUnhealthy;
}

// Pods may ask for any number.
constexpr int64_t kMostUnits = 1'000'000;
int64_t TimesSaturating(int64_t charge, int64_t times) {
  return charge > kSaturated / times ? kSaturated : charge * times;
}

// What it takes of GPUs that nobody has seen yet; nothing: that depends on the GPU.
Charge ChargeUnseen(const PodRequest& request) {
  if (request.asks.size() == 1 && request.asks[0].resource == Resource::kShare) {
    const int64_t count = std::min(request.asks[0].count, kMostUnits);
    return {request.asks[0].compute.count() * kQuantaPerMilli * count, 0};
  }
  const auto is_whole = [](const Ask& ask) { return ask.resource == Resource::kGpu; };
  if (!std::ranges::all_of(request.asks, is_whole)) return {};
  const auto need = std::ranges::find(request.pool_needs, "nvidia.com/gpu", &PoolNeed::key);
  if (need == request.pool_needs.end()) return {};
  const int64_t whole = kQuantaPerGpu * std::min(need->count, kMostUnits);
  return {whole, whole};
}

// Names of the lines of a quota and of those above it, `any` as of a model that has none.
std::set<std::string> LinesOf(const PolicySet& set, const std::string& leaf) {
  std::set<std::string> names;
  bool all = false;
  for (const GpuQuota* quota = set.QuotaNamed(leaf); quota != nullptr;
       quota = set.QuotaNamed(quota->parent)) {
    for (const QuotaLine& line : quota->lines) {
      all = all || line.model == kAnyModel;
      if (line.model != kAnyModel) names.insert(LineName(line.model, line.pool));
    }
  }
  if (names.empty() && all) names.insert("");
  return names;
}

}  // namespace

int64_t Gates::AheadOf(const PodRequest& request, Instant now) const {
  const auto team = inside_.find({request.name.ns, request.priority_class});
  const int64_t own = ChargeUnseen(request).compute;
  if (team == inside_.end() || own == 0) return 0;
  static const NodeConstraints kNone;
  const auto demands = [](const PodRequest& one) -> const NodeConstraints& {
    return one.constraints == nullptr ? kNone : *one.constraints;
  };
  int64_t ahead = 0;
  int looks = 0;
  for (const auto& [uid, until] : team->second) {
    if (++looks > kMostInside) break;
    const PodRecord& record = cluster_.pods.at(uid);
    const PodRequest& other = *record.request;
    const bool of_gang = !request.gang.empty() && other.gang == request.gang;
    if (until <= now || uid == request.uid || of_gang || !cluster_.IsPending(record)) continue;
    const bool alike = other.models_any == request.models_any && demands(other) == demands(request);
    if (alike) ahead += ChargeUnseen(other).compute;
  }
  return (ahead + own - 1) / own;
}

bool Gates::LetsIn(const RequestContext& context, std::vector<ModelCharge> parts, int64_t times,
                   Instant now, QuotaAnswer& answer) {
  std::vector<ModelCharge> all = parts;
  for (ModelCharge& part : all) {
    part.charge.compute = TimesSaturating(part.charge.compute, times);
    part.charge.memory = TimesSaturating(part.charge.memory, times);
  }
  Admission admission;
  const Reason reason = rules_.Admit(context, all, now, admission);
  if (reason == Reason::kNone) {
    answer.reason = Reason::kNone;
    answer.parts = std::move(parts);
    return true;
  }
  if (admission.eligible_at &&
      (!answer.eligible_at || *admission.eligible_at < *answer.eligible_at)) {
    answer.eligible_at = admission.eligible_at;
  }
  if (answer.reason != Reason::kNone && answer.reason <= reason) return false;
  answer.reason = reason;
  answer.parts = std::move(parts);
  return false;
}

void Gates::AskOfLines(const RequestContext& context, int64_t times, Instant now,
                       QuotaAnswer& answer) {
  const PodRequest& request = *context.request;
  const Charge charge = ChargeUnseen(request);
  if (charge == Charge{}) return;
  std::set<std::string> names(request.models_any.begin(), request.models_any.end());
  if (names.empty() && context.membership.leaf != kNoQuota) {
    names = LinesOf(*cluster_.set, cluster_.book.tree().name(context.membership.leaf));
  }
  for (const std::string& name : names) {
    if (LetsIn(context, {{name, charge}}, times, now, answer)) return;
  }
}

Gates::QuotaAnswer Gates::Ask(const PodRequest& request, int64_t times, Instant now) {
  QuotaAnswer answer;
  const RequestContext context = rules_.ContextOf(request);
  if (context.whole != Reason::kNone || !context.metered ||
      context.membership.mode != QuotaMode::kEnforce) {
    return answer;
  }
  times += AheadOf(request, now);
  std::set<ChargeKind> refused;
  bool has_gpus = false;
  for (const NodeId id : cluster_.names.ascending()) {
    const NodeEntry* entry = id < cluster_.nodes.size() ? cluster_.nodes[id].get() : nullptr;
    if (entry == nullptr || !entry->state.present()) continue;
    has_gpus = has_gpus || entry->state.inventory().has_devices();
    if (refused.contains(cluster_.hot[id].kind) || !CouldServe(selection_.Fits(context, id)))
      continue;
    // A taint may be gone by then.
    if (JudgeDemands(entry->state.facts(), request) == Reason::kNotSelected) continue;
    std::vector<ModelCharge> parts;
    ChargeAtMost(entry->state.inventory(), request, parts);
    if (LetsIn(context, std::move(parts), times, now, answer)) return answer;
    refused.insert(cluster_.hot[id].kind);
  }
  if (!has_gpus) AskOfLines(context, times, now, answer);
  return answer;
}

int64_t Gates::UnplacedOf(const PodRequest& request) const {
  const std::string key = GangKeyOf(request);
  const auto found = gangs_.books().all.find(key);
  if (key.empty() || (found != gangs_.books().all.end() && found->second.started)) return 1;
  const GangCount count =
      found == gangs_.books().all.end() ? GangCount() : gangs_.CountOf(key, found->second);
  const auto declared = gangs_.books().declared.find(key);
  const int told = declared == gangs_.books().declared.end() ? 0 : declared->second;
  const int size = std::max({count.size, told, request.gang_size});
  return std::max(1, size - count.placed - count.plain);
}

GateSet Gates::For(const PodRequest& request, Instant now) {
  GateSet wanted;
  if (!request.asks_gpu() || request.refusal || !cluster_.cluster_complete) return wanted;
  const int64_t unplaced = UnplacedOf(request);
  int64_t there = 1;  // itself
  const auto gang = gangs_.books().all.find(GangKeyOf(request));
  if (gang != gangs_.books().all.end()) {
    const auto count = gangs_.CountOf(gang->first, gang->second);
    there += count.waiting + count.gated;
  }
  wanted.gang = there < unplaced;
  wanted.quota = Ask(request, unplaced, now).reason != Reason::kNone;
  return wanted;
}

void Gates::Note(const PodUid& uid, const PodRecord& record) {
  const GateSet& own = record.traits.gates;
  const bool waits = record.seen && cluster_.IsPending(record) && !record.traits.leaves_at;
  const auto known = places_.find(uid);
  if (waits && own.quota) {
    if (known == places_.end()) {
      const Team team{record.request->name.ns, record.request->priority_class};
      const Turn turn{record.waits_since, uid};
      for_quota_[team].insert(turn);
      places_.emplace(uid, std::pair(team, turn));
      looked_ = 0;
    }
  } else if (known != places_.end()) {
    const auto& [team, turn] = known->second;
    const auto group = for_quota_.find(team);
    group->second.erase(turn);
    if (group->second.empty()) for_quota_.erase(group);
    places_.erase(known);
  }
  NoteInside(uid, record, waits && !own.quota);
  if (waits && own.gang) {
    for_gang_.insert(uid);
  } else {
    // Its gang held it back from quota's line.
    if (for_gang_.erase(uid) > 0) looked_ = 0;
    completed_.erase(uid);
  }
  if (!waits) admitted_.erase(uid);
}

void Gates::NoteInside(const PodUid& uid, const PodRecord& record, bool waits) {
  const auto known = insiders_.find(uid);
  if (waits && known == insiders_.end() && ChargeUnseen(*record.request).compute > 0) {
    const Team team{record.request->name.ns, record.request->priority_class};
    insiders_.emplace(uid, team);
    inside_[team].emplace(uid, cluster_.latest + kCountsInside);
    admitted_.erase(uid);
  } else if (!waits && known != insiders_.end()) {
    const auto team = inside_.find(known->second);
    team->second.erase(uid);
    if (team->second.empty()) inside_.erase(team);
    insiders_.erase(known);
    looked_ = 0;
  }
}

void Gates::Forget(const PodUid& uid) {
  PodRecord none;
  Note(uid, none);
}

void Gates::Tend(Instant now) {
  if (!cluster_.cluster_complete) return;
  for (const PodUid& uid : for_gang_) {
    const PodRecord& record = cluster_.pods.at(uid);
    const auto gang = gangs_.books().all.find(record.gang);
    if (gang != gangs_.books().all.end() && !gang->second.started) {
      const GangCount count = gangs_.CountOf(record.gang, gang->second);
      if (count.size > 1 && !count.gathered()) continue;
    }
    const auto [retry, first] = completed_.try_emplace(uid, now);
    if (!first && now < retry->second) continue;
    retry->second = now + kRemovalTime;
    cluster_.outbox.Ungate(record.request->name, uid, Gate::kGang);
  }
  if (for_quota_.empty() && admitted_.empty()) return;
  if (looked_ == cluster_.version() && now < looked_at_ + kLookAgain) return;
  looked_ = cluster_.version();
  looked_at_ = now;
  LetIn(now);
}

std::vector<PodUid> Gates::Next(Instant now) {
  std::vector<PodUid> turns;
  for (const auto& [team, group] : for_quota_) {
    std::size_t looks = 0;
    for (const auto& [since, uid] : group) {
      // Its gang has to be complete first.
      if (admitted_.contains(uid) || cluster_.pods.at(uid).traits.gates.gang) continue;
      turns.push_back(uid);
      if (++looks == kMostLooks) break;
    }
  }
  std::vector<PodUid> ordered;
  TeamLine line(cluster_, team_queue_, turns, now);
  while (const std::optional<PodUid> uid = line.Next()) ordered.push_back(*uid);
  return ordered;
}

void Gates::LetIn(Instant now) {
  std::erase_if(admitted_, [&](const auto& entry) {
    const PodRecord* record = cluster_.Find(entry.first);
    return record == nullptr || !cluster_.IsPending(*record) || record->earmark != nullptr ||
           now >= entry.second.until;
  });
  // No UID of the cluster looks like this.
  const auto mark = [](const PodUid& uid) { return PodUid("gate/" + uid.str()); };
  for (const auto& [uid, entry] : admitted_) cluster_.book.Earmark(mark(uid), entry.work);
  int left = kMostLetIn;
  std::set<std::string> gangs_seen;
  for (const PodUid& uid : Next(now)) {
    PodRecord& record = cluster_.pods.at(uid);
    if (!record.gang.empty() && !gangs_seen.insert(record.gang).second) continue;
    if (left <= 0) break;
    const ScopedRemoval lift(cluster_, uid, now, kept_.SharesWith(uid));
    const QuotaAnswer answer = Ask(*record.request, UnplacedOf(*record.request), now);
    if (answer.reason != Reason::kNone) {
      NoteWaits(uid, record, answer, now);
      continue;
    }
    std::set<PodUid> together = {uid};
    if (!record.gang.empty()) together = gangs_.books().all.at(record.gang).members;
    for (const PodUid& member : together) {
      const PodRecord& other = cluster_.pods.at(member);
      if (!places_.contains(member) || admitted_.contains(member)) continue;
      --left;
      cluster_.outbox.Ungate(other.request->name, member, Gate::kQuota);
      Admitted entry;
      entry.work =
          cluster_.WorkOf(*other.request, rules_.ContextOf(*other.request).membership, now);
      entry.work.parts = answer.parts;
      entry.until = now + kRemovalTime;
      if (other.earmark == nullptr && member != uid)
        cluster_.book.Earmark(mark(member), entry.work);
      if (member == uid && lift.earmark() == nullptr) cluster_.book.Earmark(mark(uid), entry.work);
      admitted_.insert_or_assign(member, std::move(entry));
    }
  }
  for (const auto& [uid, entry] : admitted_) cluster_.book.Unearmark(mark(uid));
}

void Gates::NoteWaits(const PodUid& uid, PodRecord& record, const QuotaAnswer& answer,
                      Instant now) {
  record.last_reason = answer.reason;
  record.asked = answer.parts;
  record.eligible_at = answer.eligible_at;
  team_queue_.contenders.insert(uid);
  team_queue_.WakeAt(uid, answer.eligible_at, now);
  preemptors_.Note(uid, record);
}

}  // namespace tranche
