// Choosing nodes: filter, prioritize, and the selection they and what-if share.
//
// A decision costs one name look-up and one table look-up per candidate, plus one evaluation for
// every node state the request's shape has not met yet (ADR 0001).
#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/engine/shape.h"

namespace tranche {
namespace {

constexpr std::size_t kMaxShapes = 256;
// Refusals remembered for a poke; the oldest go first.
constexpr std::size_t kMaxRefused = 4096;
// An order, high to low: over another pod's claim, by borrowing, far from its gang, way of sharing,
// cost, name.
constexpr Order kIgnoresClaims = Order{1} << 84;
constexpr Order kBorrows = Order{1} << 83;
constexpr int kDistanceShift = 80;
constexpr int kRankShift = 72;
constexpr int kCostShift = 32;
constexpr int64_t kCostZero = int64_t{1} << 39;  // costs may be negative

Order OrderOf(const Worth& worth, int64_t cost, uint32_t name) {
  const int64_t shifted = std::clamp(cost + kCostZero, int64_t{0}, 2 * kCostZero - 1);
  return Order{worth.rank} << kRankShift | Order(shifted) << kCostShift | name;
}
}  // namespace

// What one selection asks of every candidate.
struct Engine::Impl::Round {
  const RequestContext& context;
  Shape* shape = nullptr;
  Instant now;
  bool holds = false;                 // nodes are kept for a gang, and not for this pod's
  bool enforced = false;              // a refusal by quota counts
  const KindAnswer* quota = nullptr;  // of the kind met last
  uint32_t quota_kind = 0;
};

Shape* Engine::Impl::ShapeOf(const RequestContext& context) {
  if (SelectsDevices(*context.request)) return nullptr;
  text.clear();
  AppendShape(*context.request, text);
  text.push_back(static_cast<char>('0' + context.policy_index));
  if (context.sharing != nullptr) {
    for (const SharingMode mode : *context.sharing) {
      text.push_back(static_cast<char>('a' + static_cast<int>(mode)));
    }
  }
  const auto found = shapes.find(text);
  if (found != shapes.end()) {
    found->second.last_used = ++shape_clock;
    return &found->second;
  }
  if (shapes.size() >= kMaxShapes) {
    const auto oldest = std::ranges::min_element(
        shapes, {}, [](const auto& entry) { return entry.second.last_used; });
    shapes.erase(oldest);
  }
  Shape& shape = shapes[text];
  shape.last_used = ++shape_clock;
  return &shape;
}

void Engine::Impl::BeginSelection(const PodRequest& request) {
  scorer.Price(request);
  selection_version = scorer.version(request);
  ++selection;
}

Verdict& Engine::Impl::Lookup(Shape* shape, const RequestContext& context, NodeId id, bool soft) {
  const StateId state = soft ? hot[id].soft : hot[id].hard;
  const uint32_t generation = states.generation(state);
  Verdict* verdict = &direct;
  if (shape != nullptr) {
    if (state >= shape->by_state.size()) shape->by_state.resize(states.size());
    verdict = &shape->by_state[state];
    if (verdict->generation == generation && verdict->version == selection_version) return *verdict;
  }
  const NodeState& node = nodes[id]->state;
  verdict->reason =
      scorer.Evaluate(RoomOf(node, soft ? node.soft() : node.hard()), *context.request,
                      *context.policy, picks, verdict->worth, context.sharing);
  verdict->generation = generation;
  verdict->version = selection_version;
  verdict->priced = 0;
  return *verdict;
}

Reason Engine::Impl::Fits(const RequestContext& context, NodeId id) {
  selection_version = scorer.version(*context.request);
  return Lookup(ShapeOf(context), context, id, false).reason;
}

Reason Engine::Impl::ClosedTo(const Round& round, NodeId id, int& distance) const {
  const RequestContext& context = round.context;
  if (id == kNoNode) return Reason::kUnknownNode;
  if (hot[id].closed != Reason::kNone) return hot[id].closed;
  if (context.only != kNoNode && id != context.only) return Reason::kGangElsewhere;
  if (round.holds && IsHeldFrom(*context.request, id, round.now)) return Reason::kHeldForGang;
  if (context.near == nullptr) return Reason::kNone;
  distance = DistanceTo(*context.near, id);
  return distance > context.near->within ? Reason::kGangElsewhere : Reason::kNone;
}

Reason Engine::Impl::Consider(Round& round, NodeId id, Order& order) {
  const RequestContext& context = round.context;
  int distance = 0;
  const Reason closed = ClosedTo(round, id, distance);
  if (closed != Reason::kNone) return closed;
  Verdict* verdict = &Lookup(round.shape, context, id, true);
  if (verdict->reason != Reason::kNone && hot[id].hard != hot[id].soft) {
    verdict = &Lookup(round.shape, context, id, false);
    order = kIgnoresClaims;
  }
  // Quota comes before room: a node that only lacks room is one the team could have had.
  const bool suits = verdict->reason == Reason::kNone || MoreRoomWouldHelp(verdict->reason);
  bool allowed = true;
  if (suits && context.capped && CapsRefuse(context, id)) return Reason::kNamespaceQuota;
  if (suits && context.metered) {
    if (round.quota == nullptr || round.quota_kind != hot[id].kind) {
      round.quota = &AskQuota(context, id, round.now);
      round.quota_kind = hot[id].kind;
    }
    allowed = round.quota->reason == Reason::kNone;
    if (!allowed && round.enforced) return round.quota->reason;
    if (round.quota->borrows) order |= kBorrows;
  }
  if (verdict->reason != Reason::kNone) return verdict->reason;
  quota_allows_one |= allowed;
  if (verdict->priced != selection) {
    verdict->priced = selection;
    verdict->cost = scorer.CostOf(verdict->worth);
  }
  order |= OrderOf(verdict->worth, verdict->cost, names.rank(id));
  order |= Order(distance) << kDistanceShift;
  return Reason::kNone;
}

void Engine::Impl::Keep(const Candidate& candidate, std::size_t width) {
  if (best.size() == width) {
    if (candidate.order >= best.back().order) return;
    best.pop_back();
  }
  best.insert(std::ranges::upper_bound(best, candidate.order, {}, &Candidate::order), candidate);
}

void Engine::Impl::Select(const RequestContext& context, const std::vector<NodeId>& candidates,
                          std::size_t width, Instant now,
                          std::vector<std::pair<uint32_t, Reason>>* refused) {
  best.clear();
  reason_counts.fill(0);
  quota_allows_one = false;
  ForgetKindAnswers();
  Round round{.context = context,
              .shape = ShapeOf(context),
              .now = now,
              .holds = !gangs.hold.nodes.empty() && !context.kept,
              .enforced = context.standing.mode != QuotaMode::kObserve};
  BeginSelection(*context.request);
  names.ascending();
  for (uint32_t position = 0; position < candidates.size(); ++position) {
    Order order = 0;
    const Reason reason = Consider(round, candidates[position], order);
    if (reason == Reason::kNone) {
      Keep({order, position, candidates[position]}, width);
      continue;
    }
    ++reason_counts[static_cast<std::size_t>(reason)];
    if (refused != nullptr) refused->emplace_back(position, reason);
  }
  // Nodes that only fit over another pod's claim are a last resort.
  if (!best.empty() && best.front().order < kIgnoresClaims) {
    while (best.back().order >= kIgnoresClaims) best.pop_back();
  }
}

Reason Engine::Impl::NearestReason() const {
  if (reason_counts[static_cast<std::size_t>(Reason::kPreemptionInProgress)] > 0) {
    return Reason::kPreemptionInProgress;
  }
  // Budget and quota come first, by precedence (quota-model section 6).
  for (auto rank = static_cast<std::size_t>(Reason::kBudgetExhausted);
       rank <= static_cast<std::size_t>(Reason::kNamespaceQuota); ++rank) {
    if (reason_counts[rank] > 0) return static_cast<Reason>(rank);
  }
  for (std::size_t rank = reason_counts.size(); rank-- > 1;) {
    if (reason_counts[rank] > 0) return static_cast<Reason>(rank);
  }
  return Reason::kNone;
}

Reason Engine::Impl::PickDevices(const RequestContext& context, const NodeEntry& entry,
                                 Picks& chosen) {
  Worth worth;
  const NodeState& node = entry.state;
  const auto evaluate = [&](const Load& load) {
    return scorer.Evaluate(RoomOf(node, load), *context.request, *context.policy, chosen, worth,
                           context.sharing);
  };
  const Reason soft = evaluate(node.soft());
  if (soft == Reason::kNone || !node.has_claims()) return soft;
  return evaluate(node.hard());
}

void Engine::Impl::Claim(const RequestContext& context, PodRecord& record, NodeId id, Instant now) {
  const PodRequest& request = *context.request;
  NodeEntry& entry = *nodes[id];
  if (PickDevices(context, entry, picks) != Reason::kNone) return;
  Holding holding;
  holding.uid = request.uid;
  holding.kind = HoldingKind::kClaim;
  holding.request = record.request;
  holding.allocation = ToAllocation(entry.state.inventory(), request, picks);
  entry.state.Hold(std::move(holding));
  record.claimed = id;
  record.claim_serial = ++claim_serial;
  ++claims;
  record.ranked.clear();
  for (const Candidate& candidate : best) record.ranked.push_back(candidate.node);
  if (options.claim_lifetime > Millis::zero()) {
    claim_queue.emplace_back(now + options.claim_lifetime, request.uid, record.claim_serial);
  }
  Refresh(id, now);
}

void Engine::Filter(const PodRequest& request, std::span<const std::string_view> candidates,
                    Instant now, FilterAnswer& answer) {
  Impl& impl = *impl_;
  answer.untouched = false;
  answer.chosen.clear();
  answer.refused.clear();
  answer.reason = Reason::kNone;
  answer.observed = Reason::kNone;
  impl.Advance(now);
  if (!request.asks_gpu()) {
    if (!DraDesk(impl).Filter(request, candidates, now, answer)) impl.PassPlain(request, answer);
    return;
  }
  PodRecord* record = request.uid.empty() ? nullptr : &impl.NoteFiltered(request, now);
  RequestContext context = impl.ContextOf(request);
  const auto refuse_all = [&](Reason reason) {
    answer.RefuseAll(candidates.size(), reason);
    if (record != nullptr) record->last_reason = reason;
  };
  if (context.whole != Reason::kNone) return refuse_all(context.whole);
  impl.scorer.Refresh();
  context.kept = record != nullptr && record->earmark != nullptr;
  Neighbours neighbours;
  if (record != nullptr && !record->gang.empty()) {
    if (const Reason reason = impl.AskGang(*record, context, neighbours, now);
        reason != Reason::kNone) {
      refuse_all(reason);
      impl.NoteHungry(request.uid, *record);
      return impl.ForgetOldest();
    }
  }
  const ScopedRemoval lift(impl, request.uid, now, impl.SharesWith(request.uid));
  const auto width = static_cast<std::size_t>(context.policy->filter_width);
  impl.names.FindAll(candidates, impl.ids);
  impl.Select(context, impl.ids, width, now, &answer.refused);
  impl.ShowAwaited(request.uid, answer);
  if (record != nullptr && impl.GivesWay(context, *record, now, answer)) {
    return refuse_all(Reason::kYieldingTo);
  }
  for (const Candidate& candidate : impl.best) answer.chosen.push_back(candidate.position);
  if (impl.best.empty()) answer.reason = impl.NearestReason();
  DraDesk(impl).AddServed(context, width, now, answer);
  if (record != nullptr) impl.KeepAnswer(context, *record, answer, now);
}

void Engine::Impl::PassPlain(const PodRequest& request, FilterAnswer& answer) {
  answer.untouched = true;
  if (request.uid.empty() || !plain.insert(request.uid).second) return;
  plain_order.push_back(request.uid);
  ForgetOldest();
}

PodRecord& Engine::Impl::NoteFiltered(const PodRequest& request, Instant now) {
  PodRecord& record = Touch(request);
  JoinGang(request.uid, record, now);
  if (!record.seen && record.claimed == kNoNode && !record.filtered) {
    unseen.emplace_back(now, request.uid);
  }
  DropClaim(request.uid, record, now);
  if (record.waits_since == Instant()) record.waits_since = now;
  record.eligible_at.reset();
  record.observed = Reason::kNone;
  if (!record.counted) scorer.Arrived(request);
  record.counted = true;
  record.filtered = true;
  record.last_reason = Reason::kNone;
  return record;
}

Reason Engine::Impl::AskGang(const PodRecord& record, RequestContext& context, Neighbours& near,
                             Instant now) {
  const GangTurn turn = TakeTurn(context.request->uid, record, now);
  if (turn.reason != Reason::kNone) return turn.reason;
  if (!turn.only.empty()) {
    context.only = names.Find(turn.only.str());
    context.kept = true;
  } else if (NeighboursOf(record, *context.policy, near)) {
    context.near = &near;
  }
  return Reason::kNone;
}

// The node where its victims leave must not look hopeless, or other victims are chosen.
void Engine::Impl::ShowAwaited(const PodUid& uid, FilterAnswer& answer) {
  const NodeId awaited = AwaitedNode(uid);
  if (awaited == kNoNode) return;
  for (auto& [position, reason] : answer.refused) {
    if (ids[position] != awaited) continue;
    reason = Reason::kPreemptionInProgress;
    ++reason_counts[static_cast<std::size_t>(reason)];
  }
}

bool Engine::Impl::GivesWay(const RequestContext& context, PodRecord& record, Instant now,
                            FilterAnswer& answer) {
  const PodUid& uid = context.request->uid;
  if (context.metered) {
    NoteQuotaRefusal(context, record, now);
    answer.observed = record.observed;
    if (const auto first = YieldsTo(context, record, now)) {
      record.yields_to = *first;
      contenders.insert(uid);
      PokeIfFits(*first, now);
      return true;
    }
  }
  PodUid returned;
  if (!GivesWayToReturned(context, record, now, returned)) return false;
  record.yields_to = returned;
  PokeIfFits(returned, now);
  return true;
}

void Engine::Impl::KeepAnswer(const RequestContext& context, PodRecord& record,
                              const FilterAnswer& answer, Instant now) {
  const PodUid& uid = context.request->uid;
  record.last_reason = answer.reason;
  if (answer.chosen.empty()) {
    NoteHungry(uid, record);
    refused_lately.emplace_back(now, uid);
    if (refused_lately.size() > kMaxRefused) refused_lately.pop_front();
  }
  const bool unbound = record.node.empty() && record.reserved.empty() && !record.terminal;
  if (!best.empty() && unbound) Claim(context, record, best.front().node, now);
  ForgetOldest();
}

// Where the CPU they take strands no GPU. Never refused, and none of the nodes is held back.
void Engine::Impl::RankPlain(const PodRequest& request, Instant now, std::vector<int>& ranks) {
  const RequestContext context = ContextOf(request);
  if (context.policy->plain_pods == PlainPods::kIgnore) return;
  RequestContext unmetered;
  unmetered.request = &request;
  unmetered.policy = context.policy;
  unmetered.policy_index = context.policy_index;
  scorer.Refresh();
  Select(unmetered, ids, kTopRank, now, nullptr);
  for (std::size_t i = 0; i < best.size(); ++i) ranks[best[i].position] = RankAt(i);
}

void Engine::Prioritize(const PodRequest& request, std::span<const std::string_view> candidates,
                        Instant now, std::vector<int>& ranks) {
  Impl& impl = *impl_;
  impl.Advance(now);
  ranks.assign(candidates.size(), 0);
  if (DraDesk(impl).Rank(request.uid, candidates, ranks)) return;
  if (!request.asks_gpu()) {
    impl.names.FindAll(candidates, impl.ids);
    return impl.RankPlain(request, now, ranks);
  }
  PodRecord* record = impl.Find(request.uid);
  RequestContext context = impl.ContextOf(request);
  context.kept = record != nullptr && record->earmark != nullptr;
  if (record != nullptr && impl.IsSeated(request.uid, *record)) {
    context.only = impl.names.Find(record->earmark->node.str());
  }
  const ScopedRemoval lift(impl, request.uid, now, impl.SharesWith(request.uid));
  if (context.whole != Reason::kNone) return;
  impl.names.FindAll(candidates, impl.ids);
  if (record != nullptr && record->claimed != kNoNode) {
    // The order filter gave; affirmed, not computed again.
    bool all = true;
    std::vector<std::size_t> places(candidates.size());
    for (std::size_t i = 0; i < candidates.size() && all; ++i) {
      const auto at = std::ranges::find(record->ranked, impl.ids[i]);
      all = at != record->ranked.end();
      places[i] = static_cast<std::size_t>(at - record->ranked.begin());
    }
    if (all) {
      // Dense ranks, so that nodes another extender removed leave no gap.
      for (std::size_t i = 0; i < places.size(); ++i) {
        const auto better =
            std::ranges::count_if(places, [&](std::size_t place) { return place < places[i]; });
        ranks[i] = RankAt(static_cast<std::size_t>(better));
      }
      return;
    }
    const NodeId claimed = record->claimed;
    impl.DropClaim(request.uid, *record, now);
    impl.Select(context, impl.ids, candidates.size(), now, nullptr);
    for (std::size_t i = 0; i < impl.best.size(); ++i) {
      ranks[impl.best[i].position] = RankAt(i);
    }
    if (impl.nodes[claimed] != nullptr) {
      impl.Claim(context, *record, impl.best.empty() ? claimed : impl.best.front().node, now);
    }
    return;
  }
  impl.Select(context, impl.ids, candidates.size(), now, nullptr);
  for (std::size_t i = 0; i < impl.best.size(); ++i) ranks[impl.best[i].position] = RankAt(i);
}

}  // namespace tranche
