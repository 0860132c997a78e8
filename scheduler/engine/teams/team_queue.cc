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
  if (record.eligible_at && *record.eligible_at > now) wakeups.emplace(*record.eligible_at, uid);
}

// Placement right among those who borrow: higher class, then the lower share of what is borrowed,
// weighted and corrected for past use, then who waits longer.
bool TeamQueue::ComesFirst(const PodRecord& left, const PodRecord& right, Instant now) const {
  const QuotaMembership of_left =
      cluster_.book.MembershipOf(left.request->name.ns, left.request->priority_class);
  const QuotaMembership of_right =
      cluster_.book.MembershipOf(right.request->name.ns, right.request->priority_class);
  if (RankOf(of_left.gpu_class) != RankOf(of_right.gpu_class))
    return RankOf(of_left.gpu_class) > RankOf(of_right.gpu_class);
  if (of_left.leaf != of_right.leaf) {
    // A pod without a leaf borrows nothing.
    if (of_left.leaf == kNoQuota || of_right.leaf == kNoQuota) return of_left.leaf == kNoQuota;
    const int order = cluster_.book.CompareShares(of_left.leaf, of_right.leaf, now);
    if (order != 0) return order < 0;
  }
  // Within a team's class, whoever was evicted comes first.
  const bool left_returned = reclaims_.returned.contains(left.request->uid);
  const bool right_returned = reclaims_.returned.contains(right.request->uid);
  if (left_returned != right_returned) return left_returned;
  return std::tie(left.waits_since, left.request->uid) <
         std::tie(right.waits_since, right.request->uid);
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
  const QuotaId root = cluster_.book.tree().root(context.membership.leaf);
  for (const PodUid& uid : contenders) {
    const PodRecord* other = cluster_.Find(uid);
    if (other == nullptr || !cluster_.IsPending(*other)) continue;
    const QuotaMembership theirs =
        cluster_.book.MembershipOf(other->request->name.ns, other->request->priority_class);
    if (theirs.leaf == kNoQuota || cluster_.book.tree().root(theirs.leaf) != root) continue;
    ++waiting;
    position += other != &record && ComesFirst(*other, record, now);
  }
  return fmt::format("{}. Position {} of {}", why, position, waiting);
}

}  // namespace tranche
