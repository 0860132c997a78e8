#include "scheduler/engine/requeue/early_nominations.h"

#include <algorithm>
#include <utility>

#include "scheduler/engine/selection/shape.h"
#include "scheduler/engine/state/demands.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

// Below that kube-scheduler's own look at all nodes costs less than the write that spares it.
constexpr std::size_t kLargeFleet = 1'000;
// A node is heard of a moment after it was told: those it would reach sooner are left to it. How
// many these are is learnt from who was told too late.
constexpr std::size_t kLeastHead = 8;
constexpr std::size_t kMostHead = 128;
constexpr int kTakenPerStep = 8;
constexpr std::size_t kMostTold = 64;
constexpr std::size_t kMostSuiting = 16;
constexpr Millis kTendEvery{1'000};
// A pod that was asked about is bound by then, or waits for something else.
constexpr Millis kBoundWithin{3'000};
constexpr Millis kMostWaiting{120'000};
// Of so many answers so many refusals: something decides that we do not see.
constexpr int kAnswersLookedAt = 32;
constexpr int kMostRefusals = 8;
constexpr Millis kPause{60'000};

}  // namespace

bool EarlyNominations::MayBeTold(const PodUid& uid, const PodRecord& record) {
  const PodRequest& request = *record.request;
  if (!cluster_.options.nominates) return false;
  if (!record.seen || record.filtered || !ClusterState::IsPending(record)) return false;
  const PodTraits& traits = record.traits;
  if (traits.gated || traits.leaves_at || traits.unschedulable) return false;
  if (!traits.nominated.empty()) return false;
  if (record.earmark != nullptr || reclaims_.of_member.contains(uid)) return false;
  if (!request.gang.empty() || request.judged_elsewhere || request.refusal) return false;
  if (!cluster_.schedulers.Asks(request.scheduler)) return false;
  const Nominate wish = rules_.ContextOf(request).policy->nominate;
  return wish == Nominate::kOn || (wish == Nominate::kAuto && cluster_.hot.size() >= kLargeFleet);
}

void EarlyNominations::Note(const PodUid& uid, const PodRecord& record, Instant now) {
  if (!ClusterState::IsPending(record)) return Forget(uid);
  if (const auto at = told_.find(uid); at != told_.end()) {
    if (!record.traits.unschedulable || at->second.asked) return;
    TRANCHE_MARK(early_nomination_of_a_pod_that_fits_nowhere);
    ++totals_.refused;
    CountAnswer(/*refused=*/true, now);
    return Retract(uid, now);
  }
  if (!MayBeTold(uid, record)) return LeaveLine(uid);
  if (places_.contains(uid)) return;
  const Place place{-int64_t{record.request->priority}, ++arrivals_, uid};
  places_.emplace(uid, place);
  line_.insert(place);
}

void EarlyNominations::LeaveLine(const PodUid& uid) {
  const auto at = places_.find(uid);
  if (at == places_.end()) return;
  line_.erase(at->second);
  places_.erase(at);
}

void EarlyNominations::Forget(const PodUid& uid) {
  LeaveLine(uid);
  const auto at = told_.find(uid);
  if (at == told_.end()) return;
  awaited_.erase(at->second.place);
  told_.erase(at);
}

void EarlyNominations::NoteAsked(const PodUid& uid, const std::vector<NodeId>& offered, bool fits,
                                 Instant now) {
  LeaveLine(uid);
  const auto at = told_.find(uid);
  if (at == told_.end()) return;
  Told& told = at->second;
  awaited_.erase(told.place);
  const bool again = told.asked.has_value();
  told.asked = now;
  if (again) return;
  const NodeId node = cluster_.names.Find(told.node.str());
  const bool alone = offered.size() == 1 && offered.front() == node;
  // It hears of nominations when we do. Where it looks at a sample of the nodes, one that is not
  // offered says nothing.
  const PodRecord* const record = cluster_.Find(uid);
  const bool heard = record != nullptr && record->traits.nominated == told.node;
  const bool unheard = !alone && (!heard || std::ranges::find(offered, node) != offered.end());
  if (unheard) {
    ++totals_.late;
    head_ = std::min(head_ + 2, kMostHead);
  } else {
    const bool refused = !alone || !fits;
    ++(refused ? totals_.refused : totals_.taken);
    if (!refused && totals_.taken % kTakenPerStep == 0) head_ = std::max(head_ - 1, kLeastHead);
    CountAnswer(refused, now);
  }
}

void EarlyNominations::CountAnswer(bool refused, Instant now) {
  ++answers_;
  refusals_ += refused;
  if (answers_ < kAnswersLookedAt) return;
  if (refusals_ >= kMostRefusals) {
    TRANCHE_MARK(early_nominations_pause);
    paused_until_ = now + kPause;
  }
  answers_ = 0;
  refusals_ = 0;
}

// After any change of a node all are looked at once, for each kind of spec that waits.
const std::vector<NodeId>& EarlyNominations::NodesFor(const PodRequest& request) {
  std::string key;
  if (request.constraints != nullptr) AppendConstraints(*request.constraints, key);
  if (!suiting_.contains(key) && suiting_.size() >= kMostSuiting) {
    suiting_.erase(std::ranges::min_element(
        suiting_, {}, [](const auto& entry) { return entry.second.last_used; }));
  }
  Suiting& suiting = suiting_[key];
  suiting.last_used = ++suiting_clock_;
  if (suiting.inventories == cluster_.inventories) return suiting.nodes;
  suiting.inventories = cluster_.inventories;
  suiting.nodes.clear();
  for (NodeId id{0}; id < cluster_.nodes.size(); ++id) {
    if (cluster_.nodes[id] == nullptr || !cluster_.nodes[id]->state.present()) continue;
    if (MeetsDemands(cluster_.nodes[id]->state.facts(), request)) suiting.nodes.push_back(id);
  }
  return suiting.nodes;
}

void EarlyNominations::TellNext(int most, Instant now) {
  if (line_.empty() || !cluster_.cluster_complete) return;
  if (paused_until_ && now < *paused_until_) return;
  paused_until_.reset();
  for (int looked = 0; looked < most && told_.size() < kMostTold; ++looked) {
    const auto next = NextInLine();
    if (next == line_.end()) return;
    const Place place = *next;
    const PodUid& uid = std::get<PodUid>(place);
    LeaveLine(uid);
    PodRecord* const record = cluster_.Find(uid);
    if (record != nullptr && MayBeTold(uid, *record)) Choose(place, *record, now);
  }
}

std::set<EarlyNominations::Place>::iterator EarlyNominations::NextInLine() {
  std::size_t before = 0;
  auto awaited = awaited_.begin();
  return std::ranges::find_if(line_, [&](const Place& place) {
    for (; awaited != awaited_.end() && *awaited < place; ++awaited) ++before;
    if (before++ >= head_) return true;
    const PodRecord* const record = cluster_.Find(std::get<PodUid>(place));
    return record != nullptr &&
           rules_.ContextOf(*record->request).policy->nominate == Nominate::kOn;
  });
}

void EarlyNominations::Choose(const Place& place, PodRecord& record, Instant now) {
  const PodUid& uid = std::get<PodUid>(place);
  const RequestContext context = rules_.ContextOf(*record.request);
  // Those told before are not taken off what a namespace's ResourceQuotas leave.
  if (context.whole != Reason::kNone || context.capped) return;
  cluster_.scorer.Refresh();
  selection_.Select(context, NodesFor(*record.request), 1, now, nullptr);
  if (selection_.best().empty() || selection_.best_lies_over_another()) return;
  const NodeId id = selection_.best().front().node;
  Told told;
  told.node = cluster_.names.name(id);
  told.place = place;
  told.since = now;
  if (!QuotaCovers(context, id, told, now)) return;
  cluster_.DropTentative(uid, record, now);
  selection_.PlaceTentatively(context, record, id, now);
  if (record.tentative == kNoNode) return;
  cluster_.outbox.reclaims().nominations.push_back(
      {record.request->name, uid, told.node, /*early=*/true});
  awaited_.insert(place);
  told_.emplace(uid, std::move(told));
  ++totals_.told;
}

bool EarlyNominations::QuotaCovers(const RequestContext& context, NodeId id, Told& told,
                                   Instant now) {
  if (!context.metered || context.membership.mode == QuotaMode::kObserve) return true;
  told.leaf = context.membership.leaf;
  told.charge = rules_.AskQuota(context, id, now).parts;
  std::vector<ModelCharge> all = told.charge;
  for (const auto& [uid, other] : told_) {
    if (other.leaf == told.leaf) all.insert(all.end(), other.charge.begin(), other.charge.end());
  }
  Admission admission;
  return rules_.Admit(context, all, now, admission) == Reason::kNone;
}

bool EarlyNominations::Renew(const PodUid& uid, const Told& told, Instant now) {
  PodRecord& record = *cluster_.Find(uid);
  const NodeId id = cluster_.names.Find(told.node.str());
  if (id == kNoNode || cluster_.nodes[id] == nullptr) return false;
  const RequestContext context = rules_.ContextOf(*record.request);
  if (context.whole != Reason::kNone) return false;
  cluster_.scorer.Refresh();
  const bool placed = record.tentative == id;
  if (placed) cluster_.DropTentative(uid, record, now);
  selection_.Select(context, {id}, 1, now, nullptr);
  if (selection_.best().empty() || selection_.best_lies_over_another()) return false;
  selection_.PlaceTentatively(context, record, id, now);
  return record.tentative == id;
}

void EarlyNominations::Tend(Instant now) {
  if (told_.empty() || now - tended_ < kTendEvery) return;
  tended_ = now;
  std::vector<PodUid> over;
  for (const auto& [uid, told] : told_) {
    const PodRecord* const record = cluster_.Find(uid);
    if (record == nullptr || !ClusterState::IsPending(*record)) {
      over.push_back(uid);
    } else if (told.asked) {
      if (now - *told.asked >= kBoundWithin) over.push_back(uid);
    } else if (now - told.since >= kMostWaiting || !Renew(uid, told, now)) {
      over.push_back(uid);
    }
  }
  for (const PodUid& uid : over) Retract(uid, now);
}

void EarlyNominations::Retract(const PodUid& uid, Instant now) {
  TakeBack(uid, told_.at(uid), now);
  Forget(uid);
}

void EarlyNominations::TakeBack(const PodUid& uid, const Told& told, Instant now) {
  PodRecord* const record = cluster_.Find(uid);
  if (record == nullptr || !ClusterState::IsPending(*record)) return;
  // Somebody else has nominated it since: its place in a gang, a reclaim, kube-scheduler.
  const NodeName& shown = record->traits.nominated;
  if (record->earmark != nullptr || reclaims_.of_member.contains(uid)) return;
  if (!shown.empty() && shown != told.node) return;
  if (!told.asked) cluster_.DropTentative(uid, *record, now);
  cluster_.outbox.reclaims().nominations.push_back(
      {record->request->name, uid, NodeName(), /*early=*/true});
  ++totals_.withdrawn;
}

std::optional<Instant> EarlyNominations::Due() const {
  if (told_.empty()) return std::nullopt;
  return tended_ + kTendEvery;
}

EarlyTotals EarlyNominations::totals() const {
  EarlyTotals totals = totals_;
  totals.outstanding = static_cast<int64_t>(told_.size());
  return totals;
}

}  // namespace tranche
