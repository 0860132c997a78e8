#include "scheduler/engine/claims/claim_filter.h"

#include <algorithm>
#include <utility>

#include "scheduler/engine/selection/pool_windows.h"

namespace tranche {
namespace {

// Dense ranks by the order of the last filter.
void RankAs(const std::vector<NodeId>& ranked, const std::vector<NodeId>& ids,
            std::vector<int>& ranks) {
  std::vector<std::pair<std::ptrdiff_t, std::size_t>> order;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kNamedBefore) continue;
    order.emplace_back(std::ranges::find(ranked, ids[i]) - ranked.begin(), i);
  }
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i) {
    ranks[order[i].second] = RankAt(i);
  }
}

}  // namespace

ClaimScores::Wish& ClaimFilter::ScoresOf(const ClaimWish& wish, ClaimScores::Wish& own) {
  // Where an allocated claim's devices are is its own matter.
  const bool allocated = std::ranges::any_of(
      wish.claims, [](const auto* each) { return each->allocation.has_value(); });
  if (allocated || cluster_.catalog.depends_on_labels()) return own;
  const dra::Catalog::Changes changes = cluster_.catalog.TakeChanges();
  if (changes.all) books_.scores.Clear();
  for (const std::string& node : changes.nodes) books_.scores.Outdate(cluster_.names.Find(node));
  for (const NodeId id : cluster_.TakeRefreshed()) books_.scores.Outdate(id);
  return books_.scores.Of(wish.claims);
}

ClaimScores::Score ClaimFilter::ScoreOn(const ClaimWish& wish, NodeId id, ClaimScores::Wish& scores,
                                        Trials& trials) {
  if (id == kNoNode) return {kUnpredictedCost, 0};
  if (const ClaimScores::Score* known = scores.Find(id)) return *known;
  if (trials.nodes == 0) {
    const ClaimScores::Score untried = scores.Put(id, kUnpredictedCost, wishes_.PartsOn(wish, id));
    scores.Forget(id);
    return untried;
  }
  --trials.nodes;
  const ClaimOutlook outlook = wishes_.On(wish, id, trials.steps);
  const ClaimScores::Score score = scores.Put(id, outlook.cost, outlook.parts);
  // The next call has steps of its own.
  if (outlook.prediction.cut_short) scores.Forget(id);
  return score;
}

Reason ClaimFilter::AskOnce(const RequestContext& context, const ClaimScores::Wish& scores,
                            int parts, Instant now, ClaimingPod& pod,
                            std::vector<std::optional<Reason>>& asked) {
  const auto at = static_cast<std::size_t>(parts);
  if (at >= asked.size()) asked.resize(scores.parts().size());
  if (asked[at]) return *asked[at];
  Admission admission;
  const Reason reason = rules_.Admit(context, scores.parts()[at], now, admission);
  asked[at] = reason;
  if (reason != Reason::kNone && pod.asked.empty()) pod.asked = scores.parts()[at];
  if (admission.eligible_at && (!pod.eligible_at || *admission.eligible_at < *pod.eligible_at)) {
    pod.eligible_at = admission.eligible_at;
  }
  return reason;
}

std::vector<ClaimFilter::Place> ClaimFilter::PlacesFor(const RequestContext& context,
                                                       const ClaimWish& wish, ClaimingPod& pod,
                                                       Instant now, FilterAnswer& answer,
                                                       bool& wants) {
  std::vector<Place> places;
  ClaimScores::Wish own;
  ClaimScores::Wish& scores = ScoresOf(wish, own);
  Trials trials;
  std::vector<std::optional<Reason>> asked;  // of quota, by parts
  for (uint32_t position = 0; position < ids_.size(); ++position) {
    const NodeId id = ids_[position];
    if (id == kNamedBefore) continue;
    const ClaimScores::Score score = ScoreOn(wish, id, scores, trials);
    wants |= score.parts > 0;
    Reason reason = Reason::kNone;
    if (context.metered && score.parts > 0) {
      reason = AskOnce(context, scores, score.parts, now, pod, asked);
    }
    if (reason != Reason::kNone && context.membership.mode != QuotaMode::kEnforce) {
      answer.observed = reason;
      reason = Reason::kNone;
    }
    const Reason closed = id == kNoNode ? Reason::kNone : ShutTo(cluster_, context, id, now);
    const bool keeps_away = closed == Reason::kOperatorBusy || closed == Reason::kNodeUnreadable ||
                            closed == Reason::kAgentUnreadable || closed == Reason::kMaintenance ||
                            closed == Reason::kCapacity || closed == Reason::kInterrupted;
    if (keeps_away) reason = closed;
    if (reason != Reason::kNone) {
      answer.refused.emplace_back(position, reason);
      if (answer.reason == Reason::kNone || reason < answer.reason) answer.reason = reason;
      continue;
    }
    const uint32_t name = id == kNoNode ? ~uint32_t{0} : cluster_.names.rank(id);
    places.push_back({{score.cost, name}, position, id});
  }
  return places;
}

bool ClaimFilter::Filter(const PodRequest& request, std::span<const std::string_view> candidates,
                         Instant now, FilterAnswer& answer) {
  const auto found = books_.pods.find(request.uid);
  if (found == books_.pods.end()) return false;
  ClaimingPod& pod = found->second;
  const ClaimWish wish = wishes_.Of(request.name.ns, *pod.claims);
  charges_.Release(request.uid, wish);
  const RequestContext context = rules_.ContextOf(request);
  cluster_.names.FindAll(candidates, ids_);
  cluster_.names.ascending();
  bool wants = wish.holds_gpus;
  pod.asked.clear();
  pod.eligible_at.reset();
  std::vector<Place> places = PlacesFor(context, wish, pod, now, answer, wants);
  pod.wants_gpus |= wants;
  const auto refuse_all = [&](Reason reason) {
    answer.RefuseAll(candidates.size(), reason);
    pod.last_reason = reason;
    return true;
  };
  if (wish.unknown) {
    books_.unknown.insert(request.uid);
    return refuse_all(Reason::kClaimUnknown);
  }
  if (!wants) {
    answer.refused.clear();
    answer.reason = answer.observed = Reason::kNone;
    return false;
  }
  if (context.whole != Reason::kNone && context.whole != Reason::kStyleOff) {
    return refuse_all(context.whole);
  }
  const auto width = static_cast<std::size_t>(context.policy->filter_width);
  const std::size_t kept = std::min(width, places.size());
  std::ranges::partial_sort(places, places.begin() + static_cast<std::ptrdiff_t>(kept), {},
                            &Place::order);
  places.resize(kept);
  pod.ranked.clear();
  for (const Place& place : places) {
    answer.chosen.push_back(place.position);
    pod.ranked.push_back(place.node);
  }
  pod.last_reason = places.empty() ? answer.reason : Reason::kNone;
  if (!places.empty()) {
    answer.reason = Reason::kNone;
    pod.asked.clear();
    pod.eligible_at.reset();
    charges_.Keep(request, wish, places.front().node, now);
  }
  return true;
}

bool ClaimFilter::Rank(const PodUid& uid, std::span<const std::string_view> candidates,
                       std::vector<int>& ranks) {
  const auto pod = books_.pods.find(uid);
  const auto served = books_.served.find(uid);
  const std::vector<NodeId>* ranked = nullptr;
  if (served != books_.served.end()) ranked = &served->second;
  if (pod != books_.pods.end()) ranked = &pod->second.ranked;
  if (ranked == nullptr || ranked->empty()) return false;
  cluster_.names.FindAll(candidates, ids_);
  RankAs(*ranked, ids_, ranks);
  return true;
}

bool ClaimFilter::IsServed(const PodUid& uid, NodeId id) const {
  const auto served = books_.served.find(uid);
  return served != books_.served.end() &&
         std::ranges::find(served->second, id) != served->second.end();
}

void ClaimFilter::AddServed(const RequestContext& context, const std::vector<NodeId>& ids,
                            std::size_t width, Instant now, FilterAnswer& answer) {
  const PodUid& uid = context.request->uid;
  books_.served.erase(uid);
  charges_.Unkeep(KeyOfClaimsToBe(uid));
  if (!cluster_.catalog.has_slices() || answer.chosen.size() >= width) return;
  const ClaimWish wish = wishes_.Of(*context.request);
  if (wish.claims.empty()) return;
  std::vector<Place> places;
  ClaimScores::Wish own;
  ClaimScores::Wish& scores = ScoresOf(wish, own);
  Trials trials;
  cluster_.names.ascending();
  for (auto& [position, reason] : answer.refused) {
    const NodeId id = ids[position];
    const bool here = reason == Reason::kNoGpu || reason == Reason::kDevicesUnknown;
    if (!here || id == kNoNode || !wishes_.HasOnlyDraGpus(id)) continue;
    const ClaimScores::Score score = ScoreOn(wish, id, scores, trials);
    if (score.parts == 0) continue;
    reason = Reason::kNone;
    if (context.metered && context.membership.mode == QuotaMode::kEnforce) {
      Admission admission;
      const std::vector<ModelCharge>& parts = scores.parts()[static_cast<std::size_t>(score.parts)];
      reason = rules_.Admit(context, parts, now, admission);
    }
    if (reason == Reason::kNone)
      places.push_back({{score.cost, cluster_.names.rank(id)}, position, id});
  }
  std::erase_if(answer.refused, [](const auto& each) { return each.second == Reason::kNone; });
  std::ranges::sort(places, {}, &Place::order);
  const std::size_t room = width - answer.chosen.size();
  if (places.size() > room) places.resize(room);
  if (places.empty()) {
    for (const auto& [position, reason] : answer.refused) {
      if (IsQuotaReason(reason) &&
          (answer.reason > Reason::kWaitingForQuota || reason < answer.reason)) {
        answer.reason = reason;
      }
    }
    return;
  }
  if (answer.chosen.empty()) {
    charges_.Keep(*context.request, wish, ids[places.front().position], now);
  }
  std::vector<NodeId>& served = books_.served[uid];
  for (const uint32_t position : answer.chosen) served.push_back(ids[position]);
  for (const Place& place : places) {
    answer.chosen.push_back(place.position);
    served.push_back(ids[place.position]);
  }
  answer.reason = Reason::kNone;
}

}  // namespace tranche
