#include "scheduler/engine/selection/selection.h"

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/engine/selection/money.h"
#include "scheduler/engine/selection/pool_windows.h"
#include "scheduler/engine/selection/shape.h"
#include "topology/base/inline.h"

namespace tranche {
namespace {

constexpr std::size_t kMaxShapes = 256;
// An order, high to low: over another pod's tentative placement, by borrowing, far from its gang,
// way of sharing, how the node is paid for, cost, name. For a pod that borrows, what borrowers hold
// comes before the name, of those that are kept.
constexpr Order kIgnoresTentative = Order{1} << 84;
constexpr Order kBorrows = Order{1} << 83;
constexpr int kDistanceShift = 80;
constexpr int kRankShift = 74;
constexpr int kCapacityShift = 72;
constexpr int kCostShift = 32;
constexpr int64_t kCostZero = int64_t{1} << 39;  // costs may be negative

Order OrderOf(const Worth& worth, int64_t cost, uint32_t name) {
  const int64_t shifted = std::clamp(cost + kCostZero, int64_t{0}, 2 * kCostZero - 1);
  return Order{worth.rank} << kRankShift | Order(shifted) << kCostShift | name;
}

// What teams that use more than their nominal hold on the node, in GPU-equivalents.
int64_t HeldByBorrowers(const ClusterState& cluster, NodeId id) {
  int64_t held = 0;
  for (const Holding& holding : cluster.nodes[id]->state.holdings()) {
    const HeldWork* work = cluster.book.Find(holding.uid);
    if (work == nullptr || work->quota == kNoQuota) continue;
    if (cluster.book.tree().MostBorrowed(work->quota) <= 0) continue;
    held += GpuEquivalents(TotalOf(work->parts));
  }
  return held;
}

// Where nodes are alike in all but their names, a pod that borrows goes to where most is held by
// teams that borrow. What is lent stays together, and its owner can have a node back whole.
void GatherBorrowers(const ClusterState& cluster, std::vector<Candidate>& best) {
  const auto rank = [](const Candidate& candidate) { return candidate.order >> kCostShift; };
  for (auto first = best.begin(); first != best.end();) {
    const auto differs = [&](const Candidate& other) { return rank(other) != rank(*first); };
    const auto last = std::find_if(first, best.end(), differs);
    if ((first->order & kBorrows) != 0 && last - first > 1) {
      std::stable_sort(first, last, [&](const Candidate& left, const Candidate& right) {
        return HeldByBorrowers(cluster, left.node) > HeldByBorrowers(cluster, right.node);
      });
    }
    first = last;
  }
}

}  // namespace

// What one selection asks of every candidate.
struct Selection::Round {
  const RequestContext& context;
  const BornCapacity born;
  const std::vector<int64_t>* rates = nullptr;  // of NodePrices; null: money has no say
  Shape* shape = nullptr;
  Instant now;
  bool windows = false;               // some node has maintenance to come
  bool holds = false;                 // nodes are kept for a gang, and not for this pod's
  bool enforced = false;              // a refusal by quota counts
  const KindAnswer* quota = nullptr;  // of the kind met last
  ChargeKind quota_kind{};
  std::map<ChargeKind, bool> passes{};  // it may use nodes of the kind that are kept for the gang
};

Shape* Selection::ShapeOf(const RequestContext& context) {
  if (SelectsDevices(*context.request)) return nullptr;
  text_.clear();
  AppendShape(*context.request, text_);
  text_.push_back(static_cast<char>('0' + context.policy_index));
  if (context.sharing != nullptr) {
    for (const SharingMode mode : *context.sharing) {
      text_.push_back(static_cast<char>('a' + static_cast<int>(mode)));
    }
  }
  const auto found = shapes_.find(text_);
  if (found != shapes_.end()) {
    found->second.last_used = ++shape_clock_;
    return &found->second;
  }
  if (shapes_.size() >= kMaxShapes) {
    const auto oldest = std::ranges::min_element(
        shapes_, {}, [](const auto& entry) { return entry.second.last_used; });
    shapes_.erase(oldest);
  }
  Shape& shape = shapes_[text_];
  shape.last_used = ++shape_clock_;
  return &shape;
}

void Selection::Begin(const PodRequest& request) {
  cluster_.scorer.Price(request);
  version_ = cluster_.scorer.version(request);
  ++selection_;
}

void Selection::Evaluate(const RequestContext& context, NodeId id, Taken taken, Verdict& verdict) {
  const NodeState& node = cluster_.nodes[id]->state;
  const Load& load = taken == Taken::kTentatively ? node.soft() : node.hard();
  verdict.reason = cluster_.scorer.Evaluate(RoomOf(node, load), *context.request, *context.policy,
                                            picks_, verdict.worth, context.sharing);
  verdict.version = version_;
  verdict.priced = 0;
}

Verdict& Selection::Lookup(Shape* shape, const RequestContext& context, NodeId id, Taken taken) {
  const NodeHot& row = cluster_.hot[id];
  const StateId state = taken == Taken::kTentatively ? row.soft : row.hard;
  const uint32_t generation = cluster_.states.generation(state);
  Verdict* verdict = &direct_;
  if (shape != nullptr) {
    if (state >= shape->by_state.size()) shape->by_state.resize(cluster_.states.size());
    verdict = &shape->by_state[state];
    if (verdict->generation == generation && verdict->version == version_) return *verdict;
  }
  Evaluate(context, id, taken, *verdict);
  verdict->generation = generation;
  return *verdict;
}

Reason Selection::Fits(const RequestContext& context, NodeId id) {
  version_ = cluster_.scorer.version(*context.request);
  return Lookup(ShapeOf(context), context, id, Taken::kFirmly).reason;
}

bool Selection::PassesHold(Round& round, NodeId id) const {
  const auto [known, fresh] = round.passes.try_emplace(cluster_.hot[id].kind);
  const GangHold& hold = held_nodes_.hold;
  if (fresh) known->second = rules_.MayPassHold(round.context, id, hold.rank, hold.leaf, round.now);
  return known->second;
}

// Asked of every candidate, as the two steps below are: the calls alone were a twentieth of a
// decision.
TRANCHE_INLINE Reason Selection::ClosedTo(Round& round, NodeId id, int& distance) const {
  const RequestContext& context = round.context;
  if (id == kNoNode) return Reason::kUnknownNode;
  if (cluster_.hot[id].closed != Reason::kNone) return cluster_.hot[id].closed;
  if (!round.born.Has(cluster_.hot[id].capacity)) return Reason::kCapacity;
  if (round.windows && ShutTo(cluster_, context, id, round.now) != Reason::kNone)
    return Reason::kMaintenance;
  if (context.only != kNoNode && id != context.only) return Reason::kGangElsewhere;
  if (round.holds && held_nodes_.IsHeldFrom(*context.request, id, round.now) &&
      !PassesHold(round, id)) {
    return Reason::kHeldForGang;
  }
  if (context.near == nullptr) return Reason::kNone;
  distance = DistanceTo(cluster_, *context.near, id);
  return distance > context.near->within ? Reason::kGangElsewhere : Reason::kNone;
}

// Memory that the candidates behind this one will be read from is asked for now.
TRANCHE_INLINE void Selection::Foresee(const Round& round, const std::vector<NodeId>& candidates,
                                       std::size_t position) const {
  constexpr std::size_t kRowsAhead = 24;
  constexpr std::size_t kVerdictsAhead = 12;
  if (position + kRowsAhead >= candidates.size()) return;
  const NodeId row = candidates[position + kRowsAhead];
  if (IsNode(row)) __builtin_prefetch(&cluster_.hot[row]);
  const NodeId next = candidates[position + kVerdictsAhead];
  if (round.shape == nullptr || !IsNode(next)) return;
  const StateId state = cluster_.hot[next].soft;
  if (state < round.shape->by_state.size()) {
    __builtin_prefetch(&round.shape->by_state[state], /*write=*/1);
  }
}

TRANCHE_INLINE Reason Selection::Consider(Round& round, NodeId id, Order& order) {
  const RequestContext& context = round.context;
  int distance = 0;
  const Reason closed = ClosedTo(round, id, distance);
  if (closed != Reason::kNone) return closed;
  Verdict* verdict = &Lookup(round.shape, context, id, Taken::kTentatively);
  if (verdict->reason != Reason::kNone && cluster_.hot[id].hard != cluster_.hot[id].soft) {
    verdict = &Lookup(round.shape, context, id, Taken::kFirmly);
    order = kIgnoresTentative;
  }
  // Quota comes before room: a node that only lacks room is one the team could have had.
  const bool suits = verdict->reason == Reason::kNone || MoreRoomWouldHelp(verdict->reason);
  bool allowed = true;
  if (suits && context.capped && namespaces_.CapsRefuse(context, id))
    return Reason::kNamespaceQuota;
  if (suits && context.metered) {
    if (round.quota == nullptr || round.quota_kind != cluster_.hot[id].kind) {
      round.quota = &rules_.AskQuota(context, id, round.now);
      round.quota_kind = cluster_.hot[id].kind;
    }
    allowed = round.quota->reason == Reason::kNone;
    if (!allowed && round.enforced) return round.quota->reason;
    if (round.quota->borrows) order |= kBorrows;
  }
  if (verdict->reason != Reason::kNone) return verdict->reason;
  quota_allows_one_ |= allowed;
  if (verdict->priced != selection_) {
    verdict->priced = selection_;
    verdict->cost = cluster_.scorer.CostOf(verdict->worth);
  }
  const NodeHot& row = cluster_.hot[id];
  int64_t cost = verdict->cost;
  if (round.rates != nullptr) {
    const int64_t paid = NewlyPaid(verdict->worth, cluster_.pays[id], *context.request, round.now);
    cost += (*round.rates)[row.price_group] * paid / kWholeGpu.count();
  }
  order |= OrderOf(verdict->worth, cost, cluster_.names.rank(id));
  order |= Order(distance) << kDistanceShift;
  order |= Order(round.born.choice[static_cast<std::size_t>(row.capacity)]) << kCapacityShift;
  return Reason::kNone;
}

void Selection::Keep(const Candidate& candidate, std::size_t width) {
  if (best_.size() == width) best_.pop_back();
  best_.insert(std::ranges::upper_bound(best_, candidate.order, {}, &Candidate::order), candidate);
}

void Selection::Select(const RequestContext& context, const std::vector<NodeId>& candidates,
                       std::size_t width, Instant now,
                       std::vector<std::pair<uint32_t, Reason>>* refused) {
  best_.clear();
  reason_counts_.fill(0);
  quota_allows_one_ = false;
  rules_.ForgetKindAnswers();
  Round round{.context = context,
              .born = BornCapacity(context.membership.gpu_class),
              .rates = cluster_.prices.RatesOf(context.policy_index),
              .shape = ShapeOf(context),
              .now = now,
              .windows = cluster_.windows > 0,
              .holds = !held_nodes_.hold.nodes.empty() && !context.kept,
              .enforced = context.membership.mode != QuotaMode::kObserve};
  Begin(*context.request);
  cluster_.names.ascending();
  for (uint32_t position = 0; position < candidates.size(); ++position) {
    Foresee(round, candidates, position);
    if (candidates[position] == kNamedBefore) continue;
    Order order = 0;
    const Reason reason = Consider(round, candidates[position], order);
    if (reason == Reason::kNone) {
      if (best_.size() < width || order < best_.back().order) {
        Keep({order, position, candidates[position]}, width);
      }
      continue;
    }
    ++reason_counts_[static_cast<std::size_t>(reason)];
    if (refused != nullptr) refused->emplace_back(position, reason);
  }
  // Nodes that only fit over another pod's tentative placement are a last resort.
  if (!best_.empty() && best_.front().order < kIgnoresTentative) {
    while (best_.back().order >= kIgnoresTentative) best_.pop_back();
  }
  if (context.metered) GatherBorrowers(cluster_, best_);
}

bool Selection::best_lies_over_another() const {
  return !best_.empty() && best_.front().order >= kIgnoresTentative;
}

Reason Selection::NearestReason() const {
  if (reason_counts_[static_cast<std::size_t>(Reason::kPreemptionInProgress)] > 0) {
    return Reason::kPreemptionInProgress;
  }
  // Budget and quota come first, by precedence (quota-model section 6).
  for (auto rank = static_cast<std::size_t>(Reason::kBudgetExhausted);
       rank <= static_cast<std::size_t>(Reason::kNamespaceQuota); ++rank) {
    if (reason_counts_[rank] > 0) return static_cast<Reason>(rank);
  }
  for (std::size_t rank = reason_counts_.size(); rank-- > 1;) {
    if (reason_counts_[rank] > 0) return static_cast<Reason>(rank);
  }
  return Reason::kNone;
}

Reason Selection::PickDevices(const RequestContext& context, const NodeEntry& entry,
                              Picks& chosen) {
  Worth worth;
  const NodeState& node = entry.state;
  const auto evaluate = [&](const Load& load) {
    return cluster_.scorer.Evaluate(RoomOf(node, load), *context.request, *context.policy, chosen,
                                    worth, context.sharing);
  };
  const Reason soft = evaluate(node.soft());
  if (soft == Reason::kNone || !node.has_tentative()) return soft;
  return evaluate(node.hard());
}

void Selection::PlaceTentatively(const RequestContext& context, PodRecord& record, NodeId id,
                                 Instant now) {
  const PodRequest& request = *context.request;
  NodeEntry& entry = *cluster_.nodes[id];
  if (PickDevices(context, entry, picks_) != Reason::kNone) return;
  Holding holding;
  holding.uid = request.uid;
  holding.kind = HoldingKind::kTentative;
  holding.request = record.request;
  holding.allocation = ToAllocation(entry.state.inventory(), request, picks_);
  entry.state.Hold(std::move(holding));
  record.tentative = id;
  record.tentative_serial = ++cluster_.tentative_serial;
  ++cluster_.tentative_placements;
  record.ranked.clear();
  for (const Candidate& candidate : best_) record.ranked.push_back(candidate.node);
  if (cluster_.options.tentative_lifetime > Millis::zero()) {
    cluster_.tentative_ends.emplace_back(now + cluster_.options.tentative_lifetime, request.uid,
                                         record.tentative_serial);
  }
  cluster_.Refresh(id, now);
}

}  // namespace tranche
