// Algorithm: asks are served one after another, long-running containers before init containers and
// large shares before small ones. Units of one ask are interchangeable, so cards are picked as
// combinations in preference order, never as permutations; only shares of different sizes can make
// the search go back. On a cut card each unit takes the best place of its instance. Proof by brute
// force: test/property/placement_oracle_test.cc.
#include "scheduler/index/placement.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "scheduler/index/agent_cards.h"
#include "scheduler/index/card_sets.h"
#include "scheduler/index/eligibility.h"
#include "scheduler/index/planned_search.h"
#include "scheduler/index/runs_beside.h"

namespace tranche {
namespace {

// A bound on the backtracking of one answer, so that a strange request cannot hold the engine;
// requests for whole GPUs or one share need at most a step a card.
constexpr int kMaxSteps = 20'000;
// Devices of one pod on one node: twice kMaxCards, for replicas and slices.
constexpr int64_t kMaxUnits = 128;

// Free share of a card in milli, the scarcer of compute and memory; for ordering only.
int64_t FreeShare(const Card& card, const CardLoad& load) {
  const int64_t milli = (card.capacity - load.milli).count();
  if (card.memory.count() <= 0) return milli;
  return std::min(milli, (card.memory - load.memory).count() * 1000 / card.memory.count());
}

// How full the card would be, by the weights: parts of its pods, compute and memory, in millionths,
// added up; for ordering only.
int64_t WeightedUse(const CardWeights& weights, const Card& card, const CardLoad& load,
                    const CardNeed& need) {
  constexpr int64_t kMillion = 1'000'000;
  const auto part = [](int64_t weight, int64_t used, int64_t all) {
    return all <= 0 ? 0 : weight * (used * kMillion / all);
  };
  return part(weights.slot, load.slots + 1, card.MostUsers()) +
         part(weights.core, (load.milli + need.milli).count(), card.capacity.count()) +
         part(weights.memory, (load.memory + need.memory).count(), card.memory.count());
}

}  // namespace

struct Placer::Query {
  const Inventory& inventory;
  const Load& load;
  const PodRequest& request;
  const PlaceRules& rules;
  Picks& picks;
  CardLimits limits = {};
  std::optional<GpuSet> wanted = {};  // whole cards to take; nullopt: any
  std::vector<GpuSet> by_ask = {};    // of them, what each ask is to take; empty: any
  int spare = -1;                     // the idle card a share would spoil least; -1: any

  // What the pod's own picks so far take of a card at the time container `container` runs.
  CardLoad Own(const Ask& ask, int card) const {
    CardLoad own;
    for (const Pick& pick : picks) {
      if (pick.pool >= 0 || pick.card != card) continue;
      const Ask& other = request.asks[static_cast<std::size_t>(pick.ask)];
      if (!RunsBeside(request, ask, other)) continue;
      own.milli += pick.milli;
      own.memory += pick.memory;
      own.slots += 1;
      own.beside += TakesBeside(other);
      own.exclusive += pick.exclusive;
    }
    return own;
  }

  // Placeholders hold cards for those who follow them: nobody else gets in, and these go nowhere
  // else.
  bool PlaceholderAllows(const Ask& ask, int index) const {
    if (inventory.has_agent()) return true;
    const CardLoad& base = load.cards[static_cast<std::size_t>(index)];
    const bool follows = request.follows_placeholder && ask.resource == Resource::kShare;
    if (!follows || base.kept > 0) return follows || base.kept == 0;
    if (!inventory.placeholders || load.no_new_placeholder || base.slots > 0) return false;
    // The placeholder pod to be made needs one more card of the kubelet.
    const CountedKey* key = inventory.FindKey(kGpuKey);
    if (key == nullptr) return false;
    GpuSet fresh;
    fresh.Add(index);
    for (const Pick& pick : picks) {
      if (pick.pool < 0 && load.cards[static_cast<std::size_t>(pick.card)].kept == 0) {
        fresh.Add(pick.card);
      }
    }
    const int64_t used = load.keys[static_cast<std::size_t>(key - inventory.keys.data())];
    return used + fresh.size() <= key->allocatable;
  }

  // Of a cut card, with the instances of the pod's own picks; nullopt: they do not go together.
  std::optional<LayoutId> LayoutOf(int index) const {
    const CardLoad& base = load.cards[static_cast<std::size_t>(index)];
    if (base.layout_broken) return std::nullopt;
    std::optional<LayoutId> layout = base.layout;
    for (const Pick& pick : picks) {
      if (pick.card != index || pick.place.space == nullptr) continue;
      layout = With(*layout, pick.place);
      if (!layout) break;
    }
    return layout;
  }

  // Where the share's instance goes on a cut card; nullopt: nowhere.
  std::optional<MigPlace> PlaceOf(const CardNeed& need, int index) const {
    const std::optional<LayoutId> layout = LayoutOf(index);
    if (!layout || need.instance == nullptr) return std::nullopt;
    const Card& card = inventory.cards[static_cast<std::size_t>(index)];
    return BestPlaceOn(*card.cut, *layout, *need.instance);
  }

  // With the contexts of so many users. An instance is its user's alone, context and all.
  bool HoldsMemory(const Card& card, Mebibytes memory, int64_t users) const {
    if (card.cut == nullptr) memory += limits.beside * users;
    return memory <= card.memory;
  }

  bool HasRoom(const Ask& ask, int index) const {
    if (!PlaceholderAllows(ask, index)) return false;
    const auto at = static_cast<std::size_t>(index);
    const Card& card = inventory.cards[at];
    const CardLoad& base = load.cards[at];
    const CardLoad own = Own(ask, index);
    const CardNeed need = NeedOn(inventory, ask, card);
    if (base.exclusive + own.exclusive > 0) return false;
    const int64_t users = base.slots + own.slots;
    if (need.exclusive > 0 && users > 0) return false;
    if (base.milli + own.milli + need.milli > card.capacity) return false;
    if (NeedsFreeCore(inventory.agent) && need.milli == MilliGpu::Zero() &&
        base.milli + own.milli >= card.capacity) {
      return false;
    }
    if (!HoldsMemory(card, base.memory + own.memory + need.memory,
                     base.beside + own.beside + TakesBeside(ask))) {
      return false;
    }
    if (card.MostUsers() > 0 && users + 1 > card.MostUsers()) return false;
    if (card.cut != nullptr) {
      if (!PlaceOf(need, index)) return false;
    } else if (limits.users > 0 && users + 1 > limits.users) {
      return false;
    }
    return rules.choice != CardChoice::kIdleOnly || users == 0;
  }

  bool Eligible(const Ask& ask, const Card& card) const {
    return IsRightKind(inventory, ask, card) && MatchesModels(request, card) &&
           IsSelected(request, ask, card) && card.memory >= request.min_gpu_memory &&
           card.healthy && !card.cordoned &&
           PreferenceOf(inventory, ask, card, rules.sharing).has_value();
  }

  // All cards one container uses must lie in one NUMA node where the pod asks for that.
  bool SameNuma(const Ask& ask, int card) const {
    if (!request.one_numa_node) return true;
    const auto& numa = inventory.cards[static_cast<std::size_t>(card)].numa;
    return std::ranges::all_of(picks, [&](const Pick& pick) {
      return pick.pool >= 0 ||
             request.asks[static_cast<std::size_t>(pick.ask)].container != ask.container ||
             (numa.has_value() &&
              inventory.cards[static_cast<std::size_t>(pick.card)].numa == numa);
    });
  }

  // Orders cards by all that tells them apart, so that an equal node state gives an equal choice
  // whichever card is which.
  std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int> LoadRank(int card) const {
    const auto at = static_cast<std::size_t>(card);
    const CardLoad& used = load.cards[at];
    const Card& self = inventory.cards[at];
    return {used.slots,          used.milli.count(),    used.memory.count(),
            self.memory.count(), self.capacity.count(), self.numa.value_or(-1)};
  }

  void OrderCards(const Ask& ask, std::vector<int>& order) const {
    order.clear();
    for (int i = 0; i < static_cast<int>(inventory.cards.size()); ++i) {
      if (Eligible(ask, inventory.cards[static_cast<std::size_t>(i)]) && HasRoom(ask, i)) {
        order.push_back(i);
      }
    }
    const bool is_long = IsLong(request, ask);
    const auto index = static_cast<std::size_t>(&ask - request.asks.data());
    const bool own_set = !by_ask.empty() && !by_ask[index].empty();
    const std::optional<GpuSet> mine = own_set ? by_ask[index] : wanted;
    const auto rank = [&](int i) {
      const auto at = static_cast<std::size_t>(i);
      const Card& card = inventory.cards[at];
      const int64_t share = request.card_weights
                                ? -WeightedUse(*request.card_weights, card, load.cards[at],
                                               NeedOn(inventory, ask, card))
                                : FreeShare(card, load.cards[at]);
      // An init container re-uses the pod's own cards before it takes another.
      const bool own = !is_long && std::ranges::any_of(picks, [i](const Pick& pick) {
        return pick.pool < 0 && pick.card == i;
      });
      const bool unwanted = is_long && mine && !mine->Has(i);
      return std::tuple(i != rules.preferred_card, !own, unwanted,
                        PreferenceOf(inventory, ask, inventory.cards[at], rules.sharing),
                        rules.choice == CardChoice::kLoosest ? -share : share,
                        spare >= 0 && load.cards[at].slots == 0 && i != spare, LoadRank(i), i);
    };
    std::ranges::sort(order, {}, rank);
  }
};

bool Placer::PickCards(Query& query, std::size_t position, int unit, std::size_t from,
                       const std::vector<int>& order) {
  const std::size_t ask_index = ask_order_[position];
  const Ask& ask = query.request.asks[ask_index];
  if (unit == ask.count) return PlaceAsk(query, position + 1);
  const auto left = static_cast<std::size_t>(ask.count - unit);
  // A cut card may serve several units: an instance each.
  const std::size_t cards_left = query.inventory.has_cut_cards() ? 1 : left;
  for (std::size_t i = from; i + cards_left <= order.size(); ++i) {
    if (--steps_left_ < 0) return false;
    const int card = order[i];
    if (!query.SameNuma(ask, card)) continue;
    const Card& self = query.inventory.cards[static_cast<std::size_t>(card)];
    const CardNeed need = NeedOn(query.inventory, ask, self);
    MigPlace place;
    if (self.cut != nullptr) {
      const std::optional<MigPlace> found = query.PlaceOf(need, card);
      if (!found) continue;
      place = *found;
    }
    query.picks.push_back(
        {static_cast<int>(ask_index), card, -1, 0, need.milli, need.memory, need.exclusive, place});
    const std::size_t next = self.cut != nullptr ? i : i + 1;
    if (PickCards(query, position, unit + 1, next, order)) return true;
    query.picks.pop_back();
  }
  return false;
}

// Replicas of one node are all of one size and a card may serve several: filling the least used
// card first (the plugin's default rule) finds room whenever there is any.
bool Placer::PickReplicas(Query& query, std::size_t position, const Ask& ask) {
  const std::size_t before = query.picks.size();
  for (int64_t unit = 0; unit < ask.count; ++unit) {
    int best = -1;
    for (int i = 0; i < static_cast<int>(query.inventory.cards.size()); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!query.Eligible(ask, query.inventory.cards[at]) || !query.HasRoom(ask, i)) continue;
      const auto rank = [&](int card) {
        return std::tuple(
            query.load.cards[static_cast<std::size_t>(card)].slots + query.Own(ask, card).slots,
            query.LoadRank(card));
      };
      if (best < 0 || rank(i) < rank(best)) best = i;
    }
    if (best < 0) {
      query.picks.resize(before);
      return false;
    }
    const CardNeed need =
        NeedOn(query.inventory, ask, query.inventory.cards[static_cast<std::size_t>(best)]);
    query.picks.push_back({static_cast<int>(ask_order_[position]), best, -1, 0, need.milli,
                           need.memory, need.exclusive});
  }
  if (PlaceAsk(query, position + 1)) return true;
  query.picks.resize(before);
  return false;
}

// Instances of a pool are interchangeable. Unshared ones fill the card that is used most, so that
// whole cards stay idle; shared ones the least used first, as the plugin does.
bool Placer::PickInstances(Query& query, std::size_t position, const Ask& ask, int pool_index) {
  const MigPool& pool = query.inventory.pools[static_cast<std::size_t>(pool_index)];
  const std::vector<int64_t>& users = query.load.slots[static_cast<std::size_t>(pool_index)];
  const std::size_t before = query.picks.size();
  for (int64_t unit = 0; unit < ask.count; ++unit) {
    std::tuple<int64_t, int64_t, std::size_t> best_rank;
    int best = -1;
    for (std::size_t i = 0; i < pool.slots.size(); ++i) {
      int64_t taken = users[i];
      int64_t on_card = 0;
      for (const Pick& pick : query.picks) {
        const Ask& other = query.request.asks[static_cast<std::size_t>(pick.ask)];
        if (pick.pool < 0 || !RunsBeside(query.request, ask, other)) continue;
        taken += pick.pool == pool_index && pick.slot == static_cast<int>(i);
        on_card += pick.card == pool.slots[i].card;
      }
      if (taken >= pool.replicas) continue;
      for (std::size_t j = 0; j < pool.slots.size(); ++j) {
        if (pool.slots[j].card == pool.slots[i].card) on_card += users[j];
      }
      const std::tuple rank(pool.replicas > 1 ? taken : 0, -on_card, i);
      if (best < 0 || rank < best_rank) {
        best = static_cast<int>(i);
        best_rank = rank;
      }
    }
    if (best < 0) {
      query.picks.resize(before);
      return false;
    }
    query.picks.push_back({static_cast<int>(ask_order_[position]),
                           pool.slots[static_cast<std::size_t>(best)].card, pool_index, best,
                           pool.milli, pool.memory, 0});
  }
  if (PlaceAsk(query, position + 1)) return true;
  query.picks.resize(before);
  return false;
}

bool Placer::PlaceAsk(Query& query, std::size_t position) {
  if (position == ask_order_.size()) return true;
  const Ask& ask = query.request.asks[ask_order_[position]];
  if (const int pool = PoolFor(query.inventory, ask); pool >= 0) {
    return PickInstances(query, position, ask, pool);
  }
  const bool replica = ask.resource != Resource::kShare && !query.inventory.has_agent() &&
                       query.inventory.gpu_unit == GpuUnit::kReplica;
  if (replica) return PickReplicas(query, position, ask);
  std::vector<int>& order = card_order_[position];
  query.OrderCards(ask, order);
  if (std::ssize(order) < ask.count && !query.inventory.has_cut_cards()) return false;
  return PickCards(query, position, 0, 0, order);
}

namespace {

// Large before small, long-running before init, then as written.
void OrderAsks(const PodRequest& request, std::vector<std::size_t>& order) {
  order.resize(request.asks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&request](std::size_t i) {
    const Ask& ask = request.asks[i];
    const bool whole =
        ask.resource != Resource::kShare || ask.memory.kind == MemoryNeed::Kind::kWholeCard;
    return std::tuple(!IsLong(request, ask), !whole, -ask.memory.value, -ask.compute.count(), i);
  });
}

}  // namespace

// Cards whose links matter to the pod: whole ones that long-running containers hold, and, where it
// says how they must be connected, shares of several.
bool Placer::IsConnected(const Query& query, const Ask& ask) {
  const Inventory& inventory = query.inventory;
  if (inventory.cards.empty() || PoolFor(inventory, ask) >= 0 || !IsLong(query.request, ask)) {
    return false;
  }
  if (inventory.gpu_unit != GpuUnit::kCard) return false;
  if (ask.resource != Resource::kShare) return true;
  const Card& card = inventory.cards.front();
  const CardNeed need = NeedOn(inventory, ask, card);
  if (need.milli >= card.capacity && need.memory >= card.memory) return true;
  return ask.count > 1 &&
         (query.request.topology.has_value() || HasSetRules(query.request, *query.rules.policy));
}

// Where init containers alone ask for cards, which the kubelet aligns all the same; null: none.
const Ask* Placer::AlignedAsk(const Query& query) {
  const Inventory& inventory = query.inventory;
  const bool aligns = inventory.gpu_unit == GpuUnit::kCard && !inventory.has_agent() &&
                      inventory.numa_policy != NumaPolicy::kNone;
  for (const Ask& ask : query.request.asks) {
    if (aligns && ask.resource == Resource::kGpu && PoolFor(inventory, ask) < 0) return &ask;
  }
  return nullptr;
}

CardQuestion Placer::QuestionOf(const Query& query) {
  CardQuestion question;
  const Ask* first = nullptr;
  for (const Ask& ask : query.request.asks) {
    if (!IsConnected(query, ask)) continue;
    if (first == nullptr) first = &ask;
    question.one_container &= ask.container == first->container;
    question.count += static_cast<int>(ask.count);
  }
  if (first == nullptr) first = AlignedAsk(query);
  if (first == nullptr) return question;
  for (int i = 0; i < static_cast<int>(query.inventory.cards.size()); ++i) {
    const Card& card = query.inventory.cards[static_cast<std::size_t>(i)];
    if (query.Eligible(*first, card) && query.HasRoom(*first, i)) question.free.Add(i);
  }
  return question;
}

Reason Placer::ChooseSet(Query& query) {
  cards_.reset();
  const Inventory& inventory = query.inventory;
  if (inventory.table == nullptr && inventory.numa_policy == NumaPolicy::kNone &&
      !HasSetRules(query.request, *query.rules.policy)) {
    return Reason::kNone;
  }
  const CardQuestion question = QuestionOf(query);
  SetAnswer answer =
      ChooseCards(inventory, query.load, query.request, *query.rules.policy, question);
  if (answer.reason != Reason::kNone) return answer.reason;
  if (answer.choice) query.wanted = answer.choice->set;
  query.by_ask = std::move(answer.by_ask);
  cards_ = answer.choice;
  const bool one_share = question.count == 0 && query.request.asks.size() == 1 &&
                         query.request.asks[0].resource == Resource::kShare &&
                         query.request.asks[0].count == 1;
  if (one_share && inventory.table != nullptr && inventory.has_agent()) {
    GpuSet idle;
    for (int i = 0; i < static_cast<int>(inventory.cards.size()); ++i) {
      if (query.load.cards[static_cast<std::size_t>(i)].slots == 0) idle.Add(i);
    }
    SetRules rules;
    rules.goal = SetGoal::kPreserve;
    if (const auto choice = inventory.table->Best(idle, 1, rules))
      query.spare = choice->set.first();
  }
  return Reason::kNone;
}

// What the search found in the end, should it have had to leave the set.
bool Placer::KeepsRules(const Query& query) const {
  if (!HasSetRules(query.request, *query.rules.policy)) return true;
  GpuSet taken;
  for (const Pick& pick : query.picks) {
    const Ask& ask = query.request.asks[static_cast<std::size_t>(pick.ask)];
    if (IsConnected(query, ask)) taken.Add(pick.card);
  }
  return ObeysRules(query.inventory, query.request, *query.rules.policy, taken);
}

CardQuestion Placer::CardQuestionOf(const Inventory& inventory, const Load& load,
                                    const PodRequest& request, const PlaceRules& rules) {
  Picks none;
  const Query query{inventory, load, request, rules, none, LimitsOf(*rules.policy, inventory)};
  return QuestionOf(query);
}

Reason Placer::Place(const Inventory& inventory, const Load& load, const PodRequest& request,
                     const PlaceRules& rules, Picks& picks) {
  picks.clear();
  cards_.reset();
  const Reason reason = Obstacle(inventory, load, request, rules);
  if (reason != Reason::kNone) return reason;
  int64_t units = 0;
  for (const Ask& ask : request.asks) units += std::min<int64_t>(ask.count, kMaxUnits + 1);
  if (units > kMaxUnits) return Reason::kTooManyPerNode;

  if (inventory.planned()) return PlacePlanned(inventory, load, request, rules, picks);
  OrderAsks(request, ask_order_);
  card_order_.resize(std::max(card_order_.size(), ask_order_.size()));
  steps_left_ = kMaxSteps;
  Query query{inventory, load, request, rules, picks, LimitsOf(*rules.policy, inventory)};
  if (const Reason broken = ChooseSet(query); broken != Reason::kNone) return broken;
  if (PlaceAsk(query, 0)) {
    std::ranges::stable_sort(picks, {}, &Pick::ask);
    return KeepsRules(query) ? Reason::kNone : Reason::kBrokenSet;
  }
  if (request.one_numa_node) {
    PodRequest anywhere = request;
    anywhere.one_numa_node = false;
    picks.clear();
    steps_left_ = kMaxSteps;
    Query relaxed{inventory, load, anywhere, rules, picks, query.limits};
    if (PlaceAsk(relaxed, 0)) return Reason::kNumaMismatch;
  }
  return Reason::kNoRoom;
}

Reason Placer::PlacePlanned(const Inventory& inventory, const Load& load, const PodRequest& request,
                            const PlaceRules& rules, Picks& picks) {
  PlannedSearch search(inventory, load, request, rules.layout_values);
  if (search.Run(kMaxSteps, picks)) {
    std::ranges::stable_sort(picks, {}, &Pick::ask);
    return Reason::kNone;
  }
  if (search.gave_up() || search.units() == 1) return Reason::kNoRoom;
  // Profiles that go together on no layout of the node's cards find no room on an idle one either.
  Load idle;
  idle.Reset(inventory);
  PlannedSearch anywhere(inventory, idle, request, nullptr);
  const bool fits = anywhere.Run(kMaxSteps, picks) || anywhere.gave_up();
  return fits ? Reason::kNoRoom : Reason::kTooManyPerNode;
}

}  // namespace tranche
