#include "scheduler/scoring/score.h"

#include <algorithm>
#include <tuple>

#include "scheduler/scoring/prices.h"
#include "scheduler/scoring/room.h"
#include "scheduler/scoring/waste.h"

namespace tranche {
namespace {

// Differences of waste count in whole steps of this many milli: finer ones mean nothing, and nodes
// that hardly differ must tie for the tie rule to consolidate. In balance less depends on that, and
// what is wasted comes back as pods leave.
constexpr int64_t kWasteStep = 64;
constexpr int64_t kWasteStepInBalance = 16;

int64_t RoundToStep(int64_t milli, const Mix& mix) {
  const int64_t step = mix.turnover < MixLearner::kAll / 2 ? kWasteStep : kWasteStepInBalance;
  return step * static_cast<int64_t>(FloorDiv(2 * Int128{milli} + step, 2 * step));
}

// A plain nvidia.com/gpu is happiest on a whole card; replicas and MIG devices come after.
bool IsSecondKind(const Inventory& inventory, const PodRequest& request) {
  const auto asks = [&request](Resource resource) {
    return std::ranges::find(request.asks, resource, &Ask::resource) != request.asks.end();
  };
  if (asks(Resource::kGpu) && inventory.gpu_unit != GpuUnit::kCard) return true;
  // A share is better kept where something enforces it.
  return asks(Resource::kShare) && !inventory.has_agent() &&
         inventory.sharing != SharingMethod::kMps;
}

// The class's least wanted way of sharing among the devices taken decides.
int WorstSharing(const Inventory& inventory, const PodRequest& request, const Picks& picks,
                 const std::vector<SharingMode>* sharing) {
  int worst = 0;
  for (const Pick& pick : picks) {
    const Ask& ask = request.asks[static_cast<std::size_t>(pick.ask)];
    const Card& card = inventory.cards[static_cast<std::size_t>(pick.card)];
    worst = std::max(worst, PreferenceOf(inventory, ask, card, sharing).value_or(0));
  }
  return worst;
}

// A pod that says it prefers connected cards goes by how they are connected. Others only avoid sets
// that are worse than what the node could give when idle, and only where NVLinks are lost: machines
// with better links are not used up by pods that never asked for them.
uint32_t ConnectionRank(const PodRequest& request, TopologyWish wish,
                        const std::optional<SetChoice>& cards) {
  constexpr uint32_t kWorst = 7;
  constexpr int kFirstNvlinkLoss = 4;
  int64_t units = 0;
  for (const Ask& ask : request.asks) units += ask.count;
  if (units < 2 || wish == TopologyWish::kNone) return 0;
  if (request.topology != TopologyWish::kPreferred) {
    return cards ? static_cast<uint32_t>(std::max(0, cards->loss - kFirstNvlinkLoss + 1)) : 0;
  }
  if (!cards) return kWorst;
  const SetQuality& quality = cards->quality;
  if (quality.connected) return 0;
  if (quality.ring_weakest > 0) return 1;
  if (quality.links > 0) return 2;
  switch (quality.worst_path) {
    case PathClass::kBoard:
    case PathClass::kPix:
      return 3;
    case PathClass::kPxb:
      return 4;
    case PathClass::kPhb:
    case PathClass::kNode:
      return 5;
    case PathClass::kSys:
      break;
  }
  return 6;
}

// Layouts of cut cards and contexts stay as they were: Room does not look at them.
void AddPicks(Load& load, const PodRequest& request, const Picks& picks) {
  if (request.asks.size() != 1 || load.space != nullptr) return AddUse(load, UseOf(request, picks));
  for (const Pick& pick : picks) {
    if (pick.pool >= 0) {
      ++load.slots[static_cast<std::size_t>(pick.pool)][static_cast<std::size_t>(pick.slot)];
      continue;
    }
    CardLoad& card = load.cards[static_cast<std::size_t>(pick.card)];
    card.milli += pick.milli;
    card.memory += pick.memory;
    card.slots += 1;
    card.exclusive += pick.exclusive;
  }
}

bool IsEmpty(const Load& load) {
  const auto is_free = [](const CardLoad& card) {
    return card.milli == MilliGpu::Zero() && card.memory == Mebibytes::Zero() && card.slots == 0;
  };
  const auto has_no_users = [](const std::vector<int64_t>& pool) {
    return std::ranges::all_of(pool, [](int64_t users) { return users == 0; });
  };
  return std::ranges::all_of(load.cards, is_free) && std::ranges::all_of(load.slots, has_no_users);
}

// The part of the node that is paid for because of the pod, in milli-GPU.
int64_t NewlyPaid(const Inventory& inventory, const Load& before, const Picks& picks) {
  if (picks.empty()) return 0;
  if (IsEmpty(before)) {
    return static_cast<int64_t>(inventory.cards.size()) * kWholeGpu.count();
  }
  int64_t milli = 0;
  for (const Pick& pick : picks) {
    const Card& card = inventory.cards[static_cast<std::size_t>(pick.card)];
    const int64_t of_memory =
        card.memory > Mebibytes::Zero()
            ? MulDivCeil(pick.memory.count(), kWholeGpu.count(), card.memory.count())
            : 0;
    milli += std::max(pick.milli.count(), std::min(of_memory, kWholeGpu.count()));
  }
  return milli;
}

int64_t FreeOfPlanned(const Inventory& inventory, const Load& load) {
  if (!inventory.planned()) return 0;
  int64_t milli = 0;
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    const MigSpace& space = *inventory.cards[i].space;
    const int64_t units = space.board().units;
    milli += (units - space.used_units(load.cards[i].layout)) * 1000 / units;
  }
  return milli;
}

}  // namespace

struct Scorer::Impl {
  // One request on one node.
  struct Query {
    const NodeRoom& node;
    const PodRequest& request;
    Strategy strategy;
    const std::vector<SharingMode>* sharing;
    TopologyWish wish;
    Room before;
  };

  Impl() : waste(kinds), prices(kinds, waste) {
    waste.SetMix(learner.mix());
    prices.SetMix(learner.mix(), MixChange::kAll);
  }

  Room RoomOfNode(const NodeRoom& node) {
    const KindId kind = kinds.Of(*node.inventory, node.cpu_capacity);
    return RoomOf(kinds, kind, *node.inventory, *node.load, node.cpu_free);
  }
  Worth WorthOf(const Query& query, const Picks& picks);
  void TryOtherCards(const Query& query, PlaceRules& rules, Picks& picks, Worth& worth);

  NodeKinds kinds;
  MixLearner learner;
  WasteTable waste;
  Prices prices;
  Layouts layouts;
  Placer placer;
  Load after;  // these two are kept for their memory
  Picks trial;
};

Worth Scorer::Impl::WorthOf(const Query& query, const Picks& picks) {
  const Inventory& inventory = *query.node.inventory;
  const bool planned = inventory.planned() && !picks.empty();
  after = *query.node.load;
  AddPicks(after, query.request, picks);
  const Room left =
      RoomOf(kinds, query.before.kind(), inventory, after, query.node.cpu_free - query.request.cpu);
  Worth worth;
  worth.rank =
      static_cast<uint32_t>(WorstSharing(inventory, query.request, picks, query.sharing) << 1 |
                            (IsSecondKind(inventory, query.request) ? 1 : 0))
          << 3 |
      ConnectionRank(query.request, query.wish, placer.cards());
  worth.kind = query.before.kind();
  if (query.strategy == Strategy::kFragmentation) {
    worth.paid = static_cast<int32_t>(NewlyPaid(inventory, *query.node.load, picks));
  }
  int64_t base = 0;
  switch (query.strategy) {
    case Strategy::kBestFit:
      base = left.milli + FreeOfPlanned(inventory, after);
      break;
    case Strategy::kSpread:
      base = -left.milli - FreeOfPlanned(inventory, after);
      break;
    case Strategy::kFragmentation:
      if (planned) {
        base = layouts.CostOf(inventory, *query.node.load, picks);
        break;
      }
      base = RoundToStep(waste.Of(left) - waste.Of(query.before), learner.mix());
      worth.loss = prices.LossOf(query.before, left);
      worth.priced = true;
      break;
  }
  // Among nodes that are else alike the one whose other cards are spoilt least.
  if (placer.cards()) base += placer.cards()->damage;
  worth.base = static_cast<int32_t>(std::clamp<int64_t>(base, INT32_MIN, INT32_MAX));
  return worth;
}

// A share may go on any card with room: the tightest is tried before, now one card of every other
// load and way of sharing; the least cost wins, then the tighter card.
void Scorer::Impl::TryOtherCards(const Query& query, PlaceRules& rules, Picks& picks,
                                 Worth& worth) {
  const Inventory& inventory = *query.node.inventory;
  const Load& load = *query.node.load;
  const auto load_of = [&](int card) {
    const auto at = static_cast<std::size_t>(card);
    const CardLoad& used = load.cards[at];
    return std::tuple(
        used.milli, used.memory, used.slots,
        PreferenceOf(inventory, query.request.asks[0], inventory.cards[at], query.sharing));
  };
  const auto order_of = [&](const Worth& of, const Picks& way) {
    const auto at = static_cast<std::size_t>(way[0].card);
    return std::tuple(of.rank, of.base, FreeMilli(inventory.cards[at], load.cards[at]));
  };
  const int tightest = picks[0].card;
  for (int card = 0; card < static_cast<int>(inventory.cards.size()); ++card) {
    bool seen = load_of(card) == load_of(tightest);
    for (int before = 0; before < card && !seen; ++before) seen = load_of(before) == load_of(card);
    if (seen) continue;
    rules.preferred_card = card;
    if (placer.Place(inventory, load, query.request, rules, trial) != Reason::kNone ||
        trial[0].card != card) {
      continue;
    }
    const Worth other = WorthOf(query, trial);
    if (order_of(other, trial) >= order_of(worth, picks)) continue;
    worth = other;
    picks = trial;
  }
}

Scorer::Scorer() : impl_(std::make_unique<Impl>()) {}
Scorer::~Scorer() = default;

void Scorer::Arrived(const PodRequest& request) {
  const MixChange change = impl_->learner.Arrived(request);
  impl_->layouts.Arrived(request, impl_->learner);
  if (change == MixChange::kNone) return;
  const Mix& mix = impl_->learner.mix();
  if (change == MixChange::kAll) impl_->waste.SetMix(mix);
  impl_->prices.SetMix(mix, change);
}

void Scorer::Departed(const PodRequest& request) { impl_->learner.Departed(request); }

ScorerMemory Scorer::Memory() const { return {impl_->learner, impl_->layouts.Memory()}; }

void Scorer::Take(const ScorerMemory& memory) {
  impl_->learner = memory.learner;
  impl_->layouts.Take(memory.layouts);
  impl_->waste.SetMix(impl_->learner.mix());
  impl_->prices.SetMix(impl_->learner.mix(), MixChange::kAll);
  impl_->prices.Settle();
}

uint32_t Scorer::version(const PodRequest& request) const {
  const bool asks_mig =
      std::ranges::find(request.asks, Resource::kMig, &Ask::resource) != request.asks.end();
  return impl_->learner.mix().version + impl_->prices.version() +
         (asks_mig ? impl_->layouts.version() : 0);
}

bool Scorer::Work() { return impl_->layouts.Work(); }
bool Scorer::HasWork() const { return impl_->layouts.HasWork(); }

void Scorer::SetNode(uint32_t node, const NodeRoom& room) {
  // What an unknown pod holds of a node is unknown too.
  if (room.inventory == nullptr || room.load->devices_unknown) {
    impl_->prices.SetNode(node, nullptr);
    return;
  }
  impl_->layouts.Saw(*room.inventory, impl_->learner);
  const Room left = impl_->RoomOfNode(room);
  impl_->prices.SetNode(node, &left);
}

Reason Scorer::Evaluate(const NodeRoom& room, const PodRequest& request, const GpuPolicy& policy,
                        Picks& picks, Worth& worth, const std::vector<SharingMode>* sharing) {
  const Strategy strategy = request.strategy.value_or(policy.strategy);
  PlaceRules rules;
  rules.policy = &policy;
  rules.choice = request.card_choice;
  rules.sharing = sharing;
  rules.layout_values = &impl_->layouts.values();
  if (rules.choice == CardChoice::kStrategy) {
    rules.choice = strategy == Strategy::kSpread ? CardChoice::kLoosest : CardChoice::kTightest;
  }
  picks.clear();
  if (!request.asks.empty()) {
    const Reason reason = impl_->placer.Place(*room.inventory, *room.load, request, rules, picks);
    if (reason != Reason::kNone) return reason;
  }
  const Impl::Query query{room,
                          request,
                          strategy,
                          sharing,
                          request.topology.value_or(policy.topology),
                          impl_->RoomOfNode(room)};
  worth = impl_->WorthOf(query, picks);
  const bool one_share = picks.size() == 1 && picks[0].pool < 0 && request.asks.size() == 1 &&
                         request.asks[0].resource == Resource::kShare;
  if (one_share && strategy == Strategy::kFragmentation &&
      request.card_choice == CardChoice::kStrategy) {
    impl_->TryOtherCards(query, rules, picks, worth);
  }
  return Reason::kNone;
}

void Scorer::Refresh() { impl_->prices.Follow(); }

void Scorer::Price(const PodRequest& request) { impl_->prices.Prepare(request); }

int64_t Scorer::CostOf(const Worth& worth) const {
  if (!worth.priced) return worth.base;
  return worth.base + impl_->prices.OfKind(worth.kind) + impl_->prices.OfLoss(worth.loss);
}

int64_t Scorer::Waste(const NodeRoom& room) { return impl_->waste.Of(impl_->RoomOfNode(room)); }

const LayoutValueMap& Scorer::layout_values() const { return impl_->layouts.values(); }

}  // namespace tranche
