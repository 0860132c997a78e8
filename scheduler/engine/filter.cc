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
constexpr int kTopRank = 10;

int RankAt(std::size_t place) { return std::max(kTopRank - static_cast<int>(place), 0); }

}  // namespace

Shape* Engine::Impl::ShapeOf(const Question& question) {
  if (SelectsDevices(*question.request)) return nullptr;
  text.clear();
  AppendShape(*question.request, text);
  text.push_back(static_cast<char>('0' + question.policy_index));
  if (question.sharing != nullptr) {
    for (const SharingMode mode : *question.sharing) {
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

Verdict& Engine::Impl::Lookup(Shape* shape, const Question& question, NodeId id, bool soft) {
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
      scorer.Evaluate(RoomOf(node, soft ? node.soft() : node.hard()), *question.request,
                      *question.policy, picks, verdict->worth, question.sharing);
  verdict->generation = generation;
  verdict->version = selection_version;
  verdict->priced = 0;
  return *verdict;
}

Reason Engine::Impl::Fits(const Question& question, NodeId id) {
  selection_version = scorer.version(*question.request);
  return Lookup(ShapeOf(question), question, id, false).reason;
}

void Engine::Impl::Select(const Question& question, const std::vector<NodeId>& candidates,
                          std::size_t width, Instant now,
                          std::vector<std::pair<uint32_t, Reason>>* refused) {
  best.clear();
  reason_counts.fill(0);
  quota_allows_one = false;
  ForgetKindAnswers();
  const bool enforced = question.standing.mode != QuotaMode::kObserve;
  const KindAnswer* quota = nullptr;  // of the kind met last
  uint32_t quota_kind = 0;
  Shape* shape = ShapeOf(question);
  BeginSelection(*question.request);
  names.ascending();
  const bool holds = !gangs.hold.nodes.empty() && !question.kept;
  const auto refuse = [&](uint32_t position, Reason reason) {
    ++reason_counts[static_cast<std::size_t>(reason)];
    if (refused != nullptr) refused->emplace_back(position, reason);
  };
  for (uint32_t position = 0; position < candidates.size(); ++position) {
    const NodeId id = candidates[position];
    Reason closed = id == kNoNode ? Reason::kUnknownNode : hot[id].closed;
    if (closed == Reason::kNone && question.only != kNoNode && id != question.only) {
      closed = Reason::kGangElsewhere;
    }
    if (holds && closed == Reason::kNone && IsHeldFrom(*question.request, id, now)) {
      closed = Reason::kHeldForGang;
    }
    const int distance =
        closed == Reason::kNone && question.near != nullptr ? DistanceTo(*question.near, id) : 0;
    if (question.near != nullptr && distance > question.near->within) {
      closed = Reason::kGangElsewhere;
    }
    if (closed != Reason::kNone) {
      refuse(position, closed);
      continue;
    }
    Verdict* verdict = &Lookup(shape, question, id, true);
    Order order = 0;
    if (verdict->reason != Reason::kNone && hot[id].hard != hot[id].soft) {
      verdict = &Lookup(shape, question, id, false);
      order = kIgnoresClaims;
    }
    // Quota comes before room: a node that only lacks room is one the team could have had.
    const bool suits = verdict->reason == Reason::kNone || verdict->reason == Reason::kNoRoom ||
                       verdict->reason == Reason::kNumaMismatch ||
                       verdict->reason == Reason::kBrokenSet;
    bool allowed = true;
    if (suits && question.capped && CapsRefuse(question, id)) {
      refuse(position, Reason::kNamespaceQuota);
      continue;
    }
    if (suits && question.metered) {
      if (quota == nullptr || quota_kind != hot[id].kind) {
        quota = &AskQuota(question, id, now);
        quota_kind = hot[id].kind;
      }
      allowed = quota->reason == Reason::kNone;
      if (!allowed && enforced) {
        refuse(position, quota->reason);
        continue;
      }
      if (quota->borrows) order |= kBorrows;
    }
    if (verdict->reason != Reason::kNone) {
      refuse(position, verdict->reason);
      continue;
    }
    quota_allows_one |= allowed;
    if (verdict->priced != selection) {
      verdict->priced = selection;
      verdict->cost = scorer.CostOf(verdict->worth);
    }
    order |= OrderOf(verdict->worth, verdict->cost, names.rank(id));
    order |= Order(distance) << kDistanceShift;
    if (best.size() == width && order >= best.back().order) continue;
    if (best.size() == width) best.pop_back();
    const Candidate entry{order, position, id};
    const auto at = std::ranges::upper_bound(best, order, {}, &Candidate::order);
    best.insert(at, entry);
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

Reason Engine::Impl::PickDevices(const Question& question, const NodeEntry& entry, Picks& chosen) {
  Worth worth;
  const NodeState& node = entry.state;
  const auto evaluate = [&](const Load& load) {
    return scorer.Evaluate(RoomOf(node, load), *question.request, *question.policy, chosen, worth,
                           question.sharing);
  };
  const Reason soft = evaluate(node.soft());
  if (soft == Reason::kNone || !node.has_claims()) return soft;
  return evaluate(node.hard());
}

void Engine::Impl::Claim(const Question& question, PodRecord& record, NodeId id, Instant now) {
  const PodRequest& request = *question.request;
  NodeEntry& entry = *nodes[id];
  if (PickDevices(question, entry, picks) != Reason::kNone) return;
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
    if (DraDesk(impl).Filter(request, candidates, now, answer)) return;
    answer.untouched = true;
    if (!request.uid.empty() && impl.plain.insert(request.uid).second) {
      impl.plain_order.push_back(request.uid);
      impl.ForgetOldest();
    }
    return;
  }
  PodRecord* record = nullptr;
  if (!request.uid.empty()) {
    record = &impl.Touch(request);
    impl.JoinGang(request.uid, *record, now);
    if (!record->seen && record->claimed == kNoNode && !record->filtered) {
      impl.unseen.emplace_back(now, request.uid);
    }
    impl.DropClaim(request.uid, *record, now);
    if (record->waits_since == Instant()) record->waits_since = now;
    record->eligible_at.reset();
    record->observed = Reason::kNone;
    if (!record->counted) impl.scorer.Arrived(request);
    record->counted = true;
    record->filtered = true;
    record->last_reason = Reason::kNone;
  }
  Question question = impl.QuestionOf(request);
  const auto refuse_all = [&](Reason reason) {
    answer.refused.clear();
    for (uint32_t i = 0; i < candidates.size(); ++i) answer.refused.emplace_back(i, reason);
    answer.reason = reason;
    if (record != nullptr) record->last_reason = reason;
  };
  if (question.whole != Reason::kNone) return refuse_all(question.whole);
  impl.scorer.Refresh();
  question.kept = record != nullptr && record->earmark != nullptr;
  Neighbours neighbours;
  if (record != nullptr && !record->gang.empty()) {
    const GangTurn turn = impl.TakeTurn(request.uid, *record, now);
    if (turn.reason != Reason::kNone) {
      refuse_all(turn.reason);
      impl.NoteHungry(request.uid, *record);
      return impl.ForgetOldest();
    }
    if (!turn.only.empty()) {
      question.only = impl.names.Find(turn.only.str());
      question.kept = true;
    } else if (impl.NeighboursOf(*record, *question.policy, neighbours)) {
      question.near = &neighbours;
    }
  }
  const Impl::Lift lift(impl, request.uid, now);
  impl.names.FindAll(candidates, impl.ids);
  impl.Select(question, impl.ids, static_cast<std::size_t>(question.policy->filter_width), now,
              &answer.refused);
  // The node where its victims leave must not look hopeless, or other victims are chosen.
  if (const NodeId awaited = impl.AwaitedNode(request.uid); awaited != kNoNode) {
    for (auto& [position, reason] : answer.refused) {
      if (impl.ids[position] != awaited) continue;
      reason = Reason::kPreemptionInProgress;
      ++impl.reason_counts[static_cast<std::size_t>(reason)];
    }
  }
  if (record != nullptr && question.metered) {
    impl.NoteQuotaRefusal(question, *record, now);
    answer.observed = record->observed;
    if (const auto first = impl.YieldsTo(question, *record, now)) {
      record->yields_to = *first;
      impl.contenders.insert(request.uid);
      impl.PokeIfFits(*first, now);
      return refuse_all(Reason::kYieldingTo);
    }
  }
  PodUid returned;
  if (record != nullptr && impl.GivesWayToReturned(question, *record, now, returned)) {
    record->yields_to = returned;
    impl.PokeIfFits(returned, now);
    return refuse_all(Reason::kYieldingTo);
  }
  for (const Candidate& candidate : impl.best) answer.chosen.push_back(candidate.position);
  if (impl.best.empty()) answer.reason = impl.NearestReason();
  const auto width = static_cast<std::size_t>(question.policy->filter_width);
  DraDesk(impl).AddServed(question, width, now, answer);
  if (record == nullptr) return;
  record->last_reason = answer.reason;
  if (answer.chosen.empty()) {
    impl.NoteHungry(request.uid, *record);
    impl.refused_lately.emplace_back(now, request.uid);
    if (impl.refused_lately.size() > kMaxRefused) impl.refused_lately.pop_front();
  }
  const bool unbound = record->node.empty() && record->reserved.empty() && !record->terminal;
  if (!impl.best.empty() && unbound) {
    impl.Claim(question, *record, impl.best.front().node, now);
  }
  impl.ForgetOldest();
}

// Where the CPU they take strands no GPU. Never refused, and none of the nodes is held back.
void Engine::Impl::RankPlain(const PodRequest& request, Instant now, std::vector<int>& ranks) {
  const Question question = QuestionOf(request);
  if (question.policy->plain_pods == PlainPods::kIgnore) return;
  Question unmetered;
  unmetered.request = &request;
  unmetered.policy = question.policy;
  unmetered.policy_index = question.policy_index;
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
  Question question = impl.QuestionOf(request);
  question.kept = record != nullptr && record->earmark != nullptr;
  if (record != nullptr && impl.IsSeated(request.uid, *record)) {
    question.only = impl.names.Find(record->earmark->node.str());
  }
  const Impl::Lift lift(impl, request.uid, now);
  if (question.whole != Reason::kNone) return;
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
    impl.Select(question, impl.ids, candidates.size(), now, nullptr);
    for (std::size_t i = 0; i < impl.best.size(); ++i) {
      ranks[impl.best[i].position] = RankAt(i);
    }
    if (impl.nodes[claimed] != nullptr) {
      impl.Claim(question, *record, impl.best.empty() ? claimed : impl.best.front().node, now);
    }
    return;
  }
  impl.Select(question, impl.ids, candidates.size(), now, nullptr);
  for (std::size_t i = 0; i < impl.best.size(); ++i) ranks[impl.best[i].position] = RankAt(i);
}

}  // namespace tranche
