// Pods and nodes in words.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/engine_views.h"
#include "scheduler/engine/selection/money.h"
#include "scheduler/engine/selection/pool_windows.h"
#include "scheduler/engine/state/demands.h"
#include "scheduler/engine/views/demand_text.h"
#include "scheduler/engine/views/explain_text.h"
#include "scheduler/engine/views/node_view.h"
#include "scheduler/index/eligibility.h"

namespace tranche {

PodView EngineViews::ViewPod(const PodUid& uid, const PodRecord& record) {
  PodView view;
  view.name = record.request->name;
  view.uid = uid;
  view.gang = record.request->gang;
  view.priority_class = record.request->priority_class;
  view.observed = record.observed;
  view.labels = record.traits.labels;
  const RequestContext context = parts_.rules.ContextOf(*record.request);
  if (const HeldWork* work = cluster_.book.Find(uid)) {
    view.leaf = work->leaf;
    view.workload_class = work->workload_class;
    view.quota_state = cluster_.book.StateOf(uid);
  } else {
    if (context.membership.leaf != kNoQuota)
      view.leaf = cluster_.book.tree().name(context.membership.leaf);
    if (context.membership.gpu_class) view.workload_class = context.membership.gpu_class->name;
  }
  NodeId id = kNoNode;
  if (record.Place().empty()) {
    view.request = record.request;
    view.waits_since = record.waits_since;
  }
  if (!record.node.empty()) {
    // What was told too long ago is forgotten.
    const bool told = record.use && cluster_.latest - record.use->measured <= kUseGoodFor;
    if (told) view.use = record.use;
    view.state = PodState::kBound;
    id = cluster_.names.Find(record.node.str());
  } else if (!record.reserved.empty()) {
    view.state = PodState::kReserved;
    id = cluster_.names.Find(record.reserved.str());
  } else if (record.tentative != kNoNode) {
    view.state = PodState::kClaimed;
    id = record.tentative;
  }
  const bool there = id != kNoNode && cluster_.nodes[id] != nullptr;
  view.own_limits =
      DescribeOwnLimits(*record.request, there ? &cluster_.nodes[id]->state.inventory() : nullptr);
  if (!there) {
    DescribeWait(context, uid, record, view);
  } else {
    ViewHeld(id, uid, record, view);
  }
  return view;
}

void EngineViews::DescribeWait(const RequestContext& context, const PodUid& uid,
                               const PodRecord& record, PodView& view) {
  view.node = record.node;
  view.reason = WaitsBecause(cluster_, record);
  view.scheduler_says = record.traits.scheduler_says;
  view.eligible_at = record.eligible_at;
  if (record.request->refusal) {
    view.reason = record.request->refusal->reason;
    view.detail = record.request->refusal->detail;
  } else if (record.last_reason == Reason::kYieldingTo) {
    const PodRecord* first = cluster_.Find(record.yields_to);
    if (first != nullptr) view.detail = "gives way to " + first->request->name.str();
  } else if (const auto plan = parts_.reclaims.of_member.find(uid);
             plan != parts_.reclaims.of_member.end()) {
    const Reclaim& reclaim = parts_.reclaims.all.at(plan->second);
    view.reason = Reason::kPreemptionInProgress;
    const auto member = std::ranges::find(reclaim.members, uid, &ReclaimMember::uid);
    view.detail = fmt::format("{} of {} gone, for GPUs on {}", reclaim.gone(),
                              reclaim.victims.size(), member->node.str());
    view.eligible_at.reset();
  } else if (view.reason != Reason::kNone || parts_.preemptors.Has(uid)) {
    view.detail = parts_.gangs.Describe(record);
    if (view.detail.empty())
      view.detail = parts_.team_queue.DescribeQuota(context, record, cluster_.latest);
    if (view.detail.empty()) view.detail = "asks " + DescribeRequest(*record.request);
    if (const std::optional<PlanBlock> block = parts_.preemptors.BlockOf(uid)) {
      view.detail += "; " + block->detail;
      if (!view.eligible_at) view.eligible_at = block->until;
      // kube-scheduler never asked us: its own count of GPUs was enough to refuse the pod.
      if (record.last_reason == Reason::kNone) view.reason = block->reason;
    }
    if (view.reason == Reason::kNoNodeOffered && !view.scheduler_says.empty())
      view.detail += "; " + view.scheduler_says;
  }
}

void EngineViews::ViewHeld(NodeId id, const PodUid& uid, const PodRecord& record,
                           PodView& view) const {
  view.node = cluster_.names.name(id);
  const NodeState& state = cluster_.nodes[id]->state;
  const Holding* holding = state.Find(uid);
  if (holding == nullptr) return;
  for (const ContainerInfo& container : record.request->containers) {
    view.containers.push_back(container.name);
  }
  if (holding->known) {
    view.allocation = holding->allocation;
    if (holding->told_by_probe) {
      Allocation told = ToAllocation(state.inventory(), holding->held(), holding->picks);
      told.knowledge = Knowledge::kExact;
      if (holding->allocation) {
        told.epoch = holding->allocation->epoch;
        told.leaf = holding->allocation->leaf;
      }
      view.allocation = std::move(told);
    }
  } else {
    view.devices_unknown = true;
    view.detail = holding->problem;
    if (state.present()) {
      view.allocation = ToAllocation(state.inventory(), holding->held(), holding->picks);
    }
  }
}

std::string EngineViews::DescribeSharing(const RequestContext& context,
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
                         context.membership.gpu_class->name);
    }
  }
  return "";
}

const PodRecord* EngineViews::FindNewest(const PodName& pod) const {
  const PodRecord* newest = nullptr;
  for (auto at = cluster_.pods_by_name.lower_bound({pod, PodUid()});
       at != cluster_.pods_by_name.end() && at->first == pod; ++at) {
    // A UID that came back under another name leaves its first name here.
    const PodRecord* const found = cluster_.Find(at->second);
    if (found != nullptr && (newest == nullptr || !found->terminal)) newest = found;
  }
  return newest;
}

// What the node would newly cost; empty: money has no say there.
std::string EngineViews::DescribeMoney(const RequestContext& context, NodeId id, const Worth& worth,
                                       Instant now) const {
  const NodeEntry& entry = *cluster_.nodes[id];
  const GpuPrice* price = cluster_.prices.PriceIn(entry.price_group);
  if (cluster_.prices.RatesOf(context.policy_index) == nullptr || price == nullptr) return "";
  if (entry.capacity == CapacityType::kReserved) return "paid for ahead: costs nothing more";
  const int64_t milli = NewlyPaid(worth, cluster_.pays[id], *context.request, now);
  return fmt::format("newly costs {} GPU an hour at {} {} (GPUPrice {})",
                     FormatMicros(milli * 1000), FormatMicros(price->micros_per_gpu_hour),
                     price->currency, price->name);
}

NodeVerdict EngineViews::JudgeNode(const RequestContext& context, NodeId id, bool waits,
                                   Instant now) {
  const PodRequest& request = *context.request;
  const Reason whole = context.whole;
  NodeVerdict verdict;
  verdict.node = cluster_.names.name(id);
  verdict.reason = whole != Reason::kNone ? whole
                   : waits                ? ShutTo(cluster_, context, id, now)
                                          : cluster_.hot[id].closed;
  if (whole != Reason::kNone && request.refusal) verdict.detail = request.refusal->detail;
  const NodeEntry& entry = *cluster_.nodes[id];
  // kube-scheduler looks at these first, and asks about no other node.
  if (verdict.reason == Reason::kNone && waits)
    verdict.reason = JudgeDemands(entry.state.facts(), request);
  if (verdict.reason == Reason::kNone) {
    // Judged as if the pod itself held nothing, so that a placed pod's own node fits too.
    const Load load =
        entry.state.LoadWithout([&request](const PodUid& other) { return other == request.uid; });
    Worth worth;
    Picks picks;
    verdict.reason = cluster_.scorer.Evaluate(RoomOf(entry.state, load), request, *context.policy,
                                              picks, worth, context.sharing);
    const bool suits = verdict.reason == Reason::kNone || MoreRoomWouldHelp(verdict.reason);
    if (suits && waits && context.metered && context.membership.mode != QuotaMode::kObserve) {
      const Reason quota = parts_.rules.AskQuota(context, id, now).reason;
      if (quota != Reason::kNone) verdict.reason = quota;
    }
    if (suits && waits && parts_.namespaces.CapsRefuse(context, id))
      verdict.reason = Reason::kNamespaceQuota;
    if (verdict.reason == Reason::kNone && context.sharing != nullptr) {
      verdict.detail = DescribeSharing(context, entry);
    }
    if (verdict.reason == Reason::kNone && waits) {
      const std::string money = DescribeMoney(context, id, worth, now);
      if (!money.empty()) verdict.detail += (verdict.detail.empty() ? "" : "; ") + money;
    }
  }
  verdict.fits = verdict.reason == Reason::kNone;
  if (!verdict.fits && waits && parts_.kept.AwaitedNode(request.uid) == id) {
    verdict.reason = Reason::kPreemptionInProgress;
  }
  const bool by_quota = IsQuotaReason(verdict.reason) || verdict.reason == Reason::kNamespaceQuota;
  if (!verdict.fits && whole == Reason::kNone && !by_quota) {
    verdict.detail = DescribeMisfit(entry, request, *context.policy, verdict.reason, now);
  }
  if (IsJudgedBefore(verdict.reason))
    verdict.detail = DescribeDemands(entry.state.facts(), request, verdict.reason);
  if (verdict.reason == Reason::kCapacity)
    verdict.detail = DescribeCapacity(entry, *context.membership.gpu_class);
  if (verdict.reason == Reason::kNamespaceQuota)
    verdict.detail = parts_.namespaces.DescribeCaps(request, id);
  return verdict;
}

// After Select.
std::string EngineViews::AdvicePending(const RequestContext& context, const PodRecord& record,
                                       std::span<const NodeVerdict> nodes) {
  const std::string& scheduler = record.request->scheduler;
  if (record.last_reason == Reason::kNone && !cluster_.schedulers.Asks(scheduler)) {
    return fmt::format(
        "the pod waits for the scheduler {:.64}, which has asked about none of its pods: name one "
        "that asks Tranche in spec.schedulerName",
        scheduler.empty() ? "default-scheduler" : scheduler);
  }
  Reason reason = context.whole;
  if (reason == Reason::kNone && parts_.selection.best().empty()) {
    reason = parts_.selection.NearestReason();
    Reason of_spec = Reason::kNone;
    for (const NodeVerdict& node : nodes) {
      if (IsJudgedBefore(node.reason)) of_spec = std::max(of_spec, node.reason);
    }
    // No node suits the pod's spec, and so none was looked at.
    if (reason == Reason::kNone) reason = of_spec;
  }
  if (reason == Reason::kNone) reason = WaitsBecause(cluster_, record);
  // It may fit by itself, and waits for others.
  if (context.whole == Reason::kNone && record.last_reason >= Reason::kGangIncomplete &&
      record.last_reason <= Reason::kGangNoRoom) {
    reason = record.last_reason;
  }
  const PodUid& uid = context.request->uid;
  if (parts_.kept.AwaitedNode(uid) != kNoNode) reason = Reason::kPreemptionInProgress;
  std::string advice = AdviceFor(reason);
  if (!MoreRoomWouldHelp(reason) && reason != Reason::kGangNoRoom) return advice;
  const std::string why = parts_.preemptors.BlockOf(uid) ? "" : WhyNobodyGoes(context);
  return why.empty() ? advice : advice + "; " + why;
}

// What is under way for the pod or against it, or what stands in the way of a plan.
void EngineViews::ExplainReclaim(const PodUid& uid, Explanation& explanation) {
  for (const auto* index : {&parts_.reclaims.of_member, &parts_.reclaims.of_victim}) {
    const auto found = index->find(uid);
    if (found != index->end()) explanation.reclaim = parts_.reclaims.all.at(found->second);
  }
  if (explanation.reclaim) return;
  explanation.blocked = parts_.preemptors.BlockOf(uid);
}

std::vector<NodeView> Engine::Nodes(const NodeName& after, std::size_t limit, Instant) const {
  ClusterState& cluster = parts_->cluster;
  std::vector<NodeView> page;
  const std::vector<NodeId>& order = cluster.names.ascending();
  auto at =
      std::ranges::upper_bound(order, after, {}, [&](NodeId id) { return cluster.names.name(id); });
  for (; at != order.end() && page.size() < limit; ++at) {
    if (cluster.nodes[*at] == nullptr || cluster.names.name(*at).empty()) continue;
    if (!cluster.nodes[*at]->exists()) continue;
    page.push_back(ViewNode(cluster.names.name(*at), *cluster.nodes[*at]));
    parts_->claim_views.ViewGpus(*at, page.back());
    const NodeState& state = cluster.nodes[*at]->state;
    // Nothing is known of one whose object could never be read.
    if (state.present()) {
      page.back().traits = TraitsOf(*cluster.set, state.facts().labels.Finder());
    }
  }
  return page;
}

std::vector<PodView> Engine::Pods(const PodName& after, const PodUid& after_uid,
                                  std::size_t limit) {
  ClusterState& cluster = parts_->cluster;
  std::vector<PodView> page;
  EngineViews views(*parts_);
  const ClaimBooks& claim_books = parts_->claim_books;
  auto claiming = claim_books.by_name.upper_bound({after, after_uid});
  auto at = cluster.pods_by_name.upper_bound({after, after_uid});
  while (page.size() < limit) {
    const bool no_more = at == cluster.pods_by_name.end();
    if (claiming != claim_books.by_name.end() && (no_more || *claiming < *at)) {
      const ClaimingPod& pod = claim_books.pods.at(claiming->second);
      if (pod.wants_gpus) page.push_back(parts_->claim_views.ViewPod(claiming->second, pod));
      ++claiming;
      continue;
    }
    if (no_more) break;
    const PodRecord* const record = cluster.Find(at->second);
    if (record != nullptr && !record->terminal) page.push_back(views.ViewPod(at->second, *record));
    ++at;
  }
  return page;
}

std::vector<GangView> Engine::GangsAfter(const std::string& after, std::size_t limit) const {
  // A member is a look-up; of one gang all are looked at at once.
  constexpr std::size_t kMostMembers = 512;
  const Gangs& gangs = parts_->gangs;
  std::vector<GangView> page;
  std::size_t members = 0;
  for (auto at = gangs.books().all.upper_bound(after);
       at != gangs.books().all.end() && page.size() < limit && members < kMostMembers; ++at) {
    members += at->second.members.size();
    page.push_back(gangs.ViewOf(at->first));
  }
  return page;
}

std::optional<Explanation> Engine::Explain(const PodName& pod, Instant now) {
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  EngineViews views(parts);
  parts.Advance(now);
  const PodRecord* record = views.FindNewest(pod);
  if (record == nullptr) return parts.claim_views.Explain(pod, now);
  const PodRequest request = *record->request;
  const PodUid& uid = request.uid;
  Explanation explanation;
  explanation.pod = views.ViewPod(uid, *record);
  const ScopedRemoval lift(parts.cluster, uid, now, parts.kept.SharesWith(uid));
  const RequestContext context = parts.rules.ContextOf(request);
  parts.rules.ForgetKindAnswers();
  const bool pending = cluster.IsPending(*record);
  std::vector<NodeId> suiting;
  std::vector<std::size_t> places;  // of these among the answer's nodes
  for (const NodeId id : cluster.names.ascending()) {
    if (cluster.nodes[id] == nullptr || !cluster.nodes[id]->exists()) continue;
    const NodeVerdict& verdict =
        explanation.nodes.emplace_back(views.JudgeNode(context, id, pending, now));
    if (IsJudgedBefore(verdict.reason)) continue;
    suiting.push_back(id);
    places.push_back(explanation.nodes.size() - 1);
  }
  if (context.whole == Reason::kNone) {
    parts.selection.Select(context, suiting, suiting.size(), now, nullptr);
    for (std::size_t i = 0; i < parts.selection.best().size(); ++i) {
      const std::size_t place = places[parts.selection.best()[i].position];
      explanation.nodes[place].rank = static_cast<int>(i);
    }
  }
  if (explanation.pod.state == PodState::kPending) {
    explanation.advice = views.AdvicePending(context, *record, explanation.nodes);
  }
  const HeldWork* work = cluster.book.Find(uid);
  if (work != nullptr && parts.metering.IsAbandoned(*work)) {
    explanation.advice = fmt::format(
        "quota {}, which admitted it, is gone and no other owns namespace {}: the pod "
        "counts against no team until a GPUQuota owns the namespace",
        work->leaf, work->pod.ns);
  }
  if (const std::optional<int64_t> ahead = cluster.agents.Ahead(uid)) {
    explanation.advice = fmt::format("the agent of {} serves one pod at a time, {} before this one",
                                     record->reserved.str(), *ahead);
  }
  views.ExplainReclaim(uid, explanation);
  return explanation;
}

}  // namespace tranche
