#include "scheduler/engine/teams/team_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace tranche {

// The highest-ranked quota reason found during this call, with its charge and moment.
void TeamQueue::NoteQuotaRefusal(const RequestContext& context, PodRecord& record, bool allows_one,
                                 Instant now) {
  record.eligible_at.reset();
  record.observed = Reason::kNone;
  const bool observes = context.membership.mode == QuotaMode::kObserve;
  const KindAnswer* first = nullptr;
  for (const ChargeKind kind : rules_.kinds_asked()) {
    const KindAnswer& answer = rules_.kind_answers()[kind];
    if (record.asked.empty()) record.asked = answer.parts;
    if (answer.reason == Reason::kNone) continue;
    if (first == nullptr || answer.reason < first->reason) first = &answer;
    const bool sooner =
        answer.eligible_at && (!record.eligible_at || *answer.eligible_at < *record.eligible_at);
    if (sooner) record.eligible_at = answer.eligible_at;
  }
  const PodUid& uid = context.request->uid;
  WakeAt(uid, std::nullopt, now);
  // Refused on GPUs of one model and placed on another: nothing is waited for.
  if (first == nullptr || allows_one) {
    contenders.erase(uid);
    record.eligible_at.reset();
    return;
  }
  record.asked = first->parts;
  if (observes) {
    record.observed = first->reason;
    record.eligible_at.reset();
    return;
  }
  contenders.insert(uid);
  WakeAt(uid, record.eligible_at, now);
}

void TeamQueue::WakeAt(const PodUid& uid, std::optional<Instant> when, Instant now) {
  if (const auto known = wakes_at_.find(uid); known != wakes_at_.end()) {
    wakeups_.erase({known->second, uid});
    wakes_at_.erase(known);
  }
  if (!when || *when <= now) return;
  wakes_at_.emplace(uid, *when);
  wakeups_.emplace(*when, uid);
}

std::optional<PodUid> TeamQueue::TakeAwake(Instant now) {
  if (wakeups_.empty() || wakeups_.begin()->first > now) return std::nullopt;
  const PodUid uid = wakeups_.begin()->second;
  WakeAt(uid, std::nullopt, now);
  return uid;
}

std::optional<Instant> TeamQueue::NextWake() const {
  return wakeups_.empty() ? std::nullopt : std::optional(wakeups_.begin()->first);
}

void TeamQueue::Forget(const PodUid& uid) {
  contenders.erase(uid);
  WakeAt(uid, std::nullopt, Instant());
}

// Placement right among those who borrow: higher class, then the lower share of what is borrowed,
// weighted and corrected for past use, then who waits longer.
bool TeamQueue::ComesFirst(const TeamTurn& left, const TeamTurn& right, QuotaBook::Shares& shares) {
  if (left.rank != right.rank) return left.rank > right.rank;
  if (left.leaf != right.leaf) {
    // A pod without a leaf borrows nothing.
    if (left.leaf == kNoQuota || right.leaf == kNoQuota) return left.leaf == kNoQuota;
    const int order = shares.Compare(left.leaf, right.leaf);
    if (order != 0) return order < 0;
  }
  // Within a team's class, whoever was evicted comes first.
  if (left.returned != right.returned) return left.returned;
  return std::tie(left.since, left.uid) < std::tie(right.since, right.uid);
}

TeamTurn TeamQueue::TurnOf(const PodRecord& record) const {
  const PodRequest& request = *record.request;
  const QuotaMembership membership =
      cluster_.book.MembershipOf(request.name.ns, request.priority_class);
  return {RankOf(membership.gpu_class), membership.leaf, reclaims_.returned.contains(request.uid),
          record.waits_since, request.uid};
}

bool TeamQueue::ComesFirst(const PodRecord& left, const PodRecord& right, Instant now) const {
  QuotaBook::Shares shares(cluster_.book, now);
  return ComesFirst(TurnOf(left), TurnOf(right), shares);
}

TeamLine::TeamLine(const ClusterState& cluster, const TeamQueue& queue,
                   const std::vector<PodUid>& pods, Instant now)
    : shares_(cluster.book, now) {
  heap_.reserve(pods.size());
  for (const PodUid& uid : pods) heap_.push_back(queue.TurnOf(cluster.pods.at(uid)));
  std::ranges::make_heap(heap_, After());
}

std::optional<PodUid> TeamLine::Next() {
  if (heap_.empty()) return std::nullopt;
  std::ranges::pop_heap(heap_, After());
  const PodUid uid = std::move(heap_.back().uid);
  heap_.pop_back();
  return uid;
}

std::string TeamQueue::DescribeQuota(const RequestContext& context, const PodRecord& record,
                                     Instant now) {
  if (context.whole == Reason::kLeafConflict) {
    std::string found;
    for (const GpuQuota* leaf : cluster_.set->LeavesOf(context.request->name.ns)) {
      found += (found.empty() ? "" : ", ") + leaf->name;
    }
    return fmt::format(
        "expected one GPUQuota whose namespaceSelector matches namespace {}, found {}",
        context.request->name.ns, found);
  }
  if (context.whole == Reason::kNoLeaf) {
    return fmt::format(
        "expected a GPUQuota whose namespaceSelector matches namespace {}, found none",
        context.request->name.ns);
  }
  if (record.last_reason == Reason::kNamespaceQuota)
    return namespaces_.DescribeCaps(*context.request, kNoNode);
  if (!context.metered || record.asked.empty()) return "";
  Admission admission;
  if (rules_.Admit(context, record.asked, now, admission) == Reason::kNone) {
    return IsQuotaReason(record.last_reason) ? "there is quota for it now; it is tried again" : "";
  }
  std::string why = cluster_.book.Explain(context.membership, admission, record.asked, now);
  if (admission.code == AdmissionCode::kBudgetExhausted ||
      !contenders.contains(record.request->uid)) {
    return why;
  }
  int position = 1, waiting = 0;
  QuotaBook::Shares shares(cluster_.book, now);
  const TeamTurn own = TurnOf(record);
  const QuotaId root = cluster_.book.tree().root(context.membership.leaf);
  for (const PodUid& uid : contenders) {
    const PodRecord* other = cluster_.Find(uid);
    if (other == nullptr || !cluster_.IsPending(*other)) continue;
    const QuotaMembership theirs =
        cluster_.book.MembershipOf(other->request->name.ns, other->request->priority_class);
    if (theirs.leaf == kNoQuota || cluster_.book.tree().root(theirs.leaf) != root) continue;
    ++waiting;
    position += other != &record && ComesFirst(TurnOf(*other), own, shares);
  }
  return fmt::format("{}. Position {} of {}", why, position, waiting);
}

}  // namespace tranche
