// Why: the verdict of every node in words.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/engine/shape.h"
#include "scheduler/index/charge_of.h"
#include "scheduler/index/eligibility.h"
#include "topology/gpu_model.h"

namespace tranche {

std::string Engine::Impl::DescribeSharing(const RequestContext& context,
                                          const NodeEntry& entry) const {
  const Inventory& inventory = entry.state.inventory();
  for (const Ask& ask : context.request->asks) {
    for (const Card& card : inventory.cards) {
      const bool instance = PoolFor(inventory, ask) >= 0;
      if (!instance && !IsRightKind(inventory, ask, card)) continue;
      const SharingMode mode = ModeOf(inventory, ask, card);
      const auto at = std::ranges::find(*context.sharing, mode);
      if (at == context.sharing->end()) continue;
      return fmt::format("shared as {}, choice {} of {} of class {}", SharingModeName(mode),
                         at - context.sharing->begin() + 1, context.sharing->size(),
                         context.standing.gpu_class->name);
    }
  }
  return "";
}

const PodRecord* Engine::Impl::FindNewest(const PodName& pod) const {
  const PodRecord* newest = nullptr;
  for (auto at = pods_by_name.lower_bound({pod, PodUid()});
       at != pods_by_name.end() && at->first == pod; ++at) {
    const PodRecord& found = pods.at(at->second);
    if (newest == nullptr || !found.terminal) newest = &found;
  }
  return newest;
}

NodeVerdict Engine::Impl::JudgeNode(const RequestContext& context, NodeId id, bool waits,
                                    Instant now) {
  const PodRequest& request = *context.request;
  const Reason whole = context.whole;
  NodeVerdict verdict;
  verdict.node = names.name(id);
  verdict.reason = whole != Reason::kNone ? whole : hot[id].closed;
  if (whole != Reason::kNone && request.refusal) verdict.detail = request.refusal->detail;
  const NodeEntry& entry = *nodes[id];
  if (verdict.reason == Reason::kNone) {
    // Judged as if the pod itself held nothing, so that a placed pod's own node fits too.
    const Load load =
        entry.state.LoadWithout([&request](const PodUid& other) { return other == request.uid; });
    Worth worth;
    verdict.reason = scorer.Evaluate(RoomOf(entry.state, load), request, *context.policy, picks,
                                     worth, context.sharing);
    const bool suits = verdict.reason == Reason::kNone || MoreRoomWouldHelp(verdict.reason);
    if (suits && waits && context.metered && context.standing.mode != QuotaMode::kObserve) {
      const Reason quota = AskQuota(context, id, now).reason;
      if (quota != Reason::kNone) verdict.reason = quota;
    }
    if (suits && waits && CapsRefuse(context, id)) verdict.reason = Reason::kNamespaceQuota;
    if (verdict.reason == Reason::kNone && context.sharing != nullptr) {
      verdict.detail = DescribeSharing(context, entry);
    }
  }
  verdict.fits = verdict.reason == Reason::kNone;
  if (!verdict.fits && waits && AwaitedNode(request.uid) == id) {
    verdict.reason = Reason::kPreemptionInProgress;
  }
  const bool by_quota = IsQuotaReason(verdict.reason) || verdict.reason == Reason::kNamespaceQuota;
  if (!verdict.fits && whole == Reason::kNone && !by_quota) {
    verdict.detail = DescribeMisfit(entry, request, *context.policy, verdict.reason, now);
  }
  if (verdict.reason == Reason::kNamespaceQuota) verdict.detail = DescribeCaps(request, id);
  return verdict;
}

// After Select.
std::string Engine::Impl::AdvicePending(const RequestContext& context, const PodRecord& record) {
  Reason reason = context.whole;
  if (reason == Reason::kNone && best.empty()) reason = NearestReason();
  // It may fit by itself, and waits for others.
  if (context.whole == Reason::kNone && record.last_reason >= Reason::kGangIncomplete &&
      record.last_reason <= Reason::kGangNoRoom) {
    reason = record.last_reason;
  }
  if (AwaitedNode(context.request->uid) != kNoNode) reason = Reason::kPreemptionInProgress;
  return AdviceFor(reason);
}

std::optional<Explanation> Engine::Explain(const PodName& pod, Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  const PodRecord* record = impl.FindNewest(pod);
  if (record == nullptr) return DraDesk(impl).Explain(pod, now);
  const PodRequest request = *record->request;
  const PodUid& uid = request.uid;
  Explanation explanation;
  explanation.pod = impl.ViewPod(uid, *record);
  const ScopedRemoval lift(impl, uid, now, impl.SharesWith(uid));
  const RequestContext context = impl.ContextOf(request);
  impl.ForgetKindAnswers();
  const bool pending = impl.IsPending(*record);
  std::vector<NodeId> ids;
  for (const NodeId id : impl.names.ascending()) {
    if (impl.nodes[id] == nullptr || !impl.nodes[id]->state.present()) continue;
    ids.push_back(id);
  }
  for (const NodeId id : ids) {
    explanation.nodes.push_back(impl.JudgeNode(context, id, pending, now));
  }
  if (context.whole == Reason::kNone) {
    impl.Select(context, ids, ids.size(), now, nullptr);
    for (std::size_t i = 0; i < impl.best.size(); ++i) {
      explanation.nodes[impl.best[i].position].rank = static_cast<int>(i);
    }
  }
  if (explanation.pod.state == PodState::kPending) {
    explanation.advice = impl.AdvicePending(context, *record);
  }
  if (const std::optional<int64_t> ahead = impl.agents.Ahead(uid)) {
    explanation.advice = fmt::format("the agent of {} serves one pod at a time, {} before this one",
                                     record->reserved.str(), *ahead);
  }
  impl.ExplainReclaim(uid, explanation);
  return explanation;
}

}  // namespace tranche
