#include "scheduler/engine/requeue/requeuer.h"

#include <algorithm>
#include <optional>
#include <set>

#include "scheduler/engine/selection/pool_windows.h"
#include "scheduler/engine/selection/shape.h"
#include "scheduler/engine/state/demands.h"
#include "topology/base/table_key.h"

namespace tranche {
namespace {

// How far the two watches may be apart. Refusals older than this were tried again by themselves.
constexpr Millis kWatchLag{2'000};
// A pod is requeued at most this often, and one piece of news brings back at most so many: the
// first of them to be bound is an event for the others.
constexpr Millis kRequeueGap{10'000};
constexpr int kMostRequeued = 8;
// Of pods that quota refused.
constexpr int kMostAdmitted = 16;
// Of pods that ResourceQuotas or other rules refused, how many are looked at.
constexpr int kMostLooks = 64;
// Refusals remembered; the oldest go first.
constexpr std::size_t kMostRefused = 4096;

// An edit of a class, a policy or a pool may take the answer back. What teams have used up is not
// among them: see Admitted.
bool IsByRules(Reason reason) {
  switch (reason) {
    case Reason::kStyleOff:
    case Reason::kNoLeaf:
    case Reason::kNoAgent:
    case Reason::kAgentCannotServe:
    case Reason::kSharingMode:
    case Reason::kCapacity:
    case Reason::kOneReplica:
    case Reason::kTooManyPerNode:
    case Reason::kTooLarge:
    case Reason::kTopologyUnknown:
    case Reason::kNoSuchSet:
    case Reason::kBrokenSet:
    case Reason::kMaintenance:
    case Reason::kNoRoom:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool Requeuer::OnNode(const PodUid& uid, NodeId id, Instant now) {
  PodRecord* record = cluster_.Find(uid);
  const bool waits = record != nullptr && !record->terminal && record->node.empty() &&
                     record->reserved.empty() && record->last_reason != Reason::kNone &&
                     !record->traits.gated;
  // A pod that waits for the rest of its gang is requeued with all of it (gangs.cc).
  if (!waits || cluster_.open_gangs.contains(record->gang)) return false;
  if (record->requeued_at && now - *record->requeued_at < kRequeueGap) {
    put_off_.emplace(*record->requeued_at + kRequeueGap, uid);
    return false;
  }
  const RequestContext context = rules_.ContextOf(*record->request);
  if (context.whole != Reason::kNone) return false;
  const ScopedRemoval lift(cluster_, uid, now, kept_.SharesWith(uid));
  if (cluster_.nodes[id] == nullptr) return false;
  if (!MeetsDemands(cluster_.nodes[id]->state.facts(), *record->request)) return false;
  const Reason shut = ShutTo(cluster_, context, id, now);
  if (shut == Reason::kMaintenance || shut == Reason::kCapacity) return false;
  if (selection_.Fits(context, id) != Reason::kNone) return false;
  if (context.metered && context.membership.mode != QuotaMode::kObserve) {
    rules_.ForgetKindAnswers();
    if (rules_.AskQuota(context, id, now).reason != Reason::kNone) return false;
  }
  record->requeued_at = now;
  cluster_.outbox.Requeue(record->request->name, uid);
  return true;
}

void Requeuer::NoteRefused(const PodUid& uid, Instant now) {
  refused_lately_.emplace_back(now, uid);
  if (refused_lately_.size() > kMostRefused) refused_lately_.pop_front();
}

void Requeuer::NoteRoom(NodeId id, Instant now) {
  while (!refused_lately_.empty() && now - refused_lately_.front().first > kWatchLag)
    refused_lately_.pop_front();
  if (refused_lately_.empty() || cluster_.nodes[id] == nullptr ||
      cluster_.hot[id].closed != Reason::kNone)
    return;
  int requeued = 0;
  for (const auto& [since, uid] : refused_lately_) {
    requeued += OnNode(uid, id, now);
    if (requeued == kMostRequeued) return;
  }
}

void Requeuer::NoteReopened(NodeId id, Instant now) {
  if (cluster_.hot[id].closed != Reason::kNone) return;
  int requeued = 0;
  for (const auto& [name, uid] : cluster_.pods_by_name) {
    requeued += OnNode(uid, id, now);
    if (requeued == kMostRequeued) return;
  }
}

// Such news is no event to kube-scheduler, and comes seconds after the one it was caused by.
void Requeuer::NoteRetold(NodeId id, Instant now) {
  if (cluster_.nodes[id] == nullptr || cluster_.hot[id].closed != Reason::kNone) return;
  int requeued = 0;
  for (const PodUid& uid : std::vector<PodUid>(cluster_.pending.begin(), cluster_.pending.end())) {
    requeued += OnNode(uid, id, now);
    if (requeued == kMostRequeued) return;
  }
}

bool Requeuer::IfFits(const PodUid& uid, Instant now) {
  PodRecord* record = cluster_.Find(uid);
  if (record == nullptr || !cluster_.IsPending(*record) || record->traits.gated) return false;
  const RequestContext context = rules_.ContextOf(*record->request);
  if (context.whole != Reason::kNone) return false;
  const ScopedRemoval lift(cluster_, uid, now, kept_.SharesWith(uid));
  ids_.clear();
  for (NodeId id{0}; id < cluster_.hot.size(); ++id) {
    if (cluster_.hot[id].closed != Reason::kNone) continue;
    if (MeetsDemands(cluster_.nodes[id]->state.facts(), *record->request)) ids_.push_back(id);
  }
  selection_.Select(context, ids_, 1, now, nullptr);
  if (selection_.best().empty() || record->requeued_at == now) return !selection_.best().empty();
  record->requeued_at = now;
  cluster_.outbox.Requeue(record->request->name, uid);
  return true;
}

void Requeuer::Tend(Instant now) {
  int looks = 0;
  while (!put_off_.empty() && put_off_.begin()->first <= now && ++looks <= kMostAdmitted) {
    const PodUid uid = put_off_.begin()->second;
    put_off_.erase(put_off_.begin());
    const PodRecord* const record = cluster_.Find(uid);
    // One that was brought back since has had its news.
    if (record == nullptr || now - record->requeued_at.value_or(now) < kRequeueGap) continue;
    if (!cluster_.open_gangs.contains(record->gang)) IfFits(uid, now);
  }
}

std::optional<Instant> Requeuer::Due() const {
  if (put_off_.empty()) return std::nullopt;
  return put_off_.begin()->first;
}

void Requeuer::NoteOtherRules(Instant now) {
  std::set<std::string> in_vain;
  int looks = 0, requeued = 0;
  for (const PodUid& uid : std::vector<PodUid>(cluster_.pending.begin(), cluster_.pending.end())) {
    if (!IsByRules(cluster_.Find(uid)->last_reason)) continue;
    const std::string like = LikenessOf(uid);
    if (!like.empty() && in_vain.contains(like)) continue;
    const bool fits = IfFits(uid, now);
    if (!fits && !like.empty()) in_vain.insert(like);
    requeued += fits;
    if (++looks == kMostLooks || requeued == kMostAdmitted) return;
  }
}

void Requeuer::Admitted(Instant now) {
  std::vector<PodUid> waiting(team_queue_.contenders.begin(), team_queue_.contenders.end());
  std::erase_if(waiting, [this](const PodUid& uid) {
    const PodRecord* record = cluster_.Find(uid);
    return record == nullptr || !IsQuotaReason(record->last_reason);
  });
  TeamLine line(cluster_, team_queue_, waiting, now);
  std::set<std::string> in_vain;
  int requeued = 0;
  while (requeued < kMostAdmitted) {
    const std::optional<PodUid> uid = line.Next();
    if (!uid) return;
    const std::string like = LikenessOf(*uid);
    if (!like.empty() && in_vain.contains(like)) continue;
    const bool fits = !RefusedEverywhere(*uid, now) && IfFits(*uid, now);
    requeued += fits;
    if (!fits && !like.empty()) in_vain.insert(like);
  }
}

// Pods of equal text fit the same nodes; empty: none is like it.
std::string Requeuer::LikenessOf(const PodUid& uid) {
  const PodRecord& record = *cluster_.Find(uid);
  const PodRequest& request = *record.request;
  if (record.earmark != nullptr || record.traits.gated || !record.gang.empty() ||
      SelectsDevices(request) || !kept_.SharesWith(uid).empty()) {
    return "";
  }
  std::string text = request.name.ns + "/" + request.priority_class + "/";
  AppendShape(request, text);
  AppendToKey(text, request.expected_runtime ? request.expected_runtime->count() : -1);
  return text;
}

// By quota alone, on every kind of node: the nodes themselves need not be looked at.
bool Requeuer::RefusedEverywhere(const PodUid& uid, Instant now) {
  const PodRecord& record = *cluster_.Find(uid);
  const RequestContext context = rules_.ContextOf(*record.request);
  if (!context.metered || context.membership.mode == QuotaMode::kObserve ||
      record.earmark != nullptr || !kept_.SharesWith(uid).empty()) {
    return false;
  }
  rules_.ForgetKindAnswers();
  return std::ranges::all_of(foreseen_.OneOfEachKind(), [&](NodeId id) {
    return !cluster_.nodes[id]->state.inventory().has_devices() ||
           rules_.AskQuota(context, id, now).reason != Reason::kNone;
  });
}

void Requeuer::Capped(const std::string& ns, Instant now) {
  std::vector<PodUid> waiting;
  for (auto at = cluster_.pods_by_name.lower_bound({PodName{ns, ""}, PodUid()});
       at != cluster_.pods_by_name.end() && at->first.ns == ns; ++at) {
    const PodRecord* const record = cluster_.Find(at->second);
    if (record == nullptr || !cluster_.IsPending(*record)) continue;
    if (record->last_reason != Reason::kNamespaceQuota) continue;
    waiting.push_back(at->second);
    if (waiting.size() == kMostLooks) break;
  }
  int requeued = 0;
  for (const PodUid& uid : waiting) {
    requeued += IfFits(uid, now);
    if (requeued == kMostRequeued) return;
  }
}

void Requeuer::NoteCapRelease(const PodUid& uid, Instant now) {
  const std::string ns = namespaces_.caps.Release(uid);
  if (!ns.empty() && namespaces_.caps.Limits(ns)) Capped(ns, now);
}

}  // namespace tranche
