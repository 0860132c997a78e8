#include "scheduler/engine/requeue/precedence.h"

#include <algorithm>

#include "scheduler/engine/selection/pool_windows.h"
#include "scheduler/index/charge_of.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

// Others give way to a waiting pod for this long; then it has had its chance.
constexpr Millis kYieldTime{30'000};
// Waiting pods looked at in one call: enough to keep the order where it matters.
constexpr int kMostContenders = 16;

}  // namespace

std::optional<PodUid> Precedence::YieldsTo(const RequestContext& context, const PodRecord& record,
                                           Instant now) {
  const QuotaMembership& membership = context.membership;
  if (team_queue_.contenders.empty() || membership.mode != QuotaMode::kEnforce ||
      selection_.best().empty()) {
    return std::nullopt;
  }
  const NodeId mine = selection_.best().front().node;
  const KindAnswer& taken = rules_.AskQuota(context, mine, now);
  if (!taken.borrows) return std::nullopt;
  const QuotaId root = cluster_.book.tree().root(membership.leaf);
  int looked_at = 0;
  for (const PodUid& uid : team_queue_.contenders) {
    if (uid == context.request->uid) continue;
    PodRecord* other = cluster_.Find(uid);
    if (other == nullptr || !cluster_.IsPending(*other) || other->asked.empty()) continue;
    if (++looked_at > kMostContenders) break;
    const bool had_its_chance = other->yields_since && now - *other->yields_since > kYieldTime;
    if (had_its_chance) continue;
    const RequestContext theirs = rules_.ContextOf(*other->request);
    if (theirs.whole != Reason::kNone || theirs.membership.leaf == kNoQuota ||
        cluster_.book.tree().root(theirs.membership.leaf) != root ||
        RankOf(theirs.membership.gpu_class) < RankOf(membership.gpu_class)) {
      continue;
    }
    // It must really fit now, by quota and on a node of ours, and no longer if we are let in.
    // Shares cost the most to compare and are asked for last.
    Admission admission;
    if (rules_.Admit(theirs, other->asked, now, admission) != Reason::kNone) continue;
    if (!team_queue_.ComesFirst(*other, record, now)) continue;
    if (!cluster_.book.FitsBeside(membership.leaf, taken.parts, theirs.membership.leaf,
                                  other->asked)) {
      const bool placed = std::ranges::any_of(selection_.best(), [&](const Candidate& candidate) {
        return ShutTo(cluster_, theirs, candidate.node, now) == Reason::kNone &&
               selection_.Fits(theirs, candidate.node) == Reason::kNone;
      });
      if (!placed) continue;
      TRANCHE_MARK(pod_yields_to_another_team);
      if (!other->yields_since) other->yields_since = now;
      return uid;
    }
  }
  return std::nullopt;
}

// An evicted pod gets devices back before others of its team and class (quota-model section 4).
std::optional<PodUid> Precedence::GivesWayToReturned(const RequestContext& context,
                                                     const PodRecord& record, Instant now) {
  const QuotaMembership& membership = context.membership;
  const bool asked = membership.leaf != kNoQuota && membership.mode == QuotaMode::kEnforce;
  if (!asked || selection_.best().size() != 1 ||
      reclaims_.returned.contains(context.request->uid) || record.earmark != nullptr) {
    return std::nullopt;
  }
  const NodeId mine = selection_.best().front().node;
  int looked_at = 0;
  for (const PodUid& uid : reclaims_.returned) {
    PodRecord* other = cluster_.Find(uid);
    if (other == nullptr || !cluster_.IsPending(*other) || ++looked_at > kMostContenders) continue;
    if (other->yields_since && now - *other->yields_since > kYieldTime) continue;
    const RequestContext theirs = rules_.ContextOf(*other->request);
    if (theirs.whole != Reason::kNone || theirs.membership.leaf != membership.leaf ||
        RankOf(theirs.membership.gpu_class) != RankOf(membership.gpu_class)) {
      continue;
    }
    if (selection_.Fits(theirs, mine) != Reason::kNone) continue;
    std::vector<ModelCharge> parts;
    ChargeAtMost(cluster_.nodes[mine]->state.inventory(), *other->request, parts);
    Admission admission;
    if (rules_.Admit(theirs, parts, now, admission) != Reason::kNone) continue;
    TRANCHE_MARK(pod_yields_to_one_evicted_before);
    if (!other->yields_since) other->yields_since = now;
    return uid;
  }
  return std::nullopt;
}

}  // namespace tranche
