// The verbs that choose: filter and prioritize.
#include <algorithm>
#include <utility>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/parts.h"
#include "scheduler/engine/state/demands.h"
#include "topology/base/mark.h"
#include "topology/base/plant.h"

namespace tranche {
namespace {

// The steps of Filter and Prioritize.
class Filtering {
 public:
  explicit Filtering(EngineParts& parts) : parts_(parts), cluster_(parts.cluster) {}

  // A pod without GPUs: nothing is decided, and it is known at its bind.
  void PassPlain(const PodRequest& request, FilterAnswer& answer);
  PodRecord& NoteFiltered(const PodRequest& request, Instant now);
  // Narrows the question to where the pod's gang allows it; the gang's refusal.
  Reason AskGang(const PodRecord& record, RequestContext& context, Neighbours& near, Instant now);
  void ShowAwaited(const PodUid& uid, FilterAnswer& answer);
  bool GivesWay(const RequestContext& context, PodRecord& record, Instant now,
                FilterAnswer& answer);
  void KeepAnswer(const RequestContext& context, PodRecord& record, const FilterAnswer& answer,
                  Instant now);
  // Kube-scheduler asks about what its own plugins let through, and a full node is not among that.
  // What stands in the way where no node of the question will ever do is said of the others.
  void LookElsewhere(const RequestContext& context, Instant now, FilterAnswer& answer);
  void RankPlain(const PodRequest& request, Instant now, std::vector<int>& ranks);
  // The order filter gave, where it knew all of them; false: it did not.
  bool RankAsFiltered(const PodRecord& record, std::vector<int>& ranks) const;
  void RankAsSelected(std::vector<int>& ranks) const;
  // The pod has its node, or a bind to it is under way: that one alone. False: it waits.
  bool AnswerPlaced(const PodUid& uid, std::span<const std::string_view> candidates,
                    FilterAnswer& answer);

 private:
  EngineParts& parts_;
  ClusterState& cluster_;
};

}  // namespace

void Filtering::PassPlain(const PodRequest& request, FilterAnswer& answer) {
  answer.untouched = true;
  if (!request.uid.empty()) cluster_.plain.Note(request.uid);
}

PodRecord& Filtering::NoteFiltered(const PodRequest& request, Instant now) {
  PodRecord& record = cluster_.Touch(request);
  parts_.gangs.Join(request.uid, record, now);
  if (!record.seen && record.tentative == kNoNode && !record.filtered) {
    parts_.unseen.emplace_back(now, request.uid);
  }
  cluster_.DropTentative(request.uid, record, now);
  if (record.waits_since == Instant()) record.waits_since = now;
  record.eligible_at.reset();
  record.observed = Reason::kNone;
  if (!record.counted) cluster_.scorer.Arrived(request);
  record.counted = true;
  record.filtered = true;
  record.last_reason = Reason::kNone;
  return record;
}

Reason Filtering::AskGang(const PodRecord& record, RequestContext& context, Neighbours& near,
                          Instant now) {
  const GangTurn turn = parts_.gangs.TakeTurn(context.request->uid, record, now);
  parts_.PassOnJudged();
  if (turn.reason != Reason::kNone && !TRANCHE_PLANTED(gang_member_binds_alone)) return turn.reason;
  if (!turn.only.empty()) {
    context.only = cluster_.names.Find(turn.only.str());
    context.kept = true;
  } else if (NeighboursOf(cluster_, parts_.gangs.books().all.at(record.gang), *record.request,
                          *context.policy, near)) {
    context.near = &near;
  }
  return Reason::kNone;
}

// The node where its victims leave must not look hopeless, or other victims are chosen.
void Filtering::ShowAwaited(const PodUid& uid, FilterAnswer& answer) {
  const NodeId awaited = parts_.kept.AwaitedNode(uid);
  if (awaited == kNoNode) return;
  for (auto& [position, reason] : answer.refused) {
    if (parts_.ids[position] != awaited) continue;
    reason = Reason::kPreemptionInProgress;
    parts_.selection.NoteReason(reason);
  }
}

bool Filtering::GivesWay(const RequestContext& context, PodRecord& record, Instant now,
                         FilterAnswer& answer) {
  const PodUid& uid = context.request->uid;
  if (context.metered) {
    parts_.team_queue.NoteQuotaRefusal(context, record, parts_.selection.quota_allows_one(), now);
    answer.observed = record.observed;
    if (const auto first = parts_.precedence.YieldsTo(context, record, now)) {
      record.yields_to = *first;
      parts_.team_queue.contenders.insert(uid);
      parts_.requeue.IfFits(*first, now);
      return true;
    }
  }
  const auto returned = parts_.precedence.GivesWayToReturned(context, record, now);
  if (!returned) return false;
  record.yields_to = *returned;
  parts_.requeue.IfFits(*returned, now);
  return true;
}

void Filtering::LookElsewhere(const RequestContext& context, Instant now, FilterAnswer& answer) {
  if (!answer.chosen.empty() || OthersMayGiveIt(answer.reason)) return;
  std::vector<NodeId>& others = parts_.others;
  others.clear();
  std::ranges::sort(parts_.ids);
  for (NodeId id{0}; id < cluster_.nodes.size(); ++id) {
    if (cluster_.nodes[id] == nullptr || std::ranges::binary_search(parts_.ids, id)) continue;
    // Of a node that is gone, or was never read, only pods may be left.
    const NodeState& state = cluster_.nodes[id]->state;
    if (!state.present() || !MeetsDemands(state.facts(), *context.request)) continue;
    others.push_back(id);
  }
  if (others.empty()) return;
  parts_.selection.Select(context, others, 1, now, nullptr);
  // One that has room is refused by kube-scheduler for reasons of its own.
  parts_.selection.DropBest();
  const Reason reason = parts_.selection.NearestReason();
  if (!OthersMayGiveIt(reason)) return;
  TRANCHE_MARK(filter_about_nodes_that_will_never_do);
  answer.reason = reason;
}

void Filtering::KeepAnswer(const RequestContext& context, PodRecord& record,
                           const FilterAnswer& answer, Instant now) {
  const PodUid& uid = context.request->uid;
  record.last_reason = answer.reason;
  if (answer.chosen.empty()) {
    parts_.preemptors.Note(uid, record);
    parts_.requeue.NoteRefused(uid, now);
  }
  const bool unbound = record.node.empty() && record.reserved.empty() && !record.terminal;
  const std::vector<Candidate>& best = parts_.selection.best();
  if (!best.empty() && unbound) {
    parts_.selection.PlaceTentatively(context, record, best.front().node, now);
  }
  parts_.ForgetOldest();
}

// Where the CPU they take strands no GPU. Never refused, and none of the nodes is held back.
void Filtering::RankPlain(const PodRequest& request, Instant now, std::vector<int>& ranks) {
  const RequestContext context = parts_.rules.ContextOf(request);
  if (context.policy->plain_pods == PlainPods::kIgnore) return;
  RequestContext unmetered;
  unmetered.request = &request;
  unmetered.policy = context.policy;
  unmetered.policy_index = context.policy_index;
  cluster_.scorer.Refresh();
  parts_.selection.Select(unmetered, parts_.ids, kTopRank, now, nullptr);
  RankAsSelected(ranks);
}

bool Filtering::RankAsFiltered(const PodRecord& record, std::vector<int>& ranks) const {
  std::vector<std::size_t> places;
  for (const NodeId id : parts_.ids) {
    const auto at = std::ranges::find(record.ranked, id);
    if (at == record.ranked.end()) return false;
    places.push_back(static_cast<std::size_t>(at - record.ranked.begin()));
  }
  // Dense ranks, so that nodes another extender removed leave no gap.
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto better =
        std::ranges::count_if(places, [&](std::size_t place) { return place < places[i]; });
    ranks[i] = RankAt(static_cast<std::size_t>(better));
  }
  return true;
}

void Filtering::RankAsSelected(std::vector<int>& ranks) const {
  const std::vector<Candidate>& best = parts_.selection.best();
  for (std::size_t i = 0; i < best.size(); ++i) ranks[best[i].position] = RankAt(i);
}

bool Filtering::AnswerPlaced(const PodUid& uid, std::span<const std::string_view> candidates,
                             FilterAnswer& answer) {
  const PodRecord* record = cluster_.Find(uid);
  if (record == nullptr || record->terminal || record->Place().empty()) return false;
  if (record->node.empty() && TRANCHE_PLANTED(bind_elsewhere_while_one_is_under_way)) return false;
  TRANCHE_MARK(filter_of_a_placed_pod);
  for (uint32_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i] != record->Place().str()) {
      answer.refused.emplace_back(i, Reason::kPodElsewhere);
    } else if (answer.chosen.empty()) {
      answer.chosen.push_back(i);
    }
  }
  if (answer.chosen.empty()) answer.reason = Reason::kPodElsewhere;
  return true;
}

void Engine::Filter(const PodRequest& request, std::span<const std::string_view> candidates,
                    Instant now, FilterAnswer& answer) {
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  Filtering filtering(parts);
  answer.untouched = false;
  answer.chosen.clear();
  answer.refused.clear();
  answer.reason = Reason::kNone;
  answer.observed = Reason::kNone;
  parts.Advance(now);
  parts.NoteAsking(request.scheduler);
  parts.early_nominations.TellNext(1, now);
  // One that a server shows us again, as it is behind, is there.
  if (cluster.gone.Has(request.uid) && cluster.Find(request.uid) == nullptr) {
    TRANCHE_MARK(filter_of_a_pod_that_is_gone);
    return answer.RefuseAll(candidates.size(), Reason::kPodGone);
  }
  if (!request.asks_gpu()) {
    if (!parts.claim_filter.Filter(request, candidates, now, answer))
      filtering.PassPlain(request, answer);
    return;
  }
  if (filtering.AnswerPlaced(request.uid, candidates, answer)) return;
  PodRecord* record = request.uid.empty() ? nullptr : &filtering.NoteFiltered(request, now);
  RequestContext context = parts.rules.ContextOf(request);
  const auto refuse_all = [&](Reason reason) {
    answer.RefuseAll(candidates.size(), reason);
    if (record != nullptr) record->last_reason = reason;
    if (record != nullptr) parts.early_nominations.NoteAsked(request.uid, {}, /*fits=*/false, now);
  };
  if (context.whole != Reason::kNone) return refuse_all(context.whole);
  cluster.scorer.Refresh();
  context.kept = record != nullptr && record->earmark != nullptr;
  Neighbours neighbours;
  if (record != nullptr && !record->gang.empty()) {
    if (const Reason reason = filtering.AskGang(*record, context, neighbours, now);
        reason != Reason::kNone) {
      refuse_all(reason);
      parts.preemptors.Note(request.uid, *record);
      return parts.ForgetOldest();
    }
  }
  const ScopedRemoval lift(parts.cluster, request.uid, now, parts.kept.SharesWith(request.uid));
  const auto width = static_cast<std::size_t>(context.policy->filter_width);
  cluster.names.FindAll(candidates, parts.ids);
  parts.selection.Select(context, parts.ids, width, now, &answer.refused);
  filtering.ShowAwaited(request.uid, answer);
  if (record != nullptr && filtering.GivesWay(context, *record, now, answer)) {
    return refuse_all(Reason::kYieldingTo);
  }
  for (const Candidate& candidate : parts.selection.best())
    answer.chosen.push_back(candidate.position);
  if (parts.selection.best().empty()) {
    answer.reason = parts.selection.NearestReason();
    const bool model = answer.reason == Reason::kWrongModel;
    if (model && !KnowsModelOf(cluster, request)) answer.reason = Reason::kUnknownModel;
  }
  parts.claim_filter.AddServed(context, parts.ids, width, now, answer);
  if (record == nullptr) return;
  filtering.LookElsewhere(context, now, answer);
  filtering.KeepAnswer(context, *record, answer, now);
  parts.early_nominations.NoteAsked(request.uid, parts.ids, !answer.chosen.empty(), now);
}

bool Engine::RankAsFiltered(const PodUid& pod, std::span<const std::string_view> candidates,
                            Instant now, std::vector<int>& ranks) {
  EngineParts& parts = *parts_;
  parts.Advance(now);
  ranks.assign(candidates.size(), 0);
  if (parts.claim_filter.Rank(pod, candidates, ranks)) return true;
  const PodRecord* record = parts.cluster.Find(pod);
  if (record == nullptr || record->tentative == kNoNode || !record->Place().empty()) return false;
  parts.cluster.names.FindAll(candidates, parts.ids);
  return Filtering(parts).RankAsFiltered(*record, ranks);
}

void Engine::Prioritize(const PodRequest& request, std::span<const std::string_view> candidates,
                        Instant now, std::vector<int>& ranks) {
  if (RankAsFiltered(request.uid, candidates, now, ranks)) return;
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  Filtering filtering(parts);
  cluster.names.FindAll(candidates, parts.ids);
  if (!request.asks_gpu()) return filtering.RankPlain(request, now, ranks);
  PodRecord* record = cluster.Find(request.uid);
  if (record != nullptr && !record->Place().empty()) {
    const auto at = std::ranges::find(candidates, std::string_view(record->Place().str()));
    if (at != candidates.end()) ranks[static_cast<std::size_t>(at - candidates.begin())] = kTopRank;
    return;
  }
  RequestContext context = parts.rules.ContextOf(request);
  context.kept = record != nullptr && record->earmark != nullptr;
  if (record != nullptr && parts.gangs.IsSeated(request.uid, *record)) {
    context.only = cluster.names.Find(record->earmark->node.str());
  }
  const ScopedRemoval lift(cluster, request.uid, now, parts.kept.SharesWith(request.uid));
  if (context.whole != Reason::kNone) return;
  const NodeId claimed = record == nullptr ? kNoNode : record->tentative;
  // Its filter did not see all of these.
  if (claimed != kNoNode) cluster.DropTentative(request.uid, *record, now);
  parts.selection.Select(context, parts.ids, candidates.size(), now, nullptr);
  filtering.RankAsSelected(ranks);
  if (claimed == kNoNode || cluster.nodes[claimed] == nullptr) return;
  const std::vector<Candidate>& best = parts.selection.best();
  parts.selection.PlaceTentatively(context, *record, best.empty() ? claimed : best.front().node,
                                   now);
}

}  // namespace tranche
